import type { TailKeyBoundary } from "../../../generated/typescript/index.js";
import { isMooncakeKvError, type MooncakeKvError } from "../../errors.js";
import { lookupError } from "../checks.js";
import { type ExistenceTable, PRESENT, UNKNOWN, Wanted } from "../search/existence-table.js";
import type { Search } from "../search/group-search.js";
import { prefixCacheable } from "../spec/kv-cache-spec.js";
import type { PrefixSearch } from "./prefix-search.js";

/** What the stored blocks of a prompt amount to. */
export interface LookupDecision {
  /** Tokens of the longest prefix that every group can load. */
  readonly hitLength: number;
  /** One a group: the hash that names its last block. Empty for a hit of 0. */
  readonly tailKeyBoundaries: readonly TailKeyBoundary[];
  /** The groups that last made the hit shorter. */
  readonly limitedBy: readonly number[];
  /** Why no answer was possible; the hit is 0 then. */
  readonly failure?: MooncakeKvError | undefined;
}

/** Nothing of the prompt is stored. */
export const LOOKUP_MISS: LookupDecision = { hitLength: 0, tailKeyBoundaries: [], limitedBy: [] };

/**
 * The whole decision of a lookup over what is known: the longest hit, found anew below the end of the prompt where it
 * covers all of it (the last token must be computed), and the keys of the tail blocks. Where an unknown block decides,
 * says which. Mirrors the worker's `lookup`.
 *
 * Where vLLM's lookup raises, which ends its thread and leaves the engine waiting, this is a miss with a `failure`.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` for a number of tokens that is none.
 */
export function decideLookup(
  coordinator: PrefixSearch,
  numTokens: number,
  existence: ExistenceTable,
): Search<LookupDecision> {
  const tokenLen = coordinator.alignLookupLength(numTokens);
  if (existence.numHashes === 0 || tokenLen === 0 || coordinator.specGroups.length === 0) return LOOKUP_MISS;
  try {
    return decide(coordinator, numTokens, tokenLen, existence);
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_LOOKUP")) throw error;
    return { ...LOOKUP_MISS, failure: error };
  }
}

function decide(
  coordinator: PrefixSearch,
  numTokens: number,
  tokenLen: number,
  existence: ExistenceTable,
): Search<LookupDecision> {
  const options = { applyEagle: true, lengthOnly: true };
  let hit = coordinator.search(tokenLen, existence, options);
  if (hit instanceof Wanted) return hit;
  if (hit.hitLength >= numTokens) {
    const usable = coordinator.alignLookupLength(numTokens - 1);
    if (usable === 0) return LOOKUP_MISS;
    hit = coordinator.search(usable, existence, options);
    if (hit instanceof Wanted) return hit;
  }
  const { hitLength, limitedBy } = hit;
  const tailKeyBoundaries = findTailKeyBoundaries(coordinator, hitLength, existence);
  if (tailKeyBoundaries instanceof Wanted) return tailKeyBoundaries;
  return { hitLength, tailKeyBoundaries, limitedBy };
}

/**
 * For each group the boundary whose hash names its tail block. A hit may end inside a block that was stored under a
 * later hash, or further left than the hash under which the block was stored. Mirrors `_tail_key_boundaries`.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` when a group has no such block, although the hit should imply one.
 */
export function findTailKeyBoundaries(
  coordinator: PrefixSearch,
  hitLength: number,
  existence: ExistenceTable,
): Search<TailKeyBoundary[]> {
  const { hashBlockSize, enablePartialHashHits, kvCacheGroups } = coordinator;
  if (hitLength <= 0) return [];
  const hitIndex = Math.floor(hitLength / hashBlockSize) - 1;
  const boundaries: TailKeyBoundary[] = [];
  for (const [groupId, { kvCacheSpec }] of kvCacheGroups.entries()) {
    if (!prefixCacheable(kvCacheSpec)) continue;
    const { blockSize } = kvCacheSpec;
    const blockEnd = (Math.ceil(hitLength / blockSize) * blockSize) / hashBlockSize;
    const end = enablePartialHashHits ? Math.min(blockEnd, existence.numHashes) : hitIndex + 1;
    let index = hitIndex;
    for (; index < end; index++) {
      const state = existence.get(groupId, index);
      if (state === UNKNOWN) return new Wanted([groupId], index, 1, end - index);
      if (state === PRESENT) break;
    }
    if (index >= end)
      throw lookupError(
        `group ${groupId} has no block that ends a hit of ${hitLength} tokens; the hit can't be loaded`,
        { groupId, hitLength },
      );
    boundaries.push({ groupId, numTokens: index === hitIndex ? hitLength : (index + 1) * hashBlockSize });
  }
  return boundaries;
}
