import { lookupError } from "../checks.js";
import { isFullAttention } from "../spec/kv-cache-spec.js";
import { proofMargin, type StoreSpecGroup } from "../spec/spec-groups.js";
import { type BlockExistence, Wanted } from "./existence-table.js";
import { findGroupHit } from "./group-hit.js";
import type { GroupHit, Search } from "./group-search.js";

/** A search over all spec groups. */
export interface HitSearch {
  /** As `splitSpecGroups` sorts them. */
  readonly specGroups: readonly StoreSpecGroup[];
  /** Tokens that one block hash covers. */
  readonly hashBlockSize: number;
  /** Whether hits may end inside a block, at a hash. */
  readonly enablePartialHashHits: boolean;
  /** What the length of a hit is a multiple of, in tokens. */
  readonly alignmentTokens: number;
  /** What is known of the store. */
  readonly existence: BlockExistence;
  /** Tokens that the hit may have at most. */
  readonly maxLength: number;
  /** Whether speculative groups drop their last matched block. */
  readonly applyEagle: boolean;
  /** Whether only the length counts, so that the search may end as soon as it is 0. */
  readonly lengthOnly: boolean;
  /**
   * Whether there is one cache group in all, which searches without a proof beyond its limit. Default: whether there is
   * one spec group.
   */
  readonly unitary?: boolean | undefined;
  /** Tokens up to which a speculative group may prove its last block. Default: those that the hashes cover. */
  readonly proofBound?: number | undefined;
}

/** The longest prefix that all spec groups can use. */
export interface LongestHit {
  /** Tokens. */
  readonly hitLength: number;
  /** One a spec group, in their order; undefined for a group that a hit of 0 made irrelevant. */
  readonly groupHits: readonly (GroupHit | undefined)[];
  /** Members of the spec group that last made the hit shorter; empty when nothing is missing. */
  readonly limitedBy: readonly number[];
}

/**
 * Searches all spec groups in turn, each within what the ones before left, until a whole turn changes nothing.
 * Mirrors `_find_hit_blocks`.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` where vLLM raises; see `findGroupHit`.
 */
export function findLongestHit(search: HitSearch): Search<LongestHit> {
  const { specGroups } = search;
  for (const group of specGroups) checkChunkedLocal(search, group);
  return (search.unitary ?? specGroups.length === 1)
    ? singleGroupHit(search, specGroups[0]!)
    : hybridHit(search);
}

function singleGroupHit(search: HitSearch, group: StoreSpecGroup): Search<LongestHit> {
  const hit = searchGroup(search, group, search.maxLength, search.applyEagle && group.useEagle);
  if (hit instanceof Wanted) return hit;
  const { hitLength } = hit;
  const whole = search.maxLength - (search.maxLength % search.alignmentTokens);
  return { hitLength, groupHits: [hit], limitedBy: hitLength < whole ? group.groupIds : [] };
}

function hybridHit(search: HitSearch): Search<LongestHit> {
  const { specGroups } = search;
  const groupHits: (GroupHit | undefined)[] = specGroups.map(() => undefined);
  const verified = new Set<StoreSpecGroup>();
  // Full attention never has to be searched again, so with one other group the first turn settles it.
  const oneTurn = specGroups.length === 2 && isFullAttention(specGroups[0]!.spec);
  let hitLength = search.maxLength;
  let limitedBy: readonly number[] = [];
  for (;;) {
    let current = hitLength;
    for (const [index, group] of specGroups.entries()) {
      const known = groupHits[index];
      if (known !== undefined && isFullAttention(group.spec)) {
        current = Math.min(current, known.hitLength);
        continue;
      }
      const drop = search.applyEagle && group.useEagle && !verified.has(group);
      const hit = searchGroup(search, group, drop ? proofLimit(search, group, current) : current, drop);
      if (hit instanceof Wanted) return hit;
      if (drop) verified.add(group);
      else if (hit.hitLength < current) verified.clear();
      if (hit.hitLength < current - (current % search.alignmentTokens)) limitedBy = group.groupIds;
      current = hit.hitLength;
      groupHits[index] = hit;
      // No search ever returns more than it was allowed, so that 0 is final.
      if (current === 0 && search.lengthOnly) return { hitLength: 0, groupHits, limitedBy };
    }
    if (current >= hitLength) break;
    hitLength = current;
    if (oneTurn) break;
  }
  return { hitLength, groupHits: truncated(specGroups, groupHits, hitLength), limitedBy };
}

/** Cuts full attention, which was not searched again, to the final length. */
function truncated(
  specGroups: readonly StoreSpecGroup[],
  groupHits: readonly (GroupHit | undefined)[],
  hitLength: number,
): (GroupHit | undefined)[] {
  return groupHits.map((hit, index) => {
    const { spec } = specGroups[index]!;
    if (hit === undefined || !isFullAttention(spec)) return hit;
    const numBlocks = Math.min(hit.numBlocks, Math.ceil(hitLength / spec.blockSize));
    return { hitLength, nulls: Math.min(hit.nulls, numBlocks), numBlocks };
  });
}

function searchGroup(
  { existence, hashBlockSize, alignmentTokens }: HitSearch,
  group: StoreSpecGroup,
  maxLength: number,
  dropEagleBlock: boolean,
): Search<GroupHit> {
  return findGroupHit({ group, existence, hashBlockSize, alignmentTokens, maxLength, dropEagleBlock });
}

/**
 * How far a speculative group may look: one block or hash beyond, which it then drops. Mamba drops nothing, and with a
 * wider limit it would resume from a state that was never verified.
 */
function proofLimit(search: HitSearch, group: StoreSpecGroup, current: number): number {
  if (group.spec.kind === "mamba") return current;
  const margin = proofMargin(group, search.hashBlockSize, search.enablePartialHashHits);
  return Math.min(current + margin, search.proofBound ?? search.existence.numHashes * search.hashBlockSize);
}

/** vLLM supports chunked local attention neither with a speculative drop nor with another block size. */
function checkChunkedLocal(search: HitSearch, { spec, groupIds, useEagle }: StoreSpecGroup): void {
  if (spec.kind !== "chunked_local") return;
  const { applyEagle, alignmentTokens } = search;
  if (applyEagle && useEagle)
    throw lookupError(
      `group ${groupIds[0]} is chunked local attention, which can't drop a block for speculative decoding`,
      { groupIds },
    );
  if (spec.blockSize !== alignmentTokens)
    throw lookupError(
      `group ${groupIds[0]} is chunked local attention with blocks of ${spec.blockSize} tokens, but hits are multiples of ` +
        `${alignmentTokens}; both must be equal`,
      { groupIds, blockSize: spec.blockSize, alignmentTokens },
    );
}
