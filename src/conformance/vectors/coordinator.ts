import { createHash } from "node:crypto";
import {
  type LookupResult,
  LookupSession,
  type LookupWindows,
} from "../../coordinator/lookup/lookup-session.js";
import { MooncakeStoreCoordinator } from "../../coordinator/mooncake-store-coordinator.js";
import { ExistenceTable, PRESENT } from "../../coordinator/search/existence-table.js";
import { type BlockMask, reachableBlockMask } from "../../coordinator/search/reachable-block-mask.js";
import {
  eagleProofMargin,
  resolveCacheHitAlignmentTokens,
  resolveKvCacheBlockSizes,
} from "../../coordinator/spec/block-sizes.js";
import {
  isSlidingWindow,
  type KvCacheGroupSpec,
  type KvCacheSpec,
} from "../../coordinator/spec/kv-cache-spec.js";
import { mambaPrefillCheckpointPosition, replayBoundaries } from "../../coordinator/spec/retention.js";
import { validateKvCacheConfig } from "../../coordinator/spec/store-groups.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue, VectorContext, VectorHandler, VectorHandlers } from "./handler.js";
import { isObject, list, number, object, optionalNumber, optionalText, text } from "./json.js";

function flag(input: JsonObject, name: string): boolean {
  const value = input[name];
  if (typeof value !== "boolean") throw new TypeError(`the vector's ${name} is ${JSON.stringify(value)}`);
  return value;
}

/** A cache spec of a vector, with the defaults that the README of the vectors names. */
export function readSpec(input: JsonObject): KvCacheSpec {
  const kind = text(input, "kind") as KvCacheSpec["kind"];
  const blockSize = number(input, "block_size");
  const common = {
    blockSize,
    headSize: optionalNumber(input, "head_size") ?? 8,
    numKvHeads: optionalNumber(input, "num_kv_heads") ?? (kind === "mla" || kind === "swa_mla" ? 1 : 2),
  };
  switch (kind) {
    case "uniform":
      return { kind, blockSize, inner: list<JsonObject>(input, "inner").map(readSpec) as never };
    case "swa":
    case "swa_mla":
      return {
        ...common,
        kind,
        slidingWindow: number(input, "sliding_window"),
        extraRetainedTokens: optionalNumber(input, "extra_retained_tokens"),
      };
    case "chunked_local":
      return { ...common, kind, attentionChunkSize: number(input, "attention_chunk_size") };
    case "mamba":
      return {
        kind,
        blockSize,
        mambaCacheMode: (optionalText(input, "mamba_cache_mode") ?? "align") as "align",
      };
    case "rswa":
      return { ...common, kind, rswaWindow: number(input, "rswa_window") };
    default:
      return { ...common, kind };
  }
}

/** The cache groups of a vector. */
export function readGroups(input: JsonObject): KvCacheGroupSpec[] {
  return list<JsonObject>(input, "groups").map((group) => ({
    kvCacheSpec: readSpec(group),
    isEagleGroup: group["is_eagle_group"] === true,
    enableKvTransfer: group["enable_kv_transfer"] !== false,
  }));
}

/** The coordinator of a vector. */
export function readCoordinator(input: JsonObject): MooncakeStoreCoordinator {
  const options = object(input, "coordinator");
  return new MooncakeStoreCoordinator({
    kvCacheGroups: readGroups(options),
    schedulerBlockSize: number(options, "scheduler_block_size"),
    hashBlockSize: number(options, "hash_block_size"),
    useEagle: flag(options, "use_eagle"),
    retentionInterval: optionalNumber(options, "retention_interval") ?? null,
    enablePartialHashHits: flag(options, "enable_partial_hash_hits"),
  });
}

function maskText(mask: BlockMask): string | null {
  return mask === undefined ? null : mask.join("");
}

function coordinated(
  run: (coordinator: MooncakeStoreCoordinator, input: JsonObject) => JsonValue,
): VectorHandler {
  return (input) => run(readCoordinator(input), input);
}

function findLongestCacheHit(coordinator: MooncakeStoreCoordinator, input: JsonObject): JsonValue {
  const numHashes = number(input, "num_hashes");
  let existence = ExistenceTable.everything(numHashes);
  if (input["exists"] !== null) {
    const exists = list<readonly number[]>(input, "exists");
    existence = ExistenceTable.filled(exists.length, numHashes);
    for (const [group, indexes] of exists.entries())
      for (const index of indexes) existence.set(group, index, PRESENT);
  }
  const hit = coordinator.findLongestCacheHit(
    number(input, "max_length"),
    existence,
    flag(input, "apply_eagle"),
  );
  return { hit_length: hit.hitLength, masks: hit.masks.map(maskText) };
}

/** Hash i of a vector is i + 1 in four bytes. */
function syntheticHashes(count: number): BlobBlockHashes {
  const blob = Buffer.alloc(count * 4);
  for (let i = 0; i < count; i++) blob.writeUInt32BE(i + 1, i * 4);
  return new BlobBlockHashes(blob, 4);
}

function runLookup(session: LookupSession, stored: ReadonlySet<string>): LookupResult {
  for (;;) {
    const step = session.next();
    if (step.result !== undefined) return step.result;
    session.answer(Array.from(step.ask, (key) => (stored.has(key) ? 1 : 0)));
  }
}

/** Questions of one key, of the default size, and of all keys of a group at once. */
const WINDOWS: readonly Partial<LookupWindows>[] = [
  { first: 1, growth: 1 },
  {},
  { first: 2 ** 32, most: 2 ** 32 },
];

function lookup(input: JsonObject, { recorded }: VectorContext): JsonValue | Deviation {
  const coordinator = readCoordinator(input);
  const keyPrefixes = coordinator.kvCacheGroups.map((_, id) => [
    `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:${id}`,
  ]);
  const blockHashes = syntheticHashes(number(input, "num_hashes"));
  const stored = new Set(
    list<readonly number[]>(input, "exists").flatMap((indexes, id) =>
      indexes.map((index) => `${keyPrefixes[id]![0]}@${(index + 1).toString(16).padStart(8, "0")}`),
    ),
  );
  const session = (windows: Partial<LookupWindows>) =>
    new LookupSession(coordinator, {
      numTokens: number(input, "num_tokens"),
      blockHashes,
      keyPrefixes,
      windows,
    });
  const [first, ...others] = WINDOWS.map((windows) => found(runLookup(session(windows), stored)));
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
    return { "results by size of the question": [first!, ...others] };
  // What raises in vLLM's lookup ends its thread, and the engine waits for ever.
  if (raisedInSearch(recorded.error)) return new Deviation("lookup-death", SEARCH_FAILED, first!);
  const whole = session({});
  const keys = whole.candidates.flatMap((candidates) => whole.candidateKeys(candidates).toArray());
  return {
    ...first!,
    num_candidate_keys: keys.length,
    candidate_keys_sha256:
      keys.length > 0 ? createHash("sha256").update(keys.join("\n")).digest("hex") : null,
    first_key: keys[0] ?? null,
    last_key: keys.at(-1) ?? null,
  };
}

/** The right answer where the stored blocks allow none: a miss that says why. */
const SEARCH_FAILED: JsonObject = { hit_length: 0, tail_key_boundaries: [], failure: "search" };

function found({ hitLength, tailKeyBoundaries, failure }: LookupResult): JsonObject {
  return {
    hit_length: hitLength,
    tail_key_boundaries: tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]),
    ...(failure && { failure: failure.reason }),
  };
}

/** The coordinator could be made, so an error of this kind came out of the lookup itself. */
function raisedInSearch(error: JsonValue | undefined): boolean {
  return isObject(error) && (error["type"] === "AssertionError" || error["type"] === "IndexError");
}

function splitGroups(coordinator: MooncakeStoreCoordinator): JsonValue {
  const sorted = <T>(entries: Iterable<T>, key: (entry: T) => number): T[] =>
    [...entries].sort((a, b) => key(a) - key(b));
  return {
    spec_groups: coordinator.specGroups.map(({ spec, groupIds, useEagle, manager }) => ({
      group_ids: [...groupIds],
      use_eagle: useEagle,
      manager,
      sliding_window: isSlidingWindow(spec) ? spec.slidingWindow : null,
    })),
    eagle_group_ids: sorted(coordinator.eagleGroupIds, (id) => id),
    eagle_proof_margin_by_group: sorted(coordinator.eagleProofMarginByGroup, ([id]) => id),
    mamba_group_ids: sorted(coordinator.mambaGroupIds, (id) => id),
    lcm_block_size: coordinator.schedulerBlockSize,
  };
}

function reachable(input: JsonObject): JsonValue {
  return {
    mask: maskText(
      reachableBlockMask({
        spec: readSpec(object(input, "spec")),
        startBlock: number(input, "start_block"),
        endBlock: number(input, "end_block"),
        alignmentTokens: optionalNumber(input, "alignment_tokens") ?? null,
        useEagle: flag(input, "use_eagle"),
        retentionInterval: optionalNumber(input, "retention_interval") ?? null,
        reachableBoundaries: list<number>(input, "reachable_boundaries"),
        dcpWorldSize: number(input, "dcp_world_size"),
        finalSegmentEndBlock: optionalNumber(input, "final_segment_end_block") ?? null,
      }),
    ),
  };
}

function resolveBlockSizes(input: JsonObject): JsonValue {
  const config = object(input, "config");
  const options = {
    kvCacheGroups: readGroups(config),
    blockSize: number(config, "block_size"),
    dcpWorldSize: optionalNumber(config, "dcp"),
    prefixMatchUnit: optionalNumber(config, "prefix_match_unit"),
    enablePrefixCaching: flag(input, "enable_prefix_caching"),
    hasConnector: flag(input, "has_connector"),
  };
  const { schedulerBlockSize, hashBlockSize } = resolveKvCacheBlockSizes(options);
  return {
    scheduler_block_size: schedulerBlockSize,
    hash_block_size: hashBlockSize,
    cache_hit_alignment_tokens: resolveCacheHitAlignmentTokens(options),
  };
}

/** The ops of coordinator_hit.jsonl and coordinator_masks.jsonl, and those of config.jsonl about groups and sizes. */
export const coordinatorHandlers: VectorHandlers = {
  find_longest_cache_hit: coordinated(findLongestCacheHit),
  lookup,
  split_groups: coordinated(splitGroups),
  store_mask: coordinated((coordinator, input) => ({
    masks: coordinator
      .storeMask(
        number(input, "aligned_token_len"),
        optionalNumber(input, "start_token"),
        optionalNumber(input, "num_prompt_tokens"),
      )
      .map(maskText),
  })),
  lookup_mask: coordinated((coordinator, input) => ({
    masks: coordinator.lookupMask(number(input, "aligned_token_len")).map(maskText),
  })),
  load_mask: coordinated((coordinator, input) => ({
    masks: coordinator.loadMask(number(input, "num_hashes"), number(input, "token_len")).map(maskText),
  })),
  align_lookup_length: coordinated((coordinator, input) => ({
    aligned: coordinator.alignLookupLength(number(input, "length")),
  })),
  reachable_block_mask: reachable,
  replay_boundaries: (input) => ({
    boundaries: replayBoundaries(
      number(input, "num_prompt_tokens"),
      number(input, "scheduler_block_size"),
      flag(input, "use_eagle"),
    ),
  }),
  mamba_prefill_checkpoint_position: (input) => ({
    position: mambaPrefillCheckpointPosition(
      number(input, "num_tokens"),
      number(input, "hash_block_size"),
      flag(input, "drop_eagle_block"),
      optionalNumber(input, "num_hash_lookahead_tokens"),
    ),
  }),
  eagle_proof_margin: (input) => ({
    margin: eagleProofMargin(
      number(input, "block_size"),
      number(input, "hash_block_size"),
      flag(input, "fine_grained_lookup"),
    ),
  }),
  resolve_block_sizes: resolveBlockSizes,
  validate_kv_cache_config: (input) => {
    const config = object(input, "config");
    const ids = validateKvCacheConfig(readGroups(config), optionalNumber(config, "pcp_size"));
    return { ok: true, store_group_ids: ids };
  },
};
