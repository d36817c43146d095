import { lookupError } from "../checks.js";
import type { ChunkedLocalAttentionSpec } from "../spec/kv-cache-spec.js";
import { ABSENT, UNKNOWN, Wanted } from "./existence-table.js";
import {
  beyondHashes,
  blocksPerAlignment,
  checkedBlocks,
  type GroupHit,
  type GroupSearch,
  hashIndex,
  isFine,
  lastPresent,
  type Search,
  wanted,
} from "./group-search.js";
import { slidingWindowHit } from "./sliding-window-hit.js";

const MISS: GroupHit = { hitLength: 0, nulls: 0, numBlocks: 0 };

/**
 * The longest prefix that one spec group has. Mirrors `find_longest_cache_hit` of vLLM's managers.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` where vLLM raises: chunked local attention in an unsupported setting, a length
 * beyond the hashes, cross attention.
 */
export function findGroupHit(search: GroupSearch): Search<GroupHit> {
  const { spec } = search.group;
  switch (spec.kind) {
    case "full":
    case "mla":
    case "rswa":
      return fullAttentionHit(search);
    case "swa":
    case "swa_mla":
      return slidingWindowHit(search, spec);
    case "chunked_local":
      return chunkedLocalHit(search, spec);
    case "mamba":
      return mambaHit(search);
    case "circular":
      return MISS;
    case "cross":
      throw lookupError("cross attention has no reusable prefix; leave its group out", {
        groupIds: search.group.groupIds,
      });
  }
}

/** Left to right over whole blocks, then, with fine hashes, right to left inside the first block that is not whole. */
function fullAttentionHit(search: GroupSearch): Search<GroupHit> {
  const { existence, maxLength, alignmentTokens } = search;
  const { blockSize } = search.group.spec;
  const { groupIds } = search.group;
  const scale = blockSize / search.hashBlockSize;
  const limit = Math.min(Math.floor(maxLength / blockSize), Math.floor(existence.numHashes / scale));
  let blocks = 0;
  for (; blocks < limit; blocks++) {
    const index = (blocks + 1) * scale - 1;
    const state = existence.all(groupIds, index);
    if (state === UNKNOWN) return new Wanted(groupIds, index, scale, limit - blocks);
    if (state === ABSENT) break;
  }
  let hitLength = blocks * blockSize;
  if (isFine(search)) {
    const first = blocks * scale;
    const end = Math.min(first + scale - 1, Math.floor(maxLength / alignmentTokens), existence.numHashes);
    const index = lastPresent(search, end - 1, first, 1);
    if (index instanceof Wanted) return index;
    if (index >= first) {
      blocks++;
      hitLength = (index + 1) * alignmentTokens;
    }
  }
  if (search.dropEagleBlock && hitLength > 0) hitLength -= Math.min(alignmentTokens, blockSize);
  hitLength -= hitLength % alignmentTokens;
  return { hitLength, nulls: 0, numBlocks: Math.min(blocks, Math.ceil(hitLength / blockSize)) };
}

/** Blocks of earlier chunks are never attended to again, so they count as computed; after them left to right. */
function chunkedLocalHit(search: GroupSearch, spec: ChunkedLocalAttentionSpec): Search<GroupHit> {
  const { maxLength } = search;
  const { blockSize, attentionChunkSize } = spec;
  const maxBlocks = Math.floor(maxLength / blockSize);
  const localStart = Math.floor(maxLength / attentionChunkSize) * attentionChunkSize;
  const nulls = Math.floor(localStart / blockSize);
  let end = nulls;
  for (; end < maxBlocks; end++) {
    if (hashIndex(search, end) >= search.existence.numHashes) throw beyondHashes(search, maxBlocks);
    const state = search.existence.all(search.group.groupIds, hashIndex(search, end));
    if (state === UNKNOWN) return wanted(search, end, 1, maxBlocks - end);
    if (state === ABSENT) break;
  }
  return { hitLength: end * blockSize, nulls, numBlocks: end };
}

/** A recurrent state covers everything before it: the last one at an aligned place is the hit. */
function mambaHit(search: GroupSearch): Search<GroupHit> {
  const { existence, maxLength, hashBlockSize } = search;
  const { blockSize } = search.group.spec;
  const scale = blockSize / hashBlockSize;
  const fine = isFine(search);
  let last: number;
  let step: number;
  if (fine) {
    last = Math.min(Math.floor(maxLength / hashBlockSize), existence.numHashes) - 1;
    step = 1;
  } else {
    const period = blocksPerAlignment(search);
    const maxBlocks = checkedBlocks(search);
    last = hashIndex(search, maxBlocks - (maxBlocks % period) - 1);
    step = period * scale;
  }
  const index = lastPresent(search, last, 0, step);
  if (index instanceof Wanted) return index;
  if (index < 0) return MISS;
  const nulls = Math.floor(index / scale);
  return { hitLength: (index + 1) * hashBlockSize, nulls, numBlocks: nulls + 1 };
}
