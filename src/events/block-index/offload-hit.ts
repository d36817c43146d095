import { isFullAttention, isSlidingWindow } from "../../coordinator/spec/kv-cache-spec.js";
import type { EnginePlan, PlannedGroup } from "./engine-plan.js";
import type { EngineBlocks } from "./prompt-blocks.js";

/** A group of the tiers below the GPU: several blocks make a chunk, which is named by the hash of its last block. */
interface ChunkedGroup {
  readonly groupIdx: number;
  /** Tokens of a chunk. */
  readonly chunk: number;
  /** Chunks at the end of a prefix that are enough; undefined where all are needed. */
  readonly window: number | undefined;
  /** Tokens before its last one that a window reaches back. */
  readonly reach: number;
  readonly isEagleGroup: boolean;
}

/**
 * How far the tiers below the GPU carry a hit that the engine's own cache begins. Mirrors `_lookup_complete_chunks` of
 * vLLM's offloading scheduler.
 *
 * @param existence what the engine has on these tiers.
 * @param start tokens that the engine's own cache has.
 * @param maxLength tokens that the hit may have at most.
 * @returns tokens of the whole hit; `start` where less than a chunk could be loaded.
 */
export function offloadHit(
  plan: EnginePlan,
  existence: EngineBlocks,
  start: number,
  maxLength: number,
): number {
  const groups = plan.groups.map((group) => chunked(group, plan.offloadChunkBlocks));
  const full = groups.filter(({ window }) => window === undefined);
  const windows = groups.filter(({ window }) => window !== undefined).sort((a, b) => b.window! - a.window!);
  const verified = new Set<ChunkedGroup>();
  let most = alignedToStates(plan, maxLength);
  let hit = 0;
  let due = [...full, ...windows];
  while (due.length > 0) {
    let searchedWindow = false;
    const turn = due;
    due = [];
    for (const group of turn) {
      const { chunk } = group;
      const chunks = Math.floor((existence.numHashes * plan.hashBlockSize) / chunk);
      const drop = group.isEagleGroup && !verified.has(group);
      most = Math.min(most, chunks * chunk);
      if (most - start < chunk) return start;
      const end = Math.min(Math.ceil((drop ? most + chunk : most) / chunk), chunks);
      const first = Math.floor(start / chunk);
      const found =
        group.window === undefined
          ? prefix(plan, existence, group, first, end)
          : lastWindow(plan, existence, group, { first, end, drop, most });
      if (found === 0) return start;
      if (drop) verified.add(group);
      most = Math.min(most, chunk * (first + found - (drop ? 1 : 0)));
      if (most - start < chunk) return start;
      if (most - start < hit) {
        if (!group.isEagleGroup) verified.clear();
        if (searchedWindow && due.length === 0) due = windows;
      }
      if (group.window !== undefined) searchedWindow = true;
      hit = most - start;
    }
  }
  return start + hit;
}

/** How `offloadHit` sees a group. */
function chunked({ groupIdx, group }: PlannedGroup, chunkBlocks: number): ChunkedGroup {
  const spec = group.kvCacheSpec.kind === "uniform" ? group.kvCacheSpec.inner[0]! : group.kvCacheSpec;
  const chunk = spec.blockSize * chunkBlocks;
  const isEagleGroup = group.isEagleGroup ?? false;
  const common = { groupIdx, chunk, isEagleGroup, reach: 0 };
  if (isFullAttention(spec)) return { ...common, window: undefined };
  if (isSlidingWindow(spec))
    return { ...common, window: Math.ceil(spec.slidingWindow / chunk), reach: spec.slidingWindow - 1 };
  return {
    ...common,
    window: spec.kind === "chunked_local" ? Math.ceil(spec.attentionChunkSize / chunk) : 1,
  };
}

/** Aligned states end hits at whole chunks. */
function alignedToStates({ groups, offloadChunkBlocks }: EnginePlan, maxLength: number): number {
  const mamba = groups.find(
    ({ group: { kvCacheSpec } }) => kvCacheSpec.kind === "mamba" && kvCacheSpec.mambaCacheMode === "align",
  );
  return mamba === undefined
    ? maxLength
    : maxLength - (maxLength % (mamba.group.kvCacheSpec.blockSize * offloadChunkBlocks));
}

function hasChunk(
  { hashBlockSize }: EnginePlan,
  existence: EngineBlocks,
  group: ChunkedGroup,
  at: number,
): boolean {
  return existence.has(group.groupIdx, ((at + 1) * group.chunk) / hashBlockSize - 1);
}

/** Chunks in a row from `first` on. */
function prefix(
  plan: EnginePlan,
  existence: EngineBlocks,
  group: ChunkedGroup,
  first: number,
  end: number,
): number {
  let at = first;
  while (at < end && hasChunk(plan, existence, group, at)) at++;
  return at - first;
}

/** Chunks from `first` to the end of the last whole window; those at the start where no window is whole. */
function lastWindow(
  plan: EnginePlan,
  existence: EngineBlocks,
  group: ChunkedGroup,
  { first, end, drop, most }: { first: number; end: number; drop: boolean; most: number },
): number {
  const extra = drop ? 1 : 0;
  const needed = group.window! + extra;
  // A hit that ends inside a chunk pushes the window's left edge back.
  const candidate = Math.min(most, (end - extra) * group.chunk);
  const padding = (group.chunk - (candidate % group.chunk)) % group.chunk;
  let due = Math.max(needed, Math.ceil((group.reach + padding) / group.chunk) + extra);
  let run = 0;
  for (let at = end - 1; at >= first; at--) {
    if (hasChunk(plan, existence, group, at)) run++;
    else {
      run = 0;
      due = needed;
    }
    if (run === due) return at - first + due;
  }
  return run;
}
