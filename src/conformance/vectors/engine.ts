import { parseHashAlgorithm } from "../../hash/algorithm.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { BlockHasher } from "../../hash/block-hasher.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { isObject, list, object, optionalList, optionalText, text } from "./json.js";
import { type RequestHashes, SchedulerTrace } from "./scheduler.js";
import { WorkerTrace } from "./worker-trace.js";

/** The members of a worker's step that these vectors record. */
const STEP_MEMBERS = [
  "load_calls",
  "save_calls",
  "finished_recving",
  "failed_recving",
  "invalid_block_ids",
  "completed_saves",
] as const;

/** vLLM's real hashes, where the vector asks for them. */
async function requestHashes(config: JsonObject): Promise<RequestHashes | undefined> {
  const algorithm = optionalText(config, "hash_algo");
  if (algorithm === undefined) return undefined;
  const blockSize = new SchedulerTrace(config).scheduler.settings.hashBlockSize;
  const hasher = await BlockHasher.create({
    algorithm: parseHashAlgorithm(algorithm),
    blockSize,
    seed: optionalText(config, "python_hash_seed"),
  });
  const salts = isObject(config["salts"]) ? config["salts"] : {};
  return (reqId, _base, promptTokenIds, count) => {
    const cacheSalt = optionalText(salts, reqId);
    const hashes = hasher.hash({ promptTokenIds, ...(cacheSalt !== undefined && { cacheSalt }) });
    return [...hashes.slice(0, count)];
  };
}

/** One real run of an engine: its scheduler, a worker and the store, together. */
class EngineTrace {
  readonly #scheduler: SchedulerTrace;
  readonly #worker: WorkerTrace;
  readonly #events: boolean;

  constructor(config: JsonObject, hashes: RequestHashes | undefined) {
    this.#scheduler = new SchedulerTrace(config, hashes);
    this.#worker = new WorkerTrace({ num_kv_heads: 16, ...config }, []);
    this.#events = config["kv_events"] === true;
  }

  async init(): Promise<{ readonly init: JsonObject; readonly worker_init: JsonObject }> {
    const { register_calls, layouts, lookup_key_prefixes } = await this.#worker.init();
    return {
      init: this.#scheduler.init(),
      worker_init: {
        register_calls: register_calls!,
        layouts: layouts!,
        lookup_key_prefixes: lookup_key_prefixes!,
      },
    };
  }

  async apply(event: JsonObject): Promise<JsonObject> {
    if (event["event"] === "worker_step") return this.#step(event);
    if (event["event"] !== "get_num_new_matched_tokens") return this.#scheduler.apply(event);
    for (const state of optionalList<JsonObject>(event, "requests") ?? [])
      this.#scheduler.updateRequest(state);
    const request = this.#scheduler.requests.get(text(event, "req_id"))!;
    // What the worker finds is what the scheduler is told, whatever the vector says that it found.
    const found = await this.#worker.lookup(request.numTokens, BlobBlockHashes.from(request.blockHashes));
    const { hit_length, tail_key_boundaries } = found;
    const pending = event["lookup_reply"] === "pending";
    const reply = pending
      ? "pending"
      : { hit_length: hit_length!, tail_key_boundaries: tail_key_boundaries! };
    const step = await this.#scheduler.apply({ ...event, lookup_reply: reply });
    const asked = step["lookup"] !== null && !pending;
    return { ...step, lookup_store_calls: asked ? found["store_calls"]! : [] };
  }

  storeKeys(): string[] {
    return [...this.#worker.store.present].sort();
  }

  async #step(event: JsonObject): Promise<JsonObject> {
    const step = await this.#worker.run(this.#scheduler.lastMetas, event, true);
    const members = STEP_MEMBERS.map((name): [string, JsonValue] => [name, step[name]!]);
    return { ...Object.fromEntries(members), ...(this.#events && { kv_events: step["?kv_events"]! }) };
  }
}

/** The op of engine_e2e.jsonl. */
export const engineHandlers: VectorHandlers = {
  e2e: async (input) => {
    const config = object(input, "config");
    const trace = new EngineTrace(config, await requestHashes(config));
    const { init, worker_init } = await trace.init();
    const steps: JsonObject[] = [];
    for (const event of list<JsonObject>(input, "events")) steps.push(await trace.apply(event));
    return { init, worker_init, steps, store_keys_at_end: trace.storeKeys() };
  },
};
