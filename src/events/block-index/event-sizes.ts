import { describe } from "../../errors.js";
import type { BlockStored } from "../kv-events.js";
import type { Holder } from "./block-holders.js";
import type { EngineConfig } from "./engine-config.js";
import { isMambaKind } from "./learned-groups.js";

/** What the size of an event's blocks says: the size of the group's blocks from now on, or why the event is passed over. */
export type StoredSize =
  | { readonly learned: number; readonly problem?: undefined }
  | { readonly problem: string; readonly reason: "block-size" | "unknown-group" };

/**
 * Whether blocks of that size can be of that group. Tails that end inside a block are published in blocks of one hash;
 * everything else has the size of the group. Tiers below the GPU may leave the size out, and cut blocks anew.
 */
export function sizeOfStored(
  event: BlockStored,
  holder: Holder | undefined,
  config: EngineConfig,
  groupIdx: number,
  onDevice: boolean,
): StoredSize {
  const { blockSize: size } = event;
  const { hashBlockSize, groups } = config;
  const known = holder?.group(groupIdx);
  const learned = known?.blockSize ?? 0;
  if (groups !== undefined && groupIdx >= groups.length)
    return {
      reason: "unknown-group",
      problem: `an event is of KV cache group ${groupIdx}, but the engine is configured with ${groups.length} groups`,
    };
  if (size % hashBlockSize !== 0)
    return wrong(event, groupIdx, `a multiple of ${hashBlockSize}, the tokens of one hash`);
  if (size === 0 || !onDevice) return { learned: learned > 0 ? learned : size };
  if (groups !== undefined) {
    const expected = groups[groupIdx]!.kvCacheSpec.blockSize;
    if (size === expected || (size === hashBlockSize && holder?.plan?.fine === true))
      return { learned: expected };
    return wrong(event, groupIdx, `${expected}, as it is configured`);
  }
  if (learned === 0 || size === learned) return { learned: size };
  // Only with recurrent states do hits end inside blocks; then the first event of a group may be such a tail.
  const tails = isMambaKind(event.kvCacheSpecKind) || hasStates(holder);
  if (tails && size === hashBlockSize) return { learned };
  if (tails && learned === hashBlockSize) return { learned: size };
  return wrong(event, groupIdx, `${learned}, as before`);
}

function hasStates(holder: Holder | undefined): boolean {
  for (const { kind } of holder?.groups.values() ?? []) if (isMambaKind(kind)) return true;
  return false;
}

function wrong({ blockSize }: BlockStored, groupIdx: number, right: string): StoredSize {
  return {
    reason: "block-size",
    problem: `an event has blocks of ${describe(blockSize)} tokens in KV cache group ${groupIdx}; right would be ${right}`,
  };
}
