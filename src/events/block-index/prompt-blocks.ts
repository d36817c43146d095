import {
  ABSENT,
  type BlockExistence,
  type BlockState,
  PRESENT,
} from "../../coordinator/search/existence-table.js";
import { type BlockTable, NONE } from "./block-table.js";

/** The entry of a hash was not looked up yet. */
const UNSEEN = -2;

/**
 * The blocks of one prompt in a table, for as many engines as ask: each is looked up once, when the first one needs it,
 * and counts as used then.
 */
export class PromptBlocks {
  readonly table: BlockTable;
  /** Ids of the prompt's hashes, two words each. */
  readonly words: Uint32Array;
  readonly numHashes: number;
  readonly #rows = new Map<number, Int32Array>();

  constructor(table: BlockTable, words: Uint32Array) {
    this.table = table;
    this.words = words;
    this.numHashes = words.length / 2;
  }

  /** The entry of a hash under a tag, or `NONE`. */
  entry(tag: number, index: number): number {
    let row = this.#rows.get(tag);
    if (row === undefined) {
      row = new Int32Array(this.numHashes).fill(UNSEEN);
      this.#rows.set(tag, row);
    }
    const seen = row[index]!;
    if (seen !== UNSEEN) return seen;
    const entry = this.find(tag, index);
    row[index] = entry;
    return entry;
  }

  /** The same for who asks once: nothing is remembered. */
  find(tag: number, index: number): number {
    const entry = this.table.find(this.words[2 * index]!, this.words[2 * index + 1]!, tag);
    if (entry !== NONE) this.table.touch(entry);
    return entry;
  }
}

/** What one engine has of a prompt, on some media. */
export class EngineBlocks implements BlockExistence {
  readonly numHashes: number;
  readonly #prompt: PromptBlocks;
  readonly #tags: readonly ReadonlyMap<number, number>[];
  readonly #slot: number;

  /** @param tags by group, of each medium that counts. @param slot the engine's number in the table; -1 for none. */
  constructor(prompt: PromptBlocks, tags: readonly ReadonlyMap<number, number>[], slot: number) {
    this.numHashes = prompt.numHashes;
    this.#prompt = prompt;
    this.#tags = tags;
    this.#slot = slot;
  }

  /** Whether a group has the block that ends with a hash. */
  has(groupIdx: number, index: number): boolean {
    const slot = this.#slot;
    if (slot < 0 || index < 0 || index >= this.numHashes) return false;
    for (const tags of this.#tags) {
      const tag = tags.get(groupIdx);
      if (tag === undefined) continue;
      const entry = this.#prompt.entry(tag, index);
      if (entry !== NONE && ((this.#prompt.table.mask(entry, slot >>> 5) >>> (slot & 31)) & 1) === 1)
        return true;
    }
    return false;
  }

  all(groupIds: readonly number[], index: number): BlockState {
    for (const groupIdx of groupIds) if (!this.has(groupIdx, index)) return ABSENT;
    return PRESENT;
  }
}
