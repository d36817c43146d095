import { setMaxListeners } from "node:events";
import { configChecks, configError } from "../../coordinator/checks.js";
import type { LookupResult } from "../../coordinator/lookup/lookup-session.js";
import { describe } from "../../errors.js";
import { MooncakeStoreKVEvents } from "../../events/kv-event-aggregator.js";
import type { BlockStored } from "../../events/kv-events.js";
import type { BlockHashSequence } from "../../hash/blob-block-hashes.js";
import { type CacheTensor, groupKernelBlocks } from "../../layout/cache-tensor.js";
import { checkCount, requestError } from "../../request/checks.js";
import type { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { MooncakeStoreWorkerMetadata } from "../../request/worker-metadata.js";
import { CallLimit } from "../call-limit.js";
import { MooncakeStoreConnectorStats } from "../metrics/connector-stats.js";
import { checkedTimeLimits, DEFAULT_WORKER_TIME_LIMITS, type WorkerTimeLimits } from "../time-limits.js";
import { type ConnectorLogger, guardedLogger } from "../user-callbacks.js";
import type { LoadPipeline } from "./load-pipeline.js";
import { RegisteredMemory } from "./registered-memory.js";
import { checkedJobId, type SaveFence, type SavePipeline } from "./save-pipeline.js";
import { CountedStore, type WorkerStore } from "./store-calls.js";
import { type WorkerSettings, workerSettings } from "./worker-config.js";
import {
  type MooncakeStoreWorkerOptions,
  type TransferResults,
  WORKER_OPTIONS,
  type WorkerSnapshot,
} from "./worker-options.js";
import { loadPipeline, savePipeline } from "./worker-pipelines.js";

export type { MooncakeStoreWorkerOptions, TransferResults, WorkerSnapshot } from "./worker-options.js";

/** Milliseconds beyond its time in which a store that keeps to it has said so. */
const ANSWER_MS = 250;

/**
 * The worker side of the connector, one a rank: saves and loads what the scheduler side says, over any store. Calls of a
 * step return at once and work goes on behind; a later step learns what became of it. Nothing that a store or a callback
 * does makes them throw, hang or believe what is not so: a block counts as filled and an object as stored only where the
 * store says exactly that, and what gives no answer in time (`timeLimits`) has failed. Mirrors vLLM's
 * `MooncakeStoreWorker`, vllm-0.33.
 *
 * Where vLLM has defects this one does not: a load without any object is reported; a load that is split for the disk
 * reports every block that it did not fill; a block that a job could not store for want of a source is stored by a later
 * one; a lookup that can't be decided is a failure.
 *
 * @example
 * ```ts
 * import { kvCacheBytes, kvCacheTensors } from "mooncake-kv";
 * import { MooncakeStoreWorker } from "mooncake-kv/connector";
 * import { openStore } from "mooncake-kv/store";
 *
 * const cache = { layout: "LBHNC", numLayers: 2, numBlocks: 8, numHeads: 8, blockSize: 16, contentSize: 128, elementSize: 2 } as const;
 * const store = await openStore("mooncake:./mooncake.json");
 * const arena = await store.createArena(kvCacheBytes(cache));
 * const kvCacheGroups = [{ kvCacheSpec: { kind: "full", blockSize: 16 } }] as const;
 * const worker = new MooncakeStoreWorker({
 *   config: { kvRole: "kv_both", kvCacheGroups, blockSize: 16, model: "Qwen/Qwen3-8B", numKvHeads: 8 },
 *   store,
 *   registerMemory: false,
 * });
 * await worker.registerKvCaches(kvCacheTensors(cache, arena.baseAddress), cache.numBlocks);
 * ```
 */
export class MooncakeStoreWorker implements AsyncDisposable {
  readonly settings: WorkerSettings;
  readonly #options: MooncakeStoreWorkerOptions;
  readonly #store: WorkerStore;
  readonly #counted: CountedStore;
  readonly #limits: WorkerTimeLimits;
  readonly #logger: Required<ConnectorLogger>;
  readonly #memory: RegisteredMemory;
  readonly #abort = new AbortController();
  readonly #awaitingRetire = new Set<string>();
  #stats = new MooncakeStoreConnectorStats();
  #saves: SavePipeline | undefined;
  #loads: LoadPipeline | undefined;
  #registering = false;
  #closing: Promise<void> | undefined;

  /**
   * @throws MooncakeKvError `ERR_CONFIG` for a configuration that makes no sense (see `workerSettings`), a time limit that
   * can't be and a logger that is none; `ERR_REQUEST` for a number that is none.
   */
  constructor(options: MooncakeStoreWorkerOptions) {
    configChecks.names("MooncakeStoreWorker", options, WORKER_OPTIONS);
    if (typeof options.store !== "object" || options.store === null)
      throw configChecks.error(`store is ${describe(options.store)}; it must be a store`, {
        store: options.store,
      });
    this.settings = workerSettings(options.config);
    this.#options = options;
    checkCount("recvThreads", options.recvThreads ?? 1, 0);
    checkCount("maxQueuedSaves", options.maxQueuedSaves ?? 1, 1);
    checkCount("maxQueuedLoads", options.maxQueuedLoads ?? 1, 1);
    this.#limits = checkedTimeLimits(options.timeLimits, DEFAULT_WORKER_TIME_LIMITS);
    this.#logger = guardedLogger(options.logger);
    this.#store = options.store;
    this.#counted = new CountedStore(options.store, (operation, record) =>
      this.#stats.recordOperation(operation, record),
    );
    this.#memory = new RegisteredMemory(options.store, this.#limits.registerMs, this.#logger);
    // Each call under way listens.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Loads that run at the same time; 0 before `registerKvCaches`. */
  get numRecvThreads(): number {
    return this.#loads === undefined ? 0 : Math.max(1, this.#options.recvThreads ?? 1);
  }

  /** Whether this worker saves; false before `registerKvCaches`. */
  get canSave(): boolean {
    return this.#saves !== undefined;
  }

  /**
   * Tells where the KV cache lies: the tensors of the layers that the store's groups have, in the engine's order. Their
   * memory is registered with the store once each; a memory that it does not accept in time is only warned of, and puts
   * from it fail later. A capacity-only worker has no cache. Mirrors `register_kv_caches`.
   *
   * @param numBlocks blocks of the cache.
   * @throws MooncakeKvError `ERR_LAYOUT` for a tensor that a layout can't describe, `ERR_REQUEST` when caches are
   * registered already or just being registered, and when the worker is closed; the worker is as before then.
   */
  async registerKvCaches(tensors: readonly CacheTensor[], numBlocks: number): Promise<void> {
    const { groups, capacityOnly } = this.settings;
    this.#checkOpen();
    if (capacityOnly || groups === undefined || tensors.length === 0) return;
    if (this.#loads !== undefined) throw requestError("KV caches are registered already");
    if (this.#registering) throw requestError("KV caches are just being registered; once is enough");
    checkCount("numBlocks", numBlocks, 1);
    const caches = tensors.map((tensor) => groupKernelBlocks(tensor, numBlocks));
    this.#registering = true;
    try {
      if (this.#options.registerMemory !== false) await this.#memory.register(caches);
      this.#checkOpen();
      for (const { storeLayout } of groups.databases) storeLayout.registerKvCaches(caches, numBlocks);
      this.#startPipelines();
    } catch (error) {
      await this.#memory.unregister();
      throw error;
    } finally {
      this.#registering = false;
    }
  }

  /**
   * Begins the loads of a step. Mirrors `start_load_kv`.
   *
   * @throws MooncakeKvError `ERR_CONFIG` with `load_async` off, which no worker supports; the loads have begun.
   */
  startLoadKv(metadata: MooncakeStoreConnectorMetadata): void {
    if (this.settings.capacityOnly) return;
    for (const request of metadata.requests) if (request.loadSpec?.canLoad) this.#loadPipeline().add(request);
    if (!this.settings.loadAsync)
      throw configError("load_async is off, but loads always run beside the engine; leave it on", {
        load_async: false,
      });
  }

  /**
   * Begins the saves of a step. Mirrors `wait_for_save`.
   *
   * @param fence waits until the memory holds what this step computes; called before each put.
   * @throws MooncakeKvError `ERR_REQUEST` before `registerKvCaches`, after `close` and for a job without an id; no job has
   * begun then.
   */
  waitForSave(metadata: MooncakeStoreConnectorMetadata, fence?: SaveFence): void {
    if (this.settings.capacityOnly || !this.settings.canPut) return;
    const jobs = metadata.requests.filter(({ canSave }) => canSave);
    if (jobs.length === 0) return;
    const pipeline = this.#savePipeline();
    for (const job of jobs) checkedJobId(job);
    for (const job of jobs) pipeline.add(job, fence);
  }

  /**
   * Retires what was remembered of requests that have ended or were preempted, and says whose loads have ended. Mirrors
   * `get_transfer_results`.
   */
  getTransferResults(
    finishedReqIds: Iterable<string>,
    metadata: Pick<MooncakeStoreConnectorMetadata, "preemptedReqIds">,
  ): TransferResults {
    if (this.#saves !== undefined) this.#retire(finishedReqIds, metadata.preemptedReqIds);
    const collect = this.settings.loadAsync ? this.#loads?.reports : undefined;
    return {
      finishedSending: new Set(),
      finishedRecving: collect?.takeFinished() ?? new Set(),
      failedRecving: collect?.takeFailed() ?? new Set(),
    };
  }

  /** Blocks that a load did not fill, since the last call. Mirrors `get_block_ids_with_load_errors`. */
  getBlockIdsWithLoadErrors(): Set<number> {
    return this.#loads?.reports.takeInvalidBlockIds() ?? new Set();
  }

  /** The jobs that this rank is done with since the last call; null when none. Mirrors `build_connector_worker_meta`. */
  buildConnectorWorkerMeta(): MooncakeStoreWorkerMetadata | null {
    const completed = this.#saves?.ledger.takeCompleted();
    return completed === undefined || completed.size === 0
      ? null
      : new MooncakeStoreWorkerMetadata(completed);
  }

  /** Blocks that were stored since the last call; null where events are off. Mirrors `get_kv_events`. */
  getKvEvents(): BlockStored[] | null {
    return this.settings.enableKvEvents && this.#saves !== undefined ? this.#saves.takeEvents() : null;
  }

  /**
   * `getKvEvents` for the scheduler side, which publishes a block once enough workers have stored their part of it. Also
   * a worker without events must report. Mirrors `get_kv_connector_kv_cache_events`.
   */
  getKvConnectorKvCacheEvents(): MooncakeStoreKVEvents | null {
    const events = this.getKvEvents();
    if (events === null) return null;
    const report = new MooncakeStoreKVEvents(1, this.settings.groups!.replicationFactors);
    report.addEvents(events);
    return report;
  }

  /** What was done since the last call; null when nothing. Mirrors `get_kv_connector_stats`. */
  getKvConnectorStats(): MooncakeStoreConnectorStats | null {
    if (this.#stats.isEmpty()) return null;
    const stats = this.#stats;
    this.#stats = new MooncakeStoreConnectorStats();
    return stats;
  }

  /**
   * How many tokens of a prompt the store holds, on all ranks that have to load them. Never rejects because of the
   * store: one that fails, lies or says nothing in time gives a `failure`, and a hit of 0 that says nothing. Mirrors
   * `lookup`.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` or `ERR_HASH` for a number of tokens or hashes that are none.
   */
  async lookup(numTokens: number, blockHashes: BlockHashSequence): Promise<LookupResult> {
    const { coordinator, groups } = this.settings;
    if (coordinator === undefined || groups === undefined)
      return { hitLength: 0, tailKeyBoundaries: [], keysAsked: 0, questions: 0, limitedBy: [] };
    const limit = this.#limit(this.#limits.lookupMs);
    try {
      return await coordinator.lookup({
        numTokens,
        blockHashes,
        keyPrefixes: groups.lookupKeyPrefixes,
        windows: this.#options.lookupWindows,
        exists: (keys) => this.#counted.lookUp(keys, limit),
      });
    } finally {
      limit.end();
    }
  }

  /**
   * Empties the store, after the jobs that wait: all deployments' objects. Generation must be paused. Mirrors the reset
   * of vLLM's lookup server.
   *
   * @returns whether the store says that it is empty; false also when jobs or the store take too long.
   */
  async reset(): Promise<boolean> {
    const limit = this.#limit(this.#limits.resetMs);
    let why: object;
    try {
      await limit.run("the wait for store jobs", () => this.#saves?.drained());
      const removed: unknown = await limit.run("removeAll", (options) =>
        this.#store.removeAll({ force: true, ...options }),
      );
      if (Number.isSafeInteger(removed) && (removed as number) >= 0) return true;
      why = { code: describe(removed) };
    } catch (error) {
      why = { error };
    } finally {
      limit.end();
    }
    this.#logger.warn("the store could not be emptied", { ...why });
    return false;
  }

  /** Resolves once no job waits or runs. */
  async drained(): Promise<void> {
    await Promise.all([this.#saves?.drained(), this.#loads?.drained()]);
  }

  /** What is remembered of requests; undefined for a worker that does not save. */
  snapshot(): WorkerSnapshot | undefined {
    return this.#saves && { ...this.#saves.ledger.snapshot(), awaitingRetire: [...this.#awaitingRetire] };
  }

  /**
   * Waits some seconds for jobs, aborts those that are left, and unregisters the memory. Jobs are reported to the last,
   * those that were aborted as failed. Closing twice is fine. The store stays open.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#drainedInTime();
    this.#abort.abort(requestError("the worker is closed"));
    // What is aborted ends as soon as its copies have: till then the memory is the store's.
    await this.#drainedInTime();
    await this.#memory.unregister();
  }

  async #drainedInTime(): Promise<void> {
    const limit = new CallLimit({ ms: this.#limits.closeMs });
    await limit.run("the wait for jobs", () => this.drained()).catch(() => {});
    limit.end();
  }

  /** The time of one call on the store that uses no memory. */
  #limit(ms: number): CallLimit {
    return new CallLimit({ ms, graceMs: ANSWER_MS, signal: this.#abort.signal });
  }

  #startPipelines(): void {
    const surroundings = {
      settings: this.settings,
      options: this.#options,
      store: this.#counted,
      limits: this.#limits,
      signal: this.#abort.signal,
      logger: this.#logger,
    };
    this.#saves = savePipeline(surroundings);
    this.#loads = loadPipeline(surroundings);
  }

  /**
   * What is remembered of a preempted request goes at once: its next life stores from the start. That of a finished one
   * stays until its last job has run, which still needs it.
   */
  #retire(finishedReqIds: Iterable<string>, preemptedReqIds: ReadonlySet<string>): void {
    const { ledger } = this.#saves!;
    for (const reqId of preemptedReqIds) ledger.forget(reqId);
    for (const reqId of finishedReqIds) this.#awaitingRetire.add(reqId);
    for (const reqId of this.#awaitingRetire) {
      if (ledger.hasLiveJobs(reqId)) continue;
      this.#awaitingRetire.delete(reqId);
      ledger.forget(reqId);
    }
  }

  #savePipeline(): SavePipeline {
    this.#checkOpen();
    if (this.#saves === undefined)
      throw requestError("no KV caches are registered; call registerKvCaches first");
    return this.#saves;
  }

  #loadPipeline(): LoadPipeline {
    this.#checkOpen();
    if (this.#loads === undefined)
      throw requestError("no KV caches are registered; call registerKvCaches first");
    return this.#loads;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw requestError("the worker is closed");
  }
}
