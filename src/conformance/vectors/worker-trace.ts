import { MooncakeStoreWorker } from "../../connector/worker/mooncake-store-worker.js";
import { LookupSession } from "../../coordinator/lookup/lookup-session.js";
import { isMooncakeKvError } from "../../errors.js";
import type { BlockStored } from "../../events/kv-events.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import type { ExternalBlockHash } from "../../hash/external-block-hash.js";
import { RankLocalStoreLayout } from "../../layout/rank-local-store-layout.js";
import type { StoreLayout } from "../../layout/store-layout.js";
import { TPShardedStoreLayout } from "../../layout/tp-sharded-store-layout.js";
import { BoundaryPut } from "../../request/boundary-put.js";
import { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { createLoadSpec } from "../../request/load-spec.js";
import { ReqMeta } from "../../request/req-meta.js";
import { TailKeyBoundary } from "../../request/tail-key-boundary.js";
import type { JsonObject, JsonValue } from "./handler.js";
import { hex, isObject, list, number, object, optionalList, optionalNumber, text } from "./json.js";
import { syntheticHash } from "./scheduler.js";
import { readLayers, readWorkerConfig, readWorkerOptions, setupCall } from "./worker-config.js";
import { RecordingStore, type SeenGet } from "./worker-store.js";

/** What a step did besides what the vector records, for recognising vLLM's defects. */
export interface StepNotes {
  readonly metas: readonly ReqMeta[];
  readonly gets: readonly SeenGet[];
  /** The keys in the store before the step. */
  readonly presentBefore: ReadonlySet<string>;
}

/** A worker over the fake store, driven by the steps of a vector. */
export class WorkerTrace {
  readonly store: RecordingStore;
  readonly worker: MooncakeStoreWorker;
  readonly notes: StepNotes[] = [];
  /** The events of the last step. */
  lastEvents: readonly BlockStored[] = [];
  readonly #config: JsonObject;

  constructor(config: JsonObject, present: Iterable<string>) {
    this.#config = config;
    this.store = new RecordingStore(present, config["group_ids_supported"] !== false);
    this.worker = new MooncakeStoreWorker({
      ...readWorkerOptions(config),
      config: readWorkerConfig(config),
      store: this.store,
    });
  }

  /** Registers the caches; what the vector calls `init`. */
  async init(): Promise<JsonObject> {
    const setup = { setup_calls: [{ ...setupCall(this.#config) }] };
    try {
      await this.worker.registerKvCaches(readLayers(this.#config), number(this.#config, "num_gpu_blocks"));
    } catch (error) {
      if (!isMooncakeKvError(error)) throw error;
      return {
        ...setup,
        error: { type: error.code, message: error.message },
        register_calls: this.store.registered,
      };
    }
    const { settings } = this.worker;
    const groups = settings.groups;
    return {
      ...setup,
      register_calls: this.store.registered,
      layouts: groups?.databases.map(({ storeLayout }) => writeLayout(storeLayout)) ?? [],
      lookup_key_prefixes: groups?.lookupKeyPrefixes.map((prefixes) => [...prefixes]) ?? null,
      replication_factors: groups ? [...groups.replicationFactors] : null,
      block_size: settings.blockSize,
      hash_block_size: settings.hashBlockSize,
      has_send_thread: this.worker.canSave,
      num_recv_threads: this.worker.numRecvThreads,
    };
  }

  /** One step: loads, saves, and their reports. */
  async step(step: JsonObject, replaceProgram: boolean = false): Promise<JsonObject> {
    const metas = (optionalList<JsonObject>(step, "metas") ?? []).map(readMeta);
    return this.run(metas, step, replaceProgram);
  }

  /** `step` with jobs that come from elsewhere. */
  async run(metas: readonly ReqMeta[], step: JsonObject, replaceProgram: boolean): Promise<JsonObject> {
    const { worker, store } = this;
    store.program(isObject(step["program"]) ? step["program"] : {}, replaceProgram);
    store.takeCalls();
    store.gets = [];
    this.notes.push({ metas, gets: store.gets, presentBefore: new Set(store.present) });
    const metadata = new MooncakeStoreConnectorMetadata([], optionalList<string>(step, "preempted") ?? []);
    for (const meta of metas) metadata.addRequest(meta);
    const finished = optionalList<string>(step, "finished") ?? [];

    const startLoadError = failure(() => worker.startLoadKv(metadata));
    await worker.drained();
    const loadCalls = store.takeCalls();

    const gate = step["gate"] === true ? store.gate() : undefined;
    worker.waitForSave(metadata, store.fence);
    let mid: JsonObject = {};
    if (gate === undefined) await worker.drained();
    else await gate.reached;
    const results = worker.getTransferResults(finished, metadata);
    const invalidBlockIds = [...worker.getBlockIdsWithLoadErrors()].sort((a, b) => a - b);
    if (gate !== undefined) {
      mid = { mid_completed_saves: this.#completedSaves() };
      gate.release();
      await worker.drained();
    }
    this.lastEvents = worker.getKvEvents() ?? [];
    return {
      ...(startLoadError && { start_load_error: startLoadError }),
      finished_sending: [...results.finishedSending].sort(),
      finished_recving: [...results.finishedRecving].sort(),
      failed_recving: [...results.failedRecving].sort(),
      invalid_block_ids: invalidBlockIds,
      ...mid,
      completed_saves: this.#completedSaves(),
      load_calls: loadCalls,
      save_calls: store.takeCalls(),
      operations: this.operations(),
      state: this.#state(),
      "?kv_events": this.lastEvents.map(writeEvent),
    };
  }

  /** A lookup. Ours asks less than vLLM does, so what vLLM asks about is computed, and the answers come from that. */
  async lookup(numTokens: number, hashes: BlobBlockHashes): Promise<JsonObject> {
    const { worker, store } = this;
    const keys = this.candidateKeys(numTokens, hashes);
    const answered = store.beginLookup(keys);
    const result = await worker.lookup(numTokens, hashes);
    store.endLookup();
    this.operations();
    const failed = answered ? 0 : keys.length;
    const row = {
      num_keys: keys.length,
      num_bytes: 0,
      status: answered ? "ok" : "error",
      num_failed_keys: failed,
    };
    return {
      hit_length: result.hitLength,
      tail_key_boundaries: result.tailKeyBoundaries.map(({ groupId, numTokens: tokens }) => [
        groupId,
        tokens,
      ]),
      store_calls: keys.length > 0 ? [{ method: "batch_is_exist", keys }] : [],
      operations: keys.length > 0 ? { lookup_exists: [row] } : {},
      ...(result.failure?.reason === "search" && { "?failure": result.failure.error.message }),
    };
  }

  /** The keys that vLLM asks about for a prompt, in its order. */
  candidateKeys(numTokens: number, blockHashes: BlobBlockHashes): string[] {
    const { coordinator, groups } = this.worker.settings;
    if (coordinator === undefined || groups === undefined) return [];
    const keyPrefixes = groups.lookupKeyPrefixes;
    const session = new LookupSession(coordinator, { numTokens, blockHashes, keyPrefixes });
    return session.candidates.flatMap((candidates) => session.candidateKeys(candidates).toArray());
  }

  /** The metric rows since the last time, without durations. */
  operations(): JsonObject {
    const rows: Record<string, JsonValue> = {};
    for (const [operation, records] of this.worker.getKvConnectorStats()?.data ?? [])
      rows[operation] = records.map((record) => ({
        num_keys: record.numKeys,
        num_bytes: record.numBytes,
        status: record.status,
        num_failed_keys: record.numFailedKeys,
      }));
    return rows;
  }

  #completedSaves(): JsonValue {
    const report = this.worker.buildConnectorWorkerMeta();
    return report === null ? null : [...report.completedSaves];
  }

  #state(): JsonValue {
    const ledger = this.worker.snapshot();
    if (ledger === undefined) return null;
    const sorted = <T>(entries: Iterable<readonly [string, T]>): [string, T][] =>
      [...entries].map(([reqId, value]): [string, T] => [reqId, value]).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      saved_offset: sorted(ledger.savedOffsets),
      pressure: ledger.pressure,
      skipped_requests: [...ledger.pausedRequests].sort(),
      live_jobs: sorted(ledger.liveJobs).map(([reqId, jobs]) => [reqId, [...jobs]]),
      awaiting_retire: [...ledger.awaitingRetire].sort(),
    };
  }
}

/** The synthetic hashes of a vector as one blob. */
export function syntheticHashes(base: number, count: number): BlobBlockHashes {
  return BlobBlockHashes.from(Array.from({ length: count }, (_, index) => syntheticHash(base, index)));
}

function readMeta(input: JsonObject): ReqMeta {
  const base = optionalNumber(input, "hash_base") ?? 1;
  const hashes = number(input, "num_block_hashes");
  const puts = optionalList<readonly [number, number, number]>(input, "boundary_puts");
  return ReqMeta.create({
    reqId: text(input, "req_id"),
    tokenLenChunk: number(input, "token_len_chunk"),
    blockIds: list<number[]>(input, "block_ids"),
    blockHashes: Array.from({ length: hashes }, (_, index) => syntheticHash(base, index)),
    canSave: input["can_save"] === true,
    loadSpec: isObject(input["load_spec"]) ? readLoadSpec(object(input, "load_spec")) : null,
    tokenIds: optionalList<number>(input, "token_ids") ?? null,
    tokenIdsStart: optionalNumber(input, "token_ids_start") ?? 0,
    numPromptTokens: optionalNumber(input, "num_prompt_tokens") ?? null,
    prefillEndTokens: optionalNumber(input, "prefill_end_tokens") ?? null,
    storeJobId: optionalNumber(input, "store_job_id") ?? null,
    boundaryPuts: puts?.map((put) => new BoundaryPut(...put)) ?? null,
  });
}

function readLoadSpec(input: JsonObject) {
  return createLoadSpec({
    vllmCachedTokens: number(input, "vllm_cached_tokens"),
    kvpoolCachedTokens: number(input, "kvpool_cached_tokens"),
    canLoad: input["can_load"] === true,
    tailKeyBoundaries: (optionalList<readonly [number, number]>(input, "tail_key_boundaries") ?? []).map(
      ([groupId, numTokens]) => new TailKeyBoundary(groupId, numTokens),
    ),
  });
}

function writeLayout(layout: StoreLayout): JsonObject {
  const sizes = { block_size: layout.blockSize, hash_block_size: layout.hashBlockSize };
  if (layout instanceof RankLocalStoreLayout)
    return {
      kind: "rank_local",
      ...sizes,
      key_prefix: layout.keyPrefix(0),
      base_addrs: layout.kvCachesBaseAddr.map(String),
      block_lens: [...layout.blockLen],
    };
  if (!(layout instanceof TPShardedStoreLayout)) throw new TypeError("unknown layout");
  const shards = layout.segmentTemplates;
  return {
    kind: layout.storeFormat,
    ...sizes,
    shards: [...layout.localShardIds],
    shard_key_prefixes: layout.localShardIds.map((shard) => layout.keyPrefix(shard)),
    shard_addr_bases: shards.map((templates) => templates.map(({ base }) => String(base))),
    shard_block_strides: shards.map((templates) => templates.map(({ stride }) => Number(stride))),
    shard_sizes: shards.map((templates) => templates.map(({ size }) => Number(size))),
  };
}

/** An event as a vector writes it. */
export function writeEvent(event: BlockStored): JsonObject {
  return {
    block_hashes: Array.from(event.blockHashes, writeExternalHash),
    parent_block_hash: event.parentBlockHash === null ? null : writeExternalHash(event.parentBlockHash),
    token_ids: [...event.tokenIds],
    block_size: event.blockSize,
    lora_id: event.loraId,
    medium: event.medium,
    lora_name: event.loraName,
    group_idx: event.groupIdx,
  };
}

function writeExternalHash(hash: ExternalBlockHash): JsonValue {
  return typeof hash === "bigint" ? String(hash) : { bytes: hex(hash) };
}

/** How Python says that loads always run beside the engine. */
const LOAD_ASYNC_ERROR = {
  type: "AssertionError",
  message: "load_async must be True for better performance.",
};

function failure(run: () => void): JsonObject | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (isMooncakeKvError(error, "ERR_CONFIG") && error.details["load_async"] === false)
      return LOAD_ASYNC_ERROR;
    throw error;
  }
}
