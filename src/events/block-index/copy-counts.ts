/** Words of a slot: the entry, the holder, the copies. */
const WORDS = 3;

/** No entry: the slot is free. */
const FREE = -1;

/** Slots that are in use at most, of 8. */
const FULL = 6;

/** Copies that one slot counts at most. */
const MOST_COPIES = 0x7fff_ffff;

/**
 * How many further copies holders have of an entry, for the few that have many: a small open hash table of fixed size.
 * When it is full a copy is not counted, so that an index knows fewer copies than there are, never more.
 */
export class CopyCounts {
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #factor: number;
  readonly #most: number;
  #size = 0;

  /** @param counts numbers that it should have room for at least. @param seed an odd number that nobody can guess. */
  constructor(counts: number, seed: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(64, (counts * 8) / FULL)));
    this.#slots = new Int32Array(WORDS * slots).fill(FREE);
    this.#mask = slots - 1;
    this.#factor = seed;
    this.#most = (slots / 8) * FULL;
  }

  /** Pairs of an entry and a holder that are counted. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of the table. */
  get byteLength(): number {
    return this.#slots.byteLength;
  }

  /** One more copy. @returns whether it is counted. */
  add(entry: number, holder: number): boolean {
    const slots = this.#slots;
    const at = this.#find(entry, holder);
    if (slots[at] !== FREE) {
      if (slots[at + 2]! === MOST_COPIES) return false;
      slots[at + 2]!++;
      return true;
    }
    if (this.#size >= this.#most) return false;
    slots[at] = entry;
    slots[at + 1] = holder;
    slots[at + 2] = 1;
    this.#size++;
    return true;
  }

  /** One copy less. @returns whether there was one. */
  take(entry: number, holder: number): boolean {
    const at = this.#find(entry, holder);
    if (this.#slots[at] === FREE) return false;
    if (--this.#slots[at + 2]! === 0) this.#close(at);
    return true;
  }

  /** Forgets the copies of a pair. */
  forget(entry: number, holder: number): void {
    if (this.#size === 0) return;
    const at = this.#find(entry, holder);
    if (this.#slots[at] !== FREE) this.#close(at);
  }

  /** The slot of a pair, or the free one where it would lie. */
  #find(entry: number, holder: number): number {
    const slots = this.#slots;
    let slot = this.#home(entry, holder);
    for (;;) {
      const at = WORDS * slot;
      if (slots[at] === FREE || (slots[at] === entry && slots[at + 1] === holder)) return at;
      slot = (slot + 1) & this.#mask;
    }
  }

  #home(entry: number, holder: number): number {
    const mixed = Math.imul(entry ^ Math.imul(holder + 1, 0x85eb_ca6b), this.#factor);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }

  /** Frees a slot, and moves those behind it up that would not be found any more. */
  #close(at: number): void {
    const slots = this.#slots;
    let hole = at / WORDS;
    for (let slot = (hole + 1) & this.#mask; slots[WORDS * slot] !== FREE; slot = (slot + 1) & this.#mask) {
      const home = this.#home(slots[WORDS * slot]!, slots[WORDS * slot + 1]!);
      const distance = (slot - home) & this.#mask;
      if (distance < ((slot - hole) & this.#mask)) continue;
      slots.copyWithin(WORDS * hole, WORDS * slot, WORDS * slot + WORDS);
      hole = slot;
    }
    slots[WORDS * hole] = FREE;
    this.#size--;
  }
}
