import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { prefixCacheable } from "../spec/kv-cache-spec.js";
import type { PrefixSearch } from "./prefix-search.js";

/** The blocks of one group that a lookup may ask about: positions of the hashes that end them, ascending. */
export interface LookupCandidates {
  /** The store's group. */
  readonly groupId: number;
  /** Positions of the hashes in the prompt, ascending. */
  readonly hashIndexes: Uint32Array;
}

/**
 * The blocks of each prefix-cacheable group that can matter to a prompt: with partial hits every hash, else the blocks
 * of the lookup mask. Whatever else is stored stays invisible.
 *
 * @param numHashes block hashes of the prompt.
 * @throws MooncakeKvError `ERR_LOOKUP` for a number of tokens that is none.
 */
export function lookupCandidates(
  coordinator: PrefixSearch,
  numTokens: number,
  numHashes: number,
): LookupCandidates[] {
  const tokenLen = coordinator.alignLookupLength(numTokens);
  const candidates: LookupCandidates[] = [];
  for (const [groupId, { kvCacheSpec }] of coordinator.kvCacheGroups.entries()) {
    if (!prefixCacheable(kvCacheSpec)) continue;
    const hashIndexes =
      numHashes === 0 || tokenLen === 0
        ? new Uint32Array(0)
        : coordinator.enablePartialHashHits
          ? every(Math.min(numHashes, Math.floor(tokenLen / coordinator.hashBlockSize)))
          : masked(coordinator, groupId, tokenLen, numHashes);
    candidates.push({ groupId, hashIndexes });
  }
  return candidates;
}

function every(count: number): Uint32Array {
  const indexes = new Uint32Array(count);
  for (let i = 0; i < count; i++) indexes[i] = i;
  return indexes;
}

function masked(
  coordinator: PrefixSearch,
  groupId: number,
  tokenLen: number,
  numHashes: number,
): Uint32Array {
  const { blockSize } = coordinator.coverageSpec(groupId);
  const scale = blockSize / coordinator.hashBlockSize;
  const blocks = Math.min(Math.floor(numHashes / scale), Math.floor(tokenLen / blockSize));
  const mask = coordinator.lookupMaskOf(groupId, blocks);
  const indexes = new Uint32Array(blocks);
  let found = 0;
  for (let block = 0; block < blocks; block++)
    if (mask === undefined || mask[block] === 1) indexes[found++] = (block + 1) * scale - 1;
  return indexes.subarray(0, found);
}

/** The hashes at some positions as one blob; a view where the positions follow each other. */
export function gatherHashes(hashes: BlobBlockHashes, indexes: Uint32Array): BlobBlockHashes {
  const { blob, hashLength } = hashes;
  const count = indexes.length;
  const first = indexes[0] ?? 0;
  if (count > 0 && isConsecutive(indexes))
    return new BlobBlockHashes(blob.subarray(first * hashLength, (first + count) * hashLength), hashLength);
  const gathered = new Uint8Array(count * hashLength);
  for (let i = 0; i < count; i++) {
    const from = indexes[i]! * hashLength;
    const to = i * hashLength;
    for (let byte = 0; byte < hashLength; byte++) gathered[to + byte] = blob[from + byte]!;
  }
  return new BlobBlockHashes(gathered, hashLength);
}

function isConsecutive(indexes: Uint32Array): boolean {
  const first = indexes[0]!;
  for (let i = 1; i < indexes.length; i++) if (indexes[i] !== first + i) return false;
  return true;
}
