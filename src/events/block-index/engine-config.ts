import type { BlockIndexEngine, BlockIndexGroup } from "../../../generated/typescript/index.js";
import {
  checkKvCacheGroups,
  type KvCacheGroupSpec,
  type LayerSpec,
} from "../../coordinator/spec/kv-cache-spec.js";
import { describe } from "../../errors.js";
import { checkNames } from "../../lookup/options.js";
import { DEFAULT_RELEASE, RELEASES, type Release } from "../../release.js";
import { configError } from "../errors.js";

/** A KV cache group as an index needs it: `BlockIndexGroup` of the schemas, where what has a default may be left out. */
export type BlockIndexGroupInit = Pick<BlockIndexGroup, "kind" | "blockSize"> & {
  readonly [Member in keyof BlockIndexGroup]?: BlockIndexGroup[Member] | undefined;
};

/**
 * What an index has to be told of an engine, because its events don't say it: `BlockIndexEngine` of the schemas, where
 * what has a default may be left out.
 */
export interface BlockIndexEngineInit {
  /** The vLLM release that it runs. Default: the newest. */
  readonly release?: string | null | undefined;
  /** Tokens of one block hash: the engine's `hash_block_size`. Default: `blockSize` of the index. */
  readonly hashBlockSize?: number | null | undefined;
  /** All its KV cache groups, in order. Default: learned from its events, group by group as they come. */
  readonly groups?: readonly BlockIndexGroupInit[] | null | undefined;
  /** By group: tokens of one attention chunk (`attention_chunk_size`) of groups that are learned. */
  readonly chunkSizes?: ReadonlyMap<number, number> | Readonly<Record<number, number>> | null | undefined;
  /** Whether speculative decoding drops the last matched block (`use_eagle_block_drop`). Default: false. */
  readonly eagle?: boolean | null | undefined;
  /** Groups with layers of the draft model. Default: those whose `isEagleGroup` is set; where there is none, all. */
  readonly eagleGroups?: Iterable<number> | null | undefined;
  /** Blocks of one chunk of the tiers below the GPU. Default: 1. */
  readonly offloadChunkBlocks?: number | null | undefined;
}

/** What is configured of an engine, checked. */
export interface EngineConfig {
  readonly release: Release;
  readonly hashBlockSize: number;
  /** The groups, by their position; undefined where they are learned. */
  readonly groups: readonly KvCacheGroupSpec[] | undefined;
  readonly chunkSizes: ReadonlyMap<number, number>;
  readonly eagle: boolean;
  readonly eagleGroups: ReadonlySet<number>;
  readonly offloadChunkBlocks: number;
}

const NAMES: readonly (keyof BlockIndexEngine)[] = [
  "release",
  "hashBlockSize",
  "groups",
  "chunkSizes",
  "eagle",
  "eagleGroups",
  "offloadChunkBlocks",
];

/**
 * Checks what is said of an engine.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the member, its value and what would be right.
 */
export function engineConfig(engine: string, init: BlockIndexEngineInit, blockSize: number): EngineConfig {
  checkNames(`engine ${describe(engine)}`, init, NAMES);
  const { release, hashBlockSize, groups, chunkSizes, eagle, eagleGroups, offloadChunkBlocks } = init;
  if (release != null && !(RELEASES as readonly unknown[]).includes(release))
    throw configError(
      `release of engine ${describe(engine)} is ${describe(release)}; one of ${RELEASES.join(", ")} is expected`,
      { engine, release },
    );
  checkFlag(`eagle of engine ${describe(engine)}`, eagle);
  const size = positive(engine, "hashBlockSize", hashBlockSize ?? blockSize);
  return {
    release: (release as Release | null | undefined) ?? DEFAULT_RELEASE,
    hashBlockSize: size,
    groups: groups == null ? undefined : checkedGroups(engine, groups, size),
    chunkSizes: checkedChunkSizes(engine, chunkSizes ?? {}),
    eagle: eagle ?? false,
    eagleGroups: new Set(
      Array.from(eagleGroups ?? [], (group) => whole(engine, "a group of eagleGroups", group, 0)),
    ),
    offloadChunkBlocks: positive(engine, "offloadChunkBlocks", offloadChunkBlocks ?? 1),
  };
}

function checkedGroups(
  engine: string,
  groups: readonly BlockIndexGroupInit[],
  hashBlockSize: number,
): KvCacheGroupSpec[] {
  if (!Array.isArray(groups) || groups.length === 0)
    throw configError(
      `groups of engine ${describe(engine)} is ${describe(groups)}; it must list one KV cache group at least, or be left out`,
      { engine, groups },
    );
  const specs = groups.map((group, index) => groupSpec(engine, group, index));
  checkKvCacheGroups(specs);
  for (const [index, { kvCacheSpec }] of specs.entries())
    if (kvCacheSpec.kind !== "circular" && kvCacheSpec.blockSize % hashBlockSize !== 0)
      throw configError(
        `group ${index} of engine ${describe(engine)} has blocks of ${kvCacheSpec.blockSize} tokens; they must be a multiple of its hashBlockSize, ${hashBlockSize}`,
        { engine, group: index, blockSize: kvCacheSpec.blockSize, hashBlockSize },
      );
  return specs;
}

const GROUP_NAMES: readonly (keyof BlockIndexGroup)[] = [
  "kind",
  "blockSize",
  "slidingWindow",
  "attentionChunkSize",
  "mambaCacheMode",
  "isEagleGroup",
];

const MAMBA_MODES: readonly BlockIndexGroup["mambaCacheMode"][] = ["align", "all", "none"];

function groupSpec(engine: string, group: BlockIndexGroupInit, index: number): KvCacheGroupSpec {
  checkNames(`group ${index} of engine ${describe(engine)}`, group, GROUP_NAMES);
  const { kind, blockSize, slidingWindow, attentionChunkSize, mambaCacheMode, isEagleGroup } = group;
  const where = `of group ${index} of engine ${describe(engine)}`;
  checkFlag(`isEagleGroup ${where}`, isEagleGroup);
  if (mambaCacheMode != null && !MAMBA_MODES.includes(mambaCacheMode))
    throw configError(
      `mambaCacheMode ${where} is ${describe(mambaCacheMode)}; one of ${MAMBA_MODES.join(", ")} is expected`,
      { engine, group: index, mambaCacheMode },
    );
  const spec: Record<string, unknown> = { kind, blockSize };
  if (kind === "swa" || kind === "swa_mla") spec["slidingWindow"] = slidingWindow;
  else if (kind === "chunked_local") spec["attentionChunkSize"] = attentionChunkSize;
  else if (kind === "mamba") spec["mambaCacheMode"] = mambaCacheMode ?? "align";
  // The window of decode does not matter to a prefix.
  else if (kind === "rswa") spec["rswaWindow"] = 1;
  return { kvCacheSpec: spec as unknown as LayerSpec, isEagleGroup: isEagleGroup ?? false };
}

function checkedChunkSizes(
  engine: string,
  sizes: ReadonlyMap<number, number> | Readonly<Record<number, number>>,
): ReadonlyMap<number, number> {
  const entries: Iterable<readonly [unknown, unknown]> = sizes instanceof Map ? sizes : Object.entries(sizes);
  return new Map(
    Array.from(entries, ([group, size]) => [
      whole(engine, "a group of chunkSizes", Number(group), 0),
      positive(engine, `chunkSizes of group ${String(group)}`, size),
    ]),
  );
}

function checkFlag(name: string, value: unknown): void {
  if (value != null && typeof value !== "boolean")
    throw configError(`${name} is ${describe(value)}; it must be true or false`, { name, value });
}

function positive(engine: string, name: string, value: unknown): number {
  return whole(engine, name, value, 1);
}

function whole(engine: string, name: string, value: unknown, least: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < least)
    throw configError(
      `${name} of engine ${describe(engine)} is ${describe(value)}; it must be a whole number of ${least} or more`,
      { engine, name, value },
    );
  return value as number;
}
