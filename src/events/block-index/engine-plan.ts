import { partialHashHitsEnabled } from "../../coordinator/spec/block-sizes.js";
import {
  isFullAttention,
  type KvCacheGroupSpec,
  prefixCacheable,
} from "../../coordinator/spec/kv-cache-spec.js";
import { leastCommonMultiple } from "../../coordinator/spec/multiples.js";
import { type StoreSpecGroup, splitSpecGroups } from "../../coordinator/spec/spec-groups.js";
import { RELEASES } from "../../release.js";
import type { EngineConfig } from "./engine-config.js";
import { type LearnedGroup, learnedSpec } from "./learned-groups.js";

/** A group that takes part in a match. */
export interface PlannedGroup {
  readonly groupIdx: number;
  readonly group: KvCacheGroupSpec;
}

/** How the hits of an engine are found: its groups, and what the length of a hit is a multiple of. */
export interface EnginePlan {
  /** Tokens of one hash of a prompt. */
  readonly hashBlockSize: number;
  /** Groups that count, in order. */
  readonly groups: readonly PlannedGroup[];
  /** The same, groups of equal specs as one; their `groupIds` are the numbers that events use. */
  readonly specGroups: readonly StoreSpecGroup[];
  /** Tokens; every hit is a multiple of it. Mirrors `cache_hit_alignment_tokens`. */
  readonly step: number;
  /** Whether hits may end inside a block. Mirrors `enable_partial_hash_hits`. */
  readonly fine: boolean;
  /** Whether there is one cache group in all. */
  readonly unitary: boolean;
  /** Whether speculative groups drop their last matched block. */
  readonly applyEagle: boolean;
  /** Whether a speculative group may prove its last block behind the longest hit that is allowed. */
  readonly provesBeyondMaximum: boolean;
  /** Blocks of one chunk of the tiers below the GPU. */
  readonly offloadChunkBlocks: number;
  /** Why no hit can be said; then nothing matches. */
  readonly unusable: string | undefined;
}

/** The plan of an engine: its configured groups, or those that its events have told of; undefined while there are none. */
export function enginePlan(
  config: EngineConfig,
  groups: ReadonlyMap<number, LearnedGroup>,
): EnginePlan | undefined {
  const all =
    config.groups?.map((group, groupIdx) => flagged(config, groupIdx, group)) ?? known(config, groups);
  if (all.length === 0) return undefined;
  const { hashBlockSize } = config;
  const counted = all.filter(({ group }) => prefixCacheable(group.kvCacheSpec));
  const unitary = all.length === 1;
  const specs = all.map(({ group }) => group);
  const multiple = all.map(({ group }) => group.kvCacheSpec.blockSize).reduce(leastCommonMultiple);
  const fine = !unitary && partialHashHitsEnabled(specs, hashBlockSize, 1, true);
  const step = fine ? hashBlockSize : multiple;
  const specGroups = splitSpecGroups(
    counted.map(({ group }) => group),
    config.eagle,
  ).map((group) => ({ ...group, groupIds: group.groupIds.map((index) => counted[index]!.groupIdx) }));
  return {
    hashBlockSize,
    groups: counted,
    specGroups,
    step,
    fine,
    unitary,
    applyEagle: config.eagle,
    provesBeyondMaximum: !unitary && RELEASES.indexOf(config.release) >= RELEASES.indexOf("vllm-0.33"),
    offloadChunkBlocks: config.offloadChunkBlocks,
    unusable: unusable(specGroups, step, config),
  };
}

/** Whether one full attention group is all there is: then a hit is a run of blocks from the first one on. */
export function isPlainPlan({ unitary, specGroups, unusable }: EnginePlan): boolean {
  return unitary && unusable === undefined && specGroups.length === 1 && isFullAttention(specGroups[0]!.spec);
}

function known(config: EngineConfig, groups: ReadonlyMap<number, LearnedGroup>): PlannedGroup[] {
  return [...groups]
    .sort(([a], [b]) => a - b)
    .map(([groupIdx, group]) => {
      const sized = group.blockSize > 0 ? group : { ...group, blockSize: config.hashBlockSize };
      return flagged(config, groupIdx, { kvCacheSpec: learnedSpec(sized, config.chunkSizes.get(groupIdx)) });
    });
}

function flagged({ eagleGroups }: EngineConfig, groupIdx: number, group: KvCacheGroupSpec): PlannedGroup {
  const isEagleGroup = (group.isEagleGroup ?? false) || eagleGroups.has(groupIdx);
  return { groupIdx, group: { ...group, isEagleGroup } };
}

/** Shapes that vLLM refuses, so that no engine has them: what is known of the engine is wrong. */
function unusable(
  specGroups: readonly StoreSpecGroup[],
  step: number,
  { eagle }: EngineConfig,
): string | undefined {
  if (specGroups.length === 0) return "none of its groups takes part in prefix caching";
  if (!Number.isSafeInteger(step)) return "its groups have no common multiple below 2^53";
  for (const { spec, groupIds, useEagle } of specGroups) {
    if (spec.kind !== "chunked_local") continue;
    if (spec.blockSize !== step)
      return `group ${groupIds[0]} is chunked attention with blocks of ${spec.blockSize} tokens, but hits are multiples of ${step}`;
    if (eagle && useEagle) return `group ${groupIds[0]} is chunked attention, which can't drop a block`;
  }
  return undefined;
}
