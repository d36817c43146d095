import { CopyCounts } from "./copy-counts.js";

/** No entry. */
export const NONE = -1;

/**
 * Where the parts of an entry lie: id, tag and state, the next entry of the bucket, and then its holders: a word of those
 * that have a copy, a word of those that have more than one, and so on.
 */
const LOW = 0;
const HIGH = 1;
const META = 2;
const NEXT = 3;
const MASKS = 4;

/** States of an entry, above the 8 bits of its tag. */
const TAG = 0xff;
const FREE = 0x000;
const USED = 0x100;
const RECENT = 0x200;

/** Entries that each change looks at, to forget retired holders little by little. */
const SWEEP_STEP = 8;

/**
 * Which holders have which blocks, and in how many copies, flat and of bounded size: a hash table over 64-bit ids and a
 * small tag, with a set of holders (32 a word) in each entry. The factors of the hash are chosen by chance, so that
 * nobody can make blocks that all fall into one bucket. An entry lies in one piece, so that it costs one access to memory, and never moves.
 * When the table is full, a block that was not used for long gives way to the new one (second chance: a clock hand goes
 * round and takes what was not used since it last came).
 *
 * A holder can be retired in constant time: its bits count no more from then on, and are swept out by later changes.
 */
export class BlockTable {
  readonly capacity: number;
  /** 32-bit words of a set of holders. */
  readonly maskWords: number;
  /** Blocks of each holder. */
  readonly held: Float64Array;
  /** Holders that are not retired, as a mask. */
  readonly live: Int32Array;
  /** Entries that gave way to others. */
  evicted = 0;

  /** The entries, `#stride` words each; an entry is named by where it begins. */
  readonly #entries: Int32Array;
  readonly #stride: number;
  readonly #buckets: Int32Array;
  readonly #shift: number;
  /** Factors of the hash, by the part of a block that they are for. */
  readonly #lowFactor: number = oddByChance();
  readonly #highFactor: number = oddByChance();
  readonly #tagFactor: number = oddByChance();
  /** Third and further copies. */
  readonly #copies: CopyCounts;
  #free: number = NONE;
  /** Where the entries begin that were never used. */
  #fresh = 0;
  #size = 0;
  #hand = 0;
  /** Retired holders: those of the sweep under way, and those that came since. */
  readonly #sweeping: Int32Array;
  readonly #waiting: Int32Array;
  /** The entry that the sweep looks at next; `NONE` without a sweep. */
  #sweepAt: number = NONE;
  readonly #onSwept: (holders: Int32Array) => void;

  /**
   * @param capacity entries at most.
   * @param maskWords 32-bit words of a set of holders.
   * @param onSwept told which retired holders have left the table: their numbers can be used again.
   */
  constructor(capacity: number, maskWords: number, onSwept: (holders: Int32Array) => void) {
    this.capacity = capacity;
    this.maskWords = maskWords;
    this.#stride = MASKS + 2 * maskWords;
    const bits = Math.max(4, Math.ceil(Math.log2(capacity)));
    this.#shift = 32 - bits;
    this.#buckets = new Int32Array(2 ** bits).fill(NONE);
    this.#entries = new Int32Array(capacity * this.#stride);
    this.#copies = new CopyCounts(capacity / 16, oddByChance());
    this.held = new Float64Array(32 * maskWords);
    this.live = new Int32Array(maskWords);
    this.#sweeping = new Int32Array(maskWords);
    this.#waiting = new Int32Array(maskWords);
    this.#onSwept = onSwept;
  }

  /** Entries in use. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of all arrays. */
  get byteLength(): number {
    return this.#buckets.byteLength + this.#entries.byteLength + this.#copies.byteLength;
  }

  /** Entries of the fullest bucket: what the slowest search looks at. Counts all of them anew. */
  get longestChain(): number {
    let longest = 0;
    for (const first of this.#buckets) {
      let length = 0;
      for (let entry = first; entry !== NONE; entry = this.#entries[entry + NEXT]!) length++;
      longest = Math.max(longest, length);
    }
    return longest;
  }

  /** The entry of a block, or `NONE`. `low` and `high` are the halves of its id, as 32-bit integers of any sign. */
  find(low: number, high: number, tag: number): number {
    const entries = this.#entries;
    let entry = this.#buckets[this.#bucket(low, high, tag)]!;
    while (entry !== NONE) {
      if (
        entries[entry + LOW] === (low | 0) &&
        entries[entry + HIGH] === (high | 0) &&
        (entries[entry + META]! & TAG) === tag
      )
        return entry;
      entry = entries[entry + NEXT]!;
    }
    return NONE;
  }

  /** A word of the holders of an entry; retired holders may still stand in it. */
  mask(entry: number, word: number): number {
    return this.#entries[entry + MASKS + 2 * word]!;
  }

  /** Notes that an entry was used: it stays longer. */
  touch(entry: number): void {
    this.#entries[entry + META] = (this.#entries[entry + META]! & TAG) | RECENT;
  }

  /**
   * A holder has one more copy of blocks.
   *
   * @param words the halves of their ids, low ones first.
   * @returns how many copies were not counted for want of room.
   */
  add(words: Uint32Array, tag: number, holder: number): number {
    const entries = this.#entries;
    const word = MASKS + 2 * (holder >>> 5);
    const bit = 1 << (holder & 31);
    let uncounted = 0;
    for (let at = 0; at < words.length; at += 2) {
      if (this.#sweepAt !== NONE) this.#sweep(SWEEP_STEP);
      const low = words[at]! | 0;
      const high = words[at + 1]! | 0;
      let entry = this.find(low, high, tag);
      if (entry === NONE) entry = this.#insert(low, high, tag);
      else this.touch(entry);
      const mask = entries[entry + word]!;
      if ((mask & bit) === 0) {
        entries[entry + word] = mask | bit;
        this.held[holder]!++;
      } else if ((entries[entry + word + 1]! & bit) === 0) entries[entry + word + 1]! |= bit;
      else if (!this.#copies.add(entry, holder)) uncounted++;
    }
    return uncounted;
  }

  /** A holder has one copy of blocks less. @returns of how many of them it had one. */
  remove(words: Uint32Array, tag: number, holder: number): number {
    const entries = this.#entries;
    const word = MASKS + 2 * (holder >>> 5);
    const bit = 1 << (holder & 31);
    let removed = 0;
    let gone = 0;
    for (let at = 0; at < words.length; at += 2) {
      if (this.#sweepAt !== NONE) this.#sweep(SWEEP_STEP);
      const entry = this.find(words[at]!, words[at + 1]!, tag);
      if (entry === NONE) continue;
      const mask = entries[entry + word]!;
      if ((mask & bit) === 0) continue;
      removed++;
      if ((entries[entry + word + 1]! & bit) !== 0) {
        if (!this.#copies.take(entry, holder)) entries[entry + word + 1]! &= ~bit;
        continue;
      }
      entries[entry + word] = mask & ~bit;
      gone++;
      if (mask === bit && !this.#hasHolders(entry)) this.#release(entry);
    }
    this.held[holder]! -= gone;
    return removed;
  }

  /** A number becomes a holder. It must be one that was never used, or was swept. */
  enlist(holder: number): void {
    this.live[holder >>> 5]! |= 1 << (holder & 31);
    this.held[holder] = 0;
  }

  /** A holder has nothing any more, and its number is not used until it was swept. */
  retire(holder: number): void {
    const bit = 1 << (holder & 31);
    this.live[holder >>> 5]! &= ~bit;
    this.#waiting[holder >>> 5]! |= bit;
    this.held[holder] = 0;
    if (this.#sweepAt === NONE) this.#beginSweep();
  }

  /** Sweeps every retired holder out at once. */
  sweepAll(): void {
    while (this.#sweepAt !== NONE) this.#sweep(this.capacity);
  }

  #bucket(low: number, high: number, tag: number): number {
    // The high bits of a sum of products with factors that nobody knows: two blocks meet as seldom as by chance.
    const sum = (Math.imul(low, this.#lowFactor) + Math.imul(high, this.#highFactor)) | 0;
    return (sum + Math.imul(tag + 1, this.#tagFactor)) >>> this.#shift;
  }

  #insert(low: number, high: number, tag: number): number {
    const entries = this.#entries;
    if (this.#free === NONE && this.#fresh >= entries.length) this.#evict();
    let entry = this.#free;
    if (entry === NONE) {
      entry = this.#fresh;
      this.#fresh += this.#stride;
    } else this.#free = entries[entry + NEXT]!;
    const bucket = this.#bucket(low, high, tag);
    entries[entry + LOW] = low;
    entries[entry + HIGH] = high;
    entries[entry + META] = tag | USED;
    entries[entry + NEXT] = this.#buckets[bucket]!;
    this.#buckets[bucket] = entry;
    this.#size++;
    return entry;
  }

  /** Frees the first entry under the hand that was not used since the hand last came by. */
  #evict(): void {
    const entries = this.#entries;
    for (;;) {
      const entry = this.#hand;
      this.#hand = entry + this.#stride < entries.length ? entry + this.#stride : 0;
      const meta = entries[entry + META]!;
      if ((meta & RECENT) !== 0) entries[entry + META] = (meta & TAG) | USED;
      else {
        this.#disown(entry);
        this.#release(entry);
        this.evicted++;
        return;
      }
    }
  }

  /** Takes an entry from all its holders. */
  #disown(entry: number): void {
    for (let word = 0; word < this.maskWords; word++) {
      for (let bits = this.mask(entry, word) & this.live[word]!; bits !== 0; bits &= bits - 1)
        this.held[32 * word + 31 - Math.clz32(bits & -bits)]!--;
      this.#entries[entry + MASKS + 2 * word] = 0;
      this.#forgetCopies(entry, word, ~0);
    }
  }

  /** Forgets the further copies that some holders of a word have of an entry. */
  #forgetCopies(entry: number, word: number, holders: number): void {
    const at = entry + MASKS + 2 * word + 1;
    const several = this.#entries[at]! & holders;
    for (let bits = several; bits !== 0; bits &= bits - 1)
      this.#copies.forget(entry, 32 * word + 31 - Math.clz32(bits & -bits));
    this.#entries[at]! &= ~holders;
  }

  /** Gives an entry without holders back. */
  #release(entry: number): void {
    const entries = this.#entries;
    const bucket = this.#bucket(entries[entry + LOW]!, entries[entry + HIGH]!, entries[entry + META]! & TAG);
    let before = this.#buckets[bucket]!;
    if (before === entry) this.#buckets[bucket] = entries[entry + NEXT]!;
    else {
      while (entries[before + NEXT] !== entry) before = entries[before + NEXT]!;
      entries[before + NEXT] = entries[entry + NEXT]!;
    }
    entries[entry + META] = FREE;
    entries[entry + NEXT] = this.#free;
    this.#free = entry;
    this.#size--;
  }

  #hasHolders(entry: number): boolean {
    for (let word = 0; word < this.maskWords; word++) if (this.mask(entry, word) !== 0) return true;
    return false;
  }

  #beginSweep(): void {
    this.#sweeping.set(this.#waiting);
    this.#waiting.fill(0);
    this.#sweepAt = 0;
  }

  /** Goes on with the sweep under way. */
  #sweep(steps: number): void {
    const entries = this.#entries;
    const end = Math.min(this.#sweepAt + steps * this.#stride, this.#fresh);
    for (let entry = this.#sweepAt; entry < end; entry += this.#stride) {
      if (entries[entry + META] === FREE) continue;
      for (let word = 0; word < this.maskWords; word++) {
        entries[entry + MASKS + 2 * word]! &= ~this.#sweeping[word]!;
        this.#forgetCopies(entry, word, this.#sweeping[word]!);
      }
      if (!this.#hasHolders(entry)) this.#release(entry);
    }
    this.#sweepAt = end;
    if (end < this.#fresh) return;
    // Entries that were never used hold nothing, and a retired holder gets into none.
    this.#sweepAt = NONE;
    this.#onSwept(this.#sweeping.slice());
    if (this.#waiting.some((word) => word !== 0)) this.#beginSweep();
  }
}

/** An odd number of 32 bits that nobody can guess. */
function oddByChance(): number {
  return (Math.random() * 2 ** 32) | 1;
}
