import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";
import type { ConnectorConfig, KvRole } from "../../connector/connector-config.js";
import type { BlockPool } from "../../connector/scheduler/block-pool.js";
import type { LookupClient } from "../../connector/scheduler/lookup-client.js";
import { MooncakeStoreScheduler } from "../../connector/scheduler/mooncake-store-scheduler.js";
import type { SchedulerOutput } from "../../connector/scheduler/scheduler-output.js";
import type { StoreRequest } from "../../connector/scheduler/store-request.js";
import { isMooncakeKvError } from "../../errors.js";
import type { BoundaryPutTuple } from "../../request/boundary-put.js";
import type { LoadSpec } from "../../request/load-spec.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { firstDifference } from "./compare.js";
import { readGroups } from "./coordinator.js";
import { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { isObject, list, number, object, optionalList, optionalNumber, text } from "./json.js";

/** The connector's configuration of a vector. */
export function readConnectorConfig(config: JsonObject): ConnectorConfig {
  const retention = config["retention_interval"];
  return {
    kvRole: text(config, "kv_role") as KvRole,
    kvCacheGroups: readGroups(config),
    blockSize: number(config, "block_size"),
    prefixMatchUnit: optionalNumber(config, "prefix_match_unit"),
    retentionInterval: retention === undefined ? 0 : (retention as number | null),
    useEagle: config["use_eagle"] === true,
    dcpSize: optionalNumber(config, "dcp"),
    pcpSize: optionalNumber(config, "pcp_size"),
    worldSize: optionalNumber(config, "world_size"),
    enableKvEvents: config["kv_events"] === true,
    extraConfig: isObject(config["extra_config"]) ? config["extra_config"] : {},
  };
}

/** Hash i of a vector: the base and i + 1, four bytes each. */
export function syntheticHash(base: number, index: number): Uint8Array {
  const hash = Buffer.alloc(8);
  hash.writeUInt32BE(base, 0);
  hash.writeUInt32BE(index + 1, 4);
  return new Uint8Array(hash);
}

/** A request of a vector: token i is `base + i`. */
class VectorRequest implements StoreRequest {
  readonly requestId: string;
  numPromptTokens: number = 0;
  numTokens: number = 0;
  numComputedTokens: number = 0;
  blockHashes: Uint8Array[] = [];
  allTokenIds: number[] = [];

  constructor(requestId: string) {
    this.requestId = requestId;
  }

  update(state: JsonObject, hashes: RequestHashes): void {
    this.numPromptTokens = number(state, "num_prompt_tokens");
    this.numTokens = number(state, "num_tokens");
    this.numComputedTokens = number(state, "num_computed_tokens");
    const base = number(state, "token_base");
    this.allTokenIds = Array.from({ length: this.numTokens }, (_, index) => base + index);
    this.blockHashes = hashes(this.requestId, base, this.allTokenIds, number(state, "num_block_hashes"));
  }
}

/** How the block hashes of a request come about. */
export type RequestHashes = (
  reqId: string,
  base: number,
  tokenIds: readonly number[],
  count: number,
) => Uint8Array[];

const synthetic: RequestHashes = (_reqId, base, _tokenIds, count) =>
  Array.from({ length: count }, (_, index) => syntheticHash(base, index));

type LookupReply = MooncakeLookupResult | "pending" | "raise" | null;

/** Answers what the event says, and remembers what was asked. */
class ScriptedLookupClient implements LookupClient {
  reply: LookupReply = null;
  resetReply: JsonValue = true;
  call: JsonObject | null = null;
  readonly discards: string[] = [];

  lookupAsync(reqId: string, numTokens: number, blockHashes: readonly Uint8Array[], nonBlock: boolean) {
    this.call = {
      req_id: reqId,
      num_tokens: numTokens,
      num_block_hashes: blockHashes.length,
      non_block: nonBlock,
    };
    if (this.reply === "raise" || this.reply === null) throw new Error("no answer");
    return this.reply === "pending" ? null : this.reply;
  }

  discard(reqId: string): void {
    this.discards.push(reqId);
  }

  reset(): boolean {
    if (this.resetReply === "raise") throw new Error("no answer");
    return this.resetReply === true;
  }
}

/** A scheduler that is driven by the events of a vector. */
export class SchedulerTrace {
  readonly scheduler: MooncakeStoreScheduler;
  readonly requests: Map<string, VectorRequest> = new Map();
  /** The jobs of the last step. */
  lastMetas: readonly ReqMeta[] = [];
  /** Requests that were preempted in the last step. */
  lastPreempted: ReadonlySet<string> = new Set();
  readonly #client = new ScriptedLookupClient();
  readonly #hashes: RequestHashes;
  readonly #touched: number[] = [];
  readonly #freed: number[] = [];

  constructor(config: JsonObject, hashes: RequestHashes = synthetic) {
    this.#hashes = hashes;
    const blockPool: BlockPool = {
      touch: (blockIds) => void this.#touched.push(...blockIds),
      freeBlocks: (blockIds) => void this.#freed.push(...blockIds),
    };
    this.scheduler = new MooncakeStoreScheduler({
      config: readConnectorConfig(config),
      lookupClient: this.#client,
      blockPool: config["bind_block_pool"] === false ? undefined : blockPool,
    });
  }

  /** The resolved settings. */
  init(): JsonObject {
    const settings = this.scheduler.settings;
    return {
      block_size: settings.blockSize,
      hash_block_size: settings.hashBlockSize,
      store_group_ids: [...settings.storeGroupIds],
      enable_partial_hash_hits: settings.enablePartialHashHits,
      boundary_state_group_ids: [...settings.boundaryStateGroupIds],
      capacity_only: settings.capacityOnly,
      num_workers: settings.numWorkers,
      load_async: settings.loadAsync,
      enable_lookup: settings.enableLookup,
      save_decode_cache: settings.saveDecodeCache,
      enable_kv_events: settings.enableKvEvents,
    };
  }

  /** One event, and what the vector records of it. */
  async apply(event: JsonObject): Promise<JsonObject> {
    for (const state of optionalList<JsonObject>(event, "requests") ?? []) this.updateRequest(state);
    this.#client.call = null;
    this.#client.discards.length = 0;
    this.#touched.length = 0;
    this.#freed.length = 0;
    try {
      return await this.#apply(event);
    } catch (error) {
      if (!isMooncakeKvError(error)) throw error;
      return { error: { type: error.code, message: error.message } };
    }
  }

  updateRequest(state: JsonObject): void {
    const reqId = text(state, "req_id");
    const request = this.requests.get(reqId) ?? new VectorRequest(reqId);
    request.update(state, this.#hashes);
    this.requests.set(reqId, request);
  }

  async #apply(event: JsonObject): Promise<JsonObject> {
    const { scheduler } = this;
    switch (text(event, "event")) {
      case "get_num_new_matched_tokens": {
        this.#client.reply = readReply(event["lookup_reply"] ?? null);
        const request = this.#request(event);
        const result = scheduler.getNumNewMatchedTokens(request, number(event, "num_computed_tokens"));
        return { result: [...result], lookup: this.#client.call, load_spec: this.#loadSpec(event) };
      }
      case "update_state_after_alloc":
        scheduler.updateStateAfterAlloc(
          this.#request(event),
          list<number[]>(event, "block_ids"),
          number(event, "num_external_tokens"),
        );
        return { load_spec: this.#loadSpec(event) };
      case "build_connector_meta":
        return this.#build(readSchedulerOutput(object(event, "scheduler_output")));
      case "update_connector_output": {
        const completed = optionalList<readonly [number, number]>(event, "completed_saves");
        scheduler.updateConnectorOutput(completed ? { completedSaves: new Map(completed) } : null);
        return { freed_blocks: [...this.#freed], ...this.#pins() };
      }
      case "request_finished": {
        const [delayFree, params] = scheduler.requestFinished(this.#request(event), list(event, "block_ids"));
        return { delay_free: delayFree, kv_transfer_params: params };
      }
      case "register_finished_partial_tail": {
        const result = scheduler.registerFinishedPartialTail(
          this.#request(event),
          list<number[]>(event, "block_ids"),
          list<readonly [number, number, number]>(event, "offloads"),
        );
        return { result, touched_blocks: [...this.#touched], pinned: this.#pins()["pinned"]! };
      }
      case "reset_cache": {
        this.#client.resetReply = event["reset_reply"] ?? null;
        return { result: await scheduler.resetCache(), load_specs: [...scheduler.loadSpecs.keys()] };
      }
      default:
        throw new TypeError(`unknown event ${event["event"]}`);
    }
  }

  #build(output: SchedulerOutput): JsonObject {
    const meta = this.scheduler.buildConnectorMeta(output);
    this.lastMetas = meta.requests;
    this.lastPreempted = meta.preemptedReqIds;
    return {
      requests: meta.requests.map(writeReqMeta),
      unfinished_request_ids: [...meta.unfinishedRequestIds].sort(),
      preempted_req_ids: [...meta.preemptedReqIds].sort(),
      lookup_discards: [...this.#client.discards].sort(),
      touched_blocks: [...this.#touched],
      ...this.#pins(),
    };
  }

  #pins(): JsonObject {
    return {
      pinned: this.scheduler.pinnedSaves.map(({ storeJobId, blockIds, remaining }) => [
        storeJobId,
        [...blockIds],
        remaining,
      ]),
      has_pending_push_work: this.scheduler.hasPendingPushWork(),
    };
  }

  #request(event: JsonObject): VectorRequest {
    const reqId = text(event, "req_id");
    const request = this.requests.get(reqId) ?? new VectorRequest(reqId);
    this.requests.set(reqId, request);
    return request;
  }

  #loadSpec(event: JsonObject): JsonValue {
    const spec = this.scheduler.loadSpecs.get(text(event, "req_id"));
    return spec === undefined ? null : writeLoadSpec(spec);
  }
}

function readReply(reply: JsonValue): LookupReply {
  if (!isObject(reply)) return reply as LookupReply;
  return {
    hitLength: number(reply, "hit_length"),
    tailKeyBoundaries: list<readonly [number, number]>(reply, "tail_key_boundaries").map(
      ([groupId, numTokens]) => ({ groupId, numTokens }),
    ),
  };
}

/** A scheduler output of a vector. */
export function readSchedulerOutput(output: JsonObject): SchedulerOutput {
  const reqId = (data: JsonObject) => text(data, "req_id");
  const numComputedTokens = (data: JsonObject) => number(data, "num_computed_tokens");
  return {
    scheduledNewReqs: list<JsonObject>(output, "new").map((data) => ({
      reqId: reqId(data),
      blockIds: list<number[]>(data, "block_ids"),
      numComputedTokens: numComputedTokens(data),
      numPrefillTokens: optionalNumber(data, "num_prefill_token_ids"),
    })),
    scheduledCachedReqs: list<JsonObject>(output, "cached").map((data) => ({
      reqId: reqId(data),
      resumed: data["resumed"] === true,
      newBlockIds: optionalList<number[]>(data, "new_block_ids") ?? null,
      numComputedTokens: numComputedTokens(data),
    })),
    numScheduledTokens: new Map(list<readonly [string, number]>(output, "num_scheduled_tokens")),
    finishedReqIds: list<string>(output, "finished"),
    preemptedReqIds: list<string>(output, "preempted"),
    kvConnectorBlockState:
      output["block_state"] === false
        ? null
        : {
            blockTables: new Map(list<readonly [string, number[][]]>(output, "block_tables")),
            boundaryStateOffloads: new Map(
              list<readonly [string, BoundaryPutTuple[]]>(output, "boundary_state_offloads"),
            ),
          },
  };
}

function writeLoadSpec(spec: LoadSpec): JsonObject {
  return {
    vllm_cached_tokens: spec.vllmCachedTokens,
    kvpool_cached_tokens: spec.kvpoolCachedTokens,
    can_load: spec.canLoad,
    token_len: spec.tokenLen,
    tail_key_boundaries: spec.tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]),
  };
}

function writeReqMeta(meta: ReqMeta): JsonObject {
  return {
    req_id: meta.reqId,
    token_len_chunk: meta.tokenLenChunk,
    block_ids: meta.blockIds.map((blockIds) => [...blockIds]),
    num_block_hashes: meta.blockHashes.length,
    can_save: meta.canSave,
    load_spec: meta.loadSpec && writeLoadSpec(meta.loadSpec),
    token_ids: meta.tokenIds && [...meta.tokenIds],
    token_ids_start: meta.tokenIdsStart,
    num_prompt_tokens: meta.numPromptTokens,
    prefill_end_tokens: meta.prefillEndTokens,
    store_job_id: meta.storeJobId,
    boundary_puts:
      meta.boundaryPuts?.map(({ groupId, blockId, numTokens }) => [groupId, blockId, numTokens]) ?? null,
    completed_token_len: meta.completedTokenLen,
    publish_partial_tail: meta.publishPartialTail,
  };
}

async function runTrace(config: JsonObject, events: readonly JsonObject[]): Promise<JsonObject[]> {
  const trace = new SchedulerTrace(config);
  const steps: JsonObject[] = [];
  for (const event of events) {
    const step = await trace.apply(event);
    steps.push(step);
    if (step["error"] !== undefined) break;
  }
  return steps;
}

const isBuild = (event: JsonObject): boolean => event["event"] === "build_connector_meta";

/**
 * By position of a step: the requests that were preempted and given blocks again before it. That is the case when a
 * scheduled request is allocated blocks and the next step says that it was preempted: it can't have been both scheduled
 * and allocated anew without a preemption in between.
 */
export function readmissions(events: readonly JsonObject[]): Map<number, string[]> {
  const found = new Map<number, string[]>();
  const scheduled = new Set<string>();
  const again = new Set<string>();
  for (const [index, event] of events.entries()) {
    if (event["event"] === "update_state_after_alloc" && scheduled.has(text(event, "req_id")))
      again.add(text(event, "req_id"));
    if (!isBuild(event)) continue;
    const output = object(event, "scheduler_output");
    const preempted = list<string>(output, "preempted");
    const readmitted = preempted.filter((reqId) => again.has(reqId));
    if (readmitted.length > 0) found.set(index, readmitted);
    for (const reqId of [...preempted, ...list<string>(output, "finished")]) scheduled.delete(reqId);
    for (const data of list<JsonObject>(output, "new")) scheduled.add(text(data, "req_id"));
    for (const data of list<JsonObject>(output, "cached"))
      if (data["resumed"] === true) scheduled.add(text(data, "req_id"));
    again.clear();
  }
  return found;
}

/**
 * What is right where a request is preempted and admitted again in one step: the same as when the preemption had been
 * told in a step of its own before. So that is what is run, and its outcome taken without the extra steps.
 */
async function readmittedSteps(
  config: JsonObject,
  events: readonly JsonObject[],
  recorded: readonly JsonValue[],
): Promise<JsonObject[]> {
  const found = readmissions(events);
  const split: JsonObject[] = [];
  const extra = new Set<number>();
  let afterBuild = 0;
  for (const [index, event] of events.entries()) {
    const ids = found.get(index);
    if (ids === undefined) split.push(event);
    else {
      split.splice(afterBuild, 0, { event: "build_connector_meta", scheduler_output: onlyPreempted(ids) });
      extra.add(afterBuild);
      split.push(withoutPreempted(event, ids));
    }
    if (isBuild(event)) afterBuild = split.length;
  }
  const steps = (await runTrace(config, split)).filter((_, index) => !extra.has(index));
  const first = [...found.keys()][0]!;
  return steps.map((step, index) => {
    if (index < first) return recorded[index] as JsonObject;
    const ids = found.get(index);
    if (ids === undefined) return step;
    const preempted = list<string>(object(events[index]!, "scheduler_output"), "preempted");
    return { ...step, preempted_req_ids: [...preempted].sort() };
  });
}

function onlyPreempted(ids: readonly string[]): JsonObject {
  return {
    new: [],
    cached: [],
    num_scheduled_tokens: [],
    finished: [],
    preempted: ids,
    block_tables: [],
    boundary_state_offloads: [],
  };
}

function withoutPreempted(event: JsonObject, ids: readonly string[]): JsonObject {
  const output = object(event, "scheduler_output");
  const preempted = list<string>(output, "preempted").filter((reqId) => !ids.includes(reqId));
  return { ...event, scheduler_output: { ...output, preempted } };
}

/** The op of scheduler_trace.jsonl. */
export const schedulerHandlers: VectorHandlers = {
  scheduler_trace: async (input, { recorded }) => {
    const config = object(input, "config");
    const events = list<JsonObject>(input, "events");
    const init = new SchedulerTrace(config).init();
    const actual = { init, steps: await runTrace(config, events) };
    if (readmissions(events).size === 0 || !isObject(recorded.expected)) return actual;
    if (firstDifference(recorded.expected, actual) === undefined) return actual;
    const steps = await readmittedSteps(config, events, list(recorded.expected, "steps"));
    return new Deviation("readmit-same-step", { init: recorded.expected["init"]!, steps }, actual);
  },
};
