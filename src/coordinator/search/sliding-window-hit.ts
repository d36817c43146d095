import type { SlidingWindowSpec } from "../spec/kv-cache-spec.js";
import { Wanted } from "./existence-table.js";
import {
  blocksPerAlignment,
  checkedBlocks,
  firstMissing,
  type GroupHit,
  type GroupSearch,
  hashIndex,
  type Search,
  wanted,
} from "./group-search.js";

/** Blocks in a row that a hit needs: the window, and one more where the last one is dropped again. */
export function contiguousBlocksForHit(windowSize: number, blockSize: number, useEagle: boolean): number {
  return Math.ceil((windowSize - 1) / blockSize) + (useEagle ? 1 : 0);
}

/**
 * The last window of present blocks that ends at an aligned block. Where no whole window is there, blocks that reach
 * back to the first one are a hit as well.
 *
 * vLLM reads every block from the right. The result is the same when each window is read from its left end: a missing
 * block there rules out all windows that contain it, so that a miss costs one block a window.
 */
export function slidingWindowHit(search: GroupSearch, spec: SlidingWindowSpec): Search<GroupHit> {
  const { dropEagleBlock: drop } = search;
  const { blockSize } = spec;
  const maxBlocks = checkedBlocks(search);
  const need = Math.max(1, contiguousBlocksForHit(spec.slidingWindow, blockSize, drop));
  const period = blocksPerAlignment(search);
  const aligned = (end: number) => {
    const excess = (drop ? end : end + 1) % period;
    return end - (excess < 0 ? excess + period : excess);
  };
  const stride = Math.ceil(need / period) * period;

  let end = aligned(maxBlocks - 1);
  for (let first = true; end - need + 1 >= 0; first = false) {
    const start = end - need + 1;
    const missing = firstMissing(search, start, end);
    // Until a window was found incomplete it is likely whole, so all of it is wanted at once.
    if (missing instanceof Wanted)
      return first || missing.first !== hashIndex(search, start)
        ? missing
        : wanted(search, start, -stride, Math.floor(start / stride) + 1);
    if (missing > end) return windowHit(search, start, end + 1);
    end = aligned(missing - 1);
  }
  const missing = firstMissing(search, 0, Math.min(need - 2, maxBlocks - 1));
  if (missing instanceof Wanted) return missing;
  const length = Math.max(0, aligned(missing - 1) + 1);
  return windowHit(search, 0, length - (length % period));
}

/** The hit of blocks [start, end), less the one that the draft model recomputes. */
function windowHit(search: GroupSearch, start: number, end: number): GroupHit {
  const period = blocksPerAlignment(search);
  let numBlocks = end;
  if (search.dropEagleBlock && numBlocks > 0) {
    numBlocks--;
    numBlocks -= numBlocks % period;
  }
  return {
    hitLength: numBlocks * search.group.spec.blockSize,
    nulls: Math.min(start, numBlocks),
    numBlocks,
  };
}
