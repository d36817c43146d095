import { describe } from "../../errors.js";
import { configChecks, configError, lookupChecks } from "../checks.js";
import { coverageSpec, isSlidingWindow, type KvCacheGroupSpec, type KvCacheSpec } from "./kv-cache-spec.js";

/**
 * Checks how often a checkpoint is kept: null keeps all, 0 only where a prompt may be replayed, a positive number of
 * tokens one a segment. Mirrors `_validate_prefix_cache_retention_interval`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a number that is no multiple of the scheduler block size, and for one above
 * 0 where no sliding window or Mamba group exists that it could thin out.
 */
export function validatePrefixCacheRetentionInterval(
  retentionInterval: number | null,
  schedulerBlockSize: number,
  kvCacheGroups: readonly KvCacheGroupSpec[],
): void {
  if (retentionInterval === null || retentionInterval === 0) return;
  const sparse = kvCacheGroups.some(({ kvCacheSpec: spec }) => isSparse(spec));
  if (!sparse)
    throw configError(
      `retentionInterval ${describe(retentionInterval)} has no effect without a sliding window or Mamba group; set it to 0`,
      { retentionInterval },
    );
  configChecks.whole("schedulerBlockSize", schedulerBlockSize, 1);
  configChecks.whole("retentionInterval", retentionInterval, 0);
  if (retentionInterval % schedulerBlockSize !== 0)
    throw configError(
      `retentionInterval ${retentionInterval} is no multiple of the scheduler block size ${schedulerBlockSize}`,
      { retentionInterval, schedulerBlockSize },
    );
}

// As vLLM, which asks the spec of the group itself: a uniform group does not count.
function isSparse(spec: KvCacheSpec): boolean {
  return spec.kind !== "uniform" && (spec.kind === "mamba" || isSlidingWindow(coverageSpec(spec)));
}

/**
 * Token positions at which a later request that replays the prompt can resume. Sparse groups keep what a hit there
 * needs. Mirrors `replay_boundaries` of vllm-0.33.
 *
 * Without speculative decoding that is one position, the last token but one. With it there are two, both a block below,
 * because the matched block is dropped: an identical prompt resumes below its last token, a longer one at the last
 * whole block.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` for numbers that are no whole ones.
 */
export function replayBoundaries(
  numPromptTokens: number,
  schedulerBlockSize: number,
  useEagle: boolean,
): number[] {
  lookupChecks.whole("numPromptTokens", numPromptTokens, 0);
  lookupChecks.whole("schedulerBlockSize", schedulerBlockSize, 1);
  if (!useEagle) return [numPromptTokens - 1];
  const below = (tokens: number) =>
    Math.max((Math.floor(tokens / schedulerBlockSize) - 1) * schedulerBlockSize, 0);
  const resend = below(numPromptTokens - 1);
  const extension = below(numPromptTokens);
  return resend === extension ? [resend] : [resend, extension];
}

/**
 * Where the reusable Mamba state of a prefill lies: the last hash boundary that leaves a token to compute, and one hash
 * further down where speculative decoding drops it anyway. Mirrors `get_mamba_prefill_checkpoint_position`.
 *
 * @param numHashLookaheadTokens tokens that the hash covers beyond its block. Default: 0.
 * @throws MooncakeKvError `ERR_LOOKUP` for numbers that are no whole ones.
 */
export function mambaPrefillCheckpointPosition(
  numTokens: number,
  hashBlockSize: number,
  dropEagleBlock: boolean,
  numHashLookaheadTokens: number = 0,
): number {
  lookupChecks.whole("numTokens", numTokens, 0);
  lookupChecks.whole("hashBlockSize", hashBlockSize, 1);
  lookupChecks.whole("numHashLookaheadTokens", numHashLookaheadTokens, 0);
  const limit = dropEagleBlock ? numTokens : numTokens - Math.max(1, numHashLookaheadTokens);
  const position = Math.floor(limit / hashBlockSize) - (dropEagleBlock ? 1 : 0);
  return Math.max(position * hashBlockSize, 0);
}
