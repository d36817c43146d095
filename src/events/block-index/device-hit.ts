import { findLongestHit, type LongestHit } from "../../coordinator/search/longest-hit.js";
import type { EnginePlan } from "./engine-plan.js";
import type { EngineBlocks } from "./prompt-blocks.js";

/** The hit of an engine's own cache, and the groups that last made it shorter. */
export type DeviceHit = Pick<LongestHit, "hitLength" | "limitedBy">;

/**
 * What an engine would hit in its own cache: the search of vLLM's `KVCacheManager` over the blocks that its events told
 * of.
 *
 * @param maxLength tokens that the hit may have at most.
 */
export function deviceHit(
  plan: EnginePlan,
  existence: EngineBlocks,
  maxLength: number,
  applyEagle: boolean = plan.applyEagle,
): DeviceHit {
  const { specGroups, hashBlockSize, fine, step, unitary, provesBeyondMaximum } = plan;
  // Nothing is unknown here, so that the search never has to ask.
  return findLongestHit({
    specGroups,
    hashBlockSize,
    enablePartialHashHits: fine,
    alignmentTokens: step,
    existence,
    maxLength,
    applyEagle,
    lengthOnly: true,
    unitary,
    proofBound: provesBeyondMaximum ? undefined : maxLength,
  }) as LongestHit;
}
