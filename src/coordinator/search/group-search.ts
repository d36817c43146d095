import { lookupError } from "../checks.js";
import type { StoreSpecGroup } from "../spec/spec-groups.js";
import { ABSENT, type BlockExistence, PRESENT, UNKNOWN, Wanted } from "./existence-table.js";

/**
 * The hit of one spec group. Its blocks are `nulls` that need not be loaded, and then those that must be:
 * `numBlocks` in all.
 */
export interface GroupHit {
  /** Tokens. */
  readonly hitLength: number;
  /** Blocks at the beginning that the group does not need. */
  readonly nulls: number;
  /** Blocks of the hit, those included. */
  readonly numBlocks: number;
}

/** One search in one spec group. */
export interface GroupSearch {
  /** The group that is searched. */
  readonly group: StoreSpecGroup;
  /** What is known of the store. */
  readonly existence: BlockExistence;
  /** Tokens that one block hash covers. */
  readonly hashBlockSize: number;
  /** What the length of the hit must be a multiple of, in tokens. */
  readonly alignmentTokens: number;
  /** Tokens that the hit may have at most. */
  readonly maxLength: number;
  /** Whether the last matched block is to be recomputed by the draft model. */
  readonly dropEagleBlock: boolean;
}

/** A hit, or the blocks whose state must be known to find it. */
export type Search<Result> = Result | Wanted;

/** Whether hits may end inside a block of the group. */
export function isFine({ alignmentTokens, group }: GroupSearch): boolean {
  return alignmentTokens < group.spec.blockSize && group.spec.blockSize % alignmentTokens === 0;
}

/** Blocks between two places where a hit may end. */
export function blocksPerAlignment({ alignmentTokens, group }: GroupSearch): number {
  return Math.max(1, alignmentTokens / group.spec.blockSize);
}

/** Position of the hash that ends block `block`. */
export function hashIndex(search: GroupSearch, block: number): number {
  return (block + 1) * (search.group.spec.blockSize / search.hashBlockSize) - 1;
}

/** Blocks that `maxLength` covers. @throws MooncakeKvError `ERR_LOOKUP` when there are fewer hashes. */
export function checkedBlocks(search: GroupSearch): number {
  const blocks = Math.floor(search.maxLength / search.group.spec.blockSize);
  if (blocks > 0 && hashIndex(search, blocks - 1) >= search.existence.numHashes)
    throw beyondHashes(search, blocks);
  return blocks;
}

/** The error of a search that would need hashes which the prompt does not have. */
export function beyondHashes({ maxLength, existence, group }: GroupSearch, blocks: number): Error {
  return lookupError(
    `${maxLength} tokens are ${blocks} blocks of ${group.spec.blockSize}, more than ${existence.numHashes} block hashes ` +
      "cover; shorten the length or pass all hashes",
    { maxLength, blocks, numHashes: existence.numHashes, groupIds: group.groupIds },
  );
}

/** The first absent block of [from, to], or `to + 1`. */
export function firstMissing(search: GroupSearch, from: number, to: number): Search<number> {
  let block = from;
  for (; block <= to; block++) {
    const state = search.existence.all(search.group.groupIds, hashIndex(search, block));
    if (state === UNKNOWN) return wanted(search, block, 1, to - block + 1);
    if (state === ABSENT) break;
  }
  return block;
}

/** The last present hash among `from`, `from - step`, ... down to `to`, or a number below `to`. */
export function lastPresent(search: GroupSearch, from: number, to: number, step: number): Search<number> {
  const { groupIds } = search.group;
  let index = from;
  for (; index >= to; index -= step) {
    const state = search.existence.all(groupIds, index);
    if (state === UNKNOWN) return new Wanted(groupIds, index, -step, Math.floor((index - to) / step) + 1);
    if (state === PRESENT) break;
  }
  return index;
}

/** Blocks from `block` on, `step` blocks apart, as hashes. */
export function wanted(search: GroupSearch, block: number, step: number, count: number): Wanted {
  const scale = search.group.spec.blockSize / search.hashBlockSize;
  return new Wanted(search.group.groupIds, hashIndex(search, block), step * scale, count);
}
