import { lookupChecks } from "../checks.js";

/** The block is not stored. */
export const ABSENT = 0;
/** The block is stored under every namespace that will be loaded. */
export const PRESENT = 1;
/** The store has not been asked yet. */
export const UNKNOWN = 2;

/** What is known of one block: `ABSENT`, `PRESENT` or `UNKNOWN`. */
export type BlockState = typeof ABSENT | typeof PRESENT | typeof UNKNOWN;

/** What a search asks of a prompt's blocks. */
export interface BlockExistence {
  /** Block hashes of the prompt. */
  readonly numHashes: number;
  /** The state of a block that counts only where all `groupIds` have it; blocks are numbered by the hash that ends them. */
  all(groupIds: readonly number[], hashIndex: number): BlockState;
}

/**
 * What is known of the stored blocks of one prompt, flat: one byte a group and block hash. Blocks are numbered by the
 * position of the hash that ends them. Plays the part of vLLM's `ExternalCachedBlockPool`.
 */
export class ExistenceTable implements BlockExistence {
  readonly numGroups: number;
  /** Block hashes of the prompt. */
  readonly numHashes: number;
  readonly #states: Uint8Array | undefined;

  private constructor(numGroups: number, numHashes: number, states: Uint8Array | undefined) {
    this.numGroups = numGroups;
    this.numHashes = numHashes;
    this.#states = states;
  }

  /**
   * A table in which every block is in one state; change it with `set`.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` for numbers that are no whole ones.
   */
  static filled(numGroups: number, numHashes: number, state: BlockState = ABSENT): ExistenceTable {
    lookupChecks.whole("numGroups", numGroups, 0);
    lookupChecks.whole("numHashes", numHashes, 0);
    const states = new Uint8Array(numGroups * numHashes);
    return new ExistenceTable(numGroups, numHashes, state === ABSENT ? states : states.fill(state));
  }

  /** The side that loads: the length of the hit is settled, so every block is taken as stored. Takes no memory. */
  static everything(numHashes: number): ExistenceTable {
    lookupChecks.whole("numHashes", numHashes, 0);
    return new ExistenceTable(0, numHashes, undefined);
  }

  /** Records the state of the block that ends with hash `hashIndex`; outside the table nothing happens. */
  set(groupId: number, hashIndex: number, state: BlockState): void {
    if (groupId >= 0 && groupId < this.numGroups && hashIndex >= 0 && hashIndex < this.numHashes)
      if (this.#states !== undefined) this.#states[groupId * this.numHashes + hashIndex] = state;
  }

  /** The state of a block of one group; `ABSENT` outside the table. */
  get(groupId: number, hashIndex: number): BlockState {
    if (hashIndex < 0 || hashIndex >= this.numHashes) return ABSENT;
    if (this.#states === undefined) return PRESENT;
    return (this.#states[groupId * this.numHashes + hashIndex] ?? ABSENT) as BlockState;
  }

  /** The state of a block that counts only where all `groupIds` have it. */
  all(groupIds: readonly number[], hashIndex: number): BlockState {
    let state: BlockState = PRESENT;
    for (let i = 0; i < groupIds.length; i++) {
      const member = this.get(groupIds[i]!, hashIndex);
      if (member === ABSENT) return ABSENT;
      if (member === UNKNOWN) state = UNKNOWN;
    }
    return state;
  }
}

/**
 * Blocks that a search has to know before it can go on, nearest first: the hashes at `first`, `first + step`, and so
 * on, `count` of them. Only the first is certainly needed; the others are what comes next if the search goes on.
 */
export class Wanted {
  readonly groupIds: readonly number[];
  readonly first: number;
  readonly step: number;
  readonly count: number;

  constructor(groupIds: readonly number[], first: number, step: number, count: number) {
    this.groupIds = groupIds;
    this.first = first;
    this.step = step;
    this.count = count;
  }
}
