import { lookupChecks } from "../checks.js";
import {
  isSlidingWindow,
  type KvCacheSpec,
  type SlidingWindowSpec,
  unwrapSpec,
} from "../spec/kv-cache-spec.js";
import { contiguousBlocksForHit } from "./sliding-window-hit.js";

/** Which blocks of a group are worth keeping: 1 or 0 a block; undefined stands for all of them. */
export type BlockMask = Uint8Array | undefined;

/** What decides the blocks that a hit can ever need. */
export interface ReachableBlocks {
  readonly spec: KvCacheSpec;
  /** First block of the mask. */
  readonly startBlock: number;
  /** Block after the last one. */
  readonly endBlock: number;
  /** What the length of a hit is a multiple of, in tokens; null for no rule. */
  readonly alignmentTokens: number | null;
  /** Whether the group needs a block beyond a hit, for speculative decoding. Default: false. */
  readonly useEagle?: boolean | undefined;
  /** Tokens between two kept checkpoints; 0 keeps none but the boundaries; null, the default, one an alignment. */
  readonly retentionInterval?: number | null | undefined;
  /** Token positions whose blocks are kept besides; they count only where `retentionInterval` is set. Default: none. */
  readonly reachableBoundaries?: readonly number[] | undefined;
  /** Factor between the block size of the spec and that of the mask. Default: 1. */
  readonly dcpWorldSize?: number | undefined;
  /** Block after the last one of the request, whose unfinished segment is kept too. Default: null. */
  readonly finalSegmentEndBlock?: number | null | undefined;
}

/**
 * Which blocks can serve a hit. A full or chunked attention group needs all of them; a sliding window the last ones
 * before each place where a hit may end; Mamba the one state there. Mirrors `reachable_block_mask` of vLLM's managers.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` for numbers that are no whole ones.
 */
export function reachableBlockMask(blocks: ReachableBlocks): BlockMask {
  checkNumbers(blocks);
  const spec = unwrapSpec(blocks.spec);
  if (isSlidingWindow(spec)) return slidingWindowMask(blocks, spec);
  return spec.kind === "mamba" ? mambaMask(blocks, spec.blockSize) : undefined;
}

function slidingWindowMask(blocks: ReachableBlocks, spec: SlidingWindowSpec): BlockMask {
  const { startBlock, endBlock, alignmentTokens, useEagle = false } = blocks;
  const { retentionInterval = null, reachableBoundaries = [], finalSegmentEndBlock = null } = blocks;
  const blockSize = spec.blockSize * (blocks.dcpWorldSize ?? 1);
  if (alignmentTokens === null || alignmentTokens % blockSize !== 0) return undefined;
  const need = contiguousBlocksForHit(spec.slidingWindow, blockSize, useEagle);
  const shift = useEagle ? 1 : 0;
  const mask = newMask(blocks);
  const keep = (from: number, to: number) => keepRange(mask, startBlock, from, Math.min(to, endBlock));

  if (retentionInterval !== 0) {
    const perSegment = Math.floor((retentionInterval ?? alignmentTokens) / blockSize);
    if (need >= perSegment) return undefined;
    // Segment k ends at block (k + 1) * perSegment + shift; the first to reach into the mask is found by division.
    const firstEnd = Math.floor((startBlock - shift) / perSegment) * perSegment + shift;
    if (need > 0)
      for (let end = Math.max(firstEnd, shift) + perSegment; end - need < endBlock; end += perSegment)
        keep(end - need, end);
    if (finalSegmentEndBlock !== null && !useEagle) {
      const size = finalSegmentEndBlock % perSegment;
      if (size > 0)
        keep(Math.max(finalSegmentEndBlock - size, finalSegmentEndBlock - need), finalSegmentEndBlock);
    }
  }
  if (retentionInterval !== null)
    for (const boundary of reachableBoundaries) {
      const end = (Math.floor(boundary / alignmentTokens) * alignmentTokens) / blockSize + shift;
      keep(end - need, end);
    }
  return mask;
}

function mambaMask(blocks: ReachableBlocks, blockSize: number): BlockMask {
  const { startBlock, endBlock, alignmentTokens } = blocks;
  const { retentionInterval = null, reachableBoundaries = [] } = blocks;
  if (retentionInterval === null || alignmentTokens === null) return undefined;
  const mask = newMask(blocks);
  if (retentionInterval > 0) {
    const perSegment = Math.floor(retentionInterval / blockSize);
    if (perSegment <= 1) return undefined;
    const first = Math.floor((startBlock + perSegment) / perSegment) * perSegment - 1;
    for (let block = first; block < endBlock; block += perSegment) mask[block - startBlock] = 1;
  }
  for (const boundary of reachableBoundaries) {
    const aligned = Math.floor(boundary / alignmentTokens) * alignmentTokens;
    const block = Math.floor(aligned / blockSize) - 1;
    keepRange(mask, startBlock, block, Math.min(block + 1, endBlock));
  }
  return mask;
}

function newMask({ startBlock, endBlock }: ReachableBlocks): Uint8Array {
  return new Uint8Array(Math.max(0, endBlock - startBlock));
}

/** Marks the blocks [from, to) that lie in a mask which begins at block `startBlock`. */
function keepRange(mask: Uint8Array, startBlock: number, from: number, to: number): void {
  const begin = Math.max(startBlock, from) - startBlock;
  if (to - startBlock > begin) mask.fill(1, begin, to - startBlock);
}

function checkNumbers(blocks: ReachableBlocks): void {
  const { startBlock, endBlock, alignmentTokens, retentionInterval, dcpWorldSize } = blocks;
  lookupChecks.whole("startBlock", startBlock, 0);
  lookupChecks.whole("endBlock", endBlock, 0);
  lookupChecks.whole("alignmentTokens", alignmentTokens ?? 1, 1);
  lookupChecks.whole("retentionInterval", retentionInterval ?? 0, 0);
  lookupChecks.whole("dcpWorldSize", dcpWorldSize ?? 1, 1);
  lookupChecks.whole("finalSegmentEndBlock", blocks.finalSegmentEndBlock ?? 0, 0);
  for (const boundary of blocks.reachableBoundaries ?? [])
    lookupChecks.whole("reachableBoundaries", boundary, Number.MIN_SAFE_INTEGER);
}
