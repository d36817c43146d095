import { configError } from "../coordinator/checks.js";
import type { LookupResult, LookupWindows } from "../coordinator/lookup-session.js";
import { MooncakeStoreKVEvents } from "../events/kv-event-aggregator.js";
import type { BlockStored } from "../events/kv-events.js";
import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import { type CacheTensor, groupKernelBlocks } from "../layout/cache-tensor.js";
import { checkCount, requestError } from "../request/checks.js";
import type { MooncakeStoreConnectorMetadata } from "../request/connector-metadata.js";
import { MooncakeStoreWorkerMetadata } from "../request/worker-metadata.js";
import { MooncakeStoreConnectorStats } from "./connector-stats.js";
import { DEFAULT_DISK_STAGING_USABLE_RATIO, usableDiskOffloadBufferBudgetBytes } from "./disk-staging.js";
import { LoadPipeline } from "./load-pipeline.js";
import { type SaveFence, SavePipeline } from "./save-pipeline.js";
import { type ConnectorLogger, CountedStore, type WorkerStore } from "./store-calls.js";
import { type WorkerConfig, type WorkerSettings, workerSettings } from "./worker-config.js";

/** What a worker works with. */
export interface MooncakeStoreWorkerOptions {
  readonly config: WorkerConfig;
  /** The store. It stays the caller's: `close` does not close it. */
  readonly store: WorkerStore;
  /** Whether `registerKvCaches` registers memory with the store. Off for memory of an arena of the store. Default: true. */
  readonly registerMemory?: boolean | undefined;
  /** Segment to prefer for new objects. Default: none. */
  readonly preferredSegment?: string | undefined;
  /** Whether the store knows groups of objects; without, `enable_group_semantics` does nothing. Default: true. */
  readonly supportsGroupIds?: boolean | undefined;
  /** Bytes of the buffer that loads from disk pass through; they are split to fit it. Default: no splitting. */
  readonly diskOffloadBufferBudgetBytes?: number | undefined;
  /** The share of it that one load may fill. Default: 0.9. */
  readonly diskStagingUsableRatio?: number | undefined;
  /** Loads that run at the same time. Default: 1. */
  readonly recvThreads?: number | undefined;
  /** Whether the logger is told where loaded objects lay. It renews their leases. Default: false. */
  readonly tierLog?: boolean | undefined;
  /** Whether events carry hashes as 64-bit integers. Default: true. */
  readonly useIntBlockHashes?: boolean | undefined;
  /** Store jobs that may wait; one more is reported at once, and stores nothing. Default: 4096. */
  readonly maxQueuedSaves?: number | undefined;
  /** Loads that may wait; one more fails at once, so that the engine computes. Default: 4096. */
  readonly maxQueuedLoads?: number | undefined;
  /** How lookups ask. */
  readonly lookupWindows?: Partial<LookupWindows> | undefined;
  readonly logger?: ConnectorLogger | undefined;
}

/** What became of requests since the last step. */
export interface TransferResults {
  /** Always empty: blocks of a job are given back when it is reported, not when its request ends. */
  readonly finishedSending: ReadonlySet<string>;
  /** Requests whose load has ended. */
  readonly finishedRecving: ReadonlySet<string>;
  /** Those among them of which a block was not filled, in an engine with several cache groups. */
  readonly failedRecving: ReadonlySet<string>;
}

/** What a worker remembers of the requests that it saves. */
export interface WorkerSnapshot {
  /** Tokens up to which each request is stored. */
  readonly savedOffsets: ReadonlyMap<string, number>;
  /** Jobs of each request that wait or run. */
  readonly liveJobs: ReadonlyMap<string, readonly number[]>;
  /** Whether the store had no room at the last put. */
  readonly pressure: boolean;
  /** Requests that pause until a put succeeds. */
  readonly pausedRequests: readonly string[];
  /** Requests that have ended while jobs of theirs wait or run. */
  readonly awaitingRetire: readonly string[];
}

/** Milliseconds that `close` waits for jobs. */
const CLOSE_DEADLINE = 5_000;

/**
 * The worker side of the connector, one a rank: saves and loads what the scheduler side says, over any store. Calls of a
 * step return at once and work goes on behind; a later step learns what became of it. Nothing that a store does makes
 * them throw. Mirrors vLLM's `MooncakeStoreWorker`, vllm-0.33.
 *
 * Where vLLM has defects this one does not: a load without any object is reported; a load that is split for the disk
 * reports every block that it did not fill; a block that a job could not store for want of a source is stored by a later
 * one; a lookup that can't be decided is a miss.
 */
export class MooncakeStoreWorker implements AsyncDisposable {
  readonly settings: WorkerSettings;
  readonly #options: MooncakeStoreWorkerOptions;
  readonly #store: CountedStore;
  readonly #awaitingRetire = new Set<string>();
  readonly #registered: bigint[] = [];
  #stats = new MooncakeStoreConnectorStats();
  #saves: SavePipeline | undefined;
  #loads: LoadPipeline | undefined;
  #closed = false;

  /** @throws MooncakeKvError `ERR_CONFIG` for a configuration that makes no sense; see `workerSettings`. */
  constructor(options: MooncakeStoreWorkerOptions) {
    this.settings = workerSettings(options.config);
    this.#options = options;
    checkCount("recvThreads", options.recvThreads ?? 1, 0);
    checkCount("maxQueuedSaves", options.maxQueuedSaves ?? 1, 1);
    checkCount("maxQueuedLoads", options.maxQueuedLoads ?? 1, 1);
    this.#store = new CountedStore(options.store, (operation, record) =>
      this.#stats.recordOperation(operation, record),
    );
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
   * memory is registered with the store once each; a memory that it refuses is only warned of, and puts from it fail
   * later. A capacity-only worker has no cache. Mirrors `register_kv_caches`.
   *
   * @param numBlocks blocks of the cache.
   * @throws MooncakeKvError `ERR_LAYOUT` for a tensor that a layout can't describe, `ERR_REQUEST` when caches are
   * registered already; the worker is as before then.
   */
  async registerKvCaches(tensors: readonly CacheTensor[], numBlocks: number): Promise<void> {
    const { groups, capacityOnly } = this.settings;
    this.#checkOpen();
    if (capacityOnly || groups === undefined || tensors.length === 0) return;
    if (this.#loads !== undefined) throw requestError("KV caches are registered already");
    checkCount("numBlocks", numBlocks, 1);
    const caches = tensors.map((tensor) => groupKernelBlocks(tensor, numBlocks));
    try {
      await this.#registerStorages(caches);
      for (const { storeLayout } of groups.databases) storeLayout.registerKvCaches(caches, numBlocks);
    } catch (error) {
      await this.#unregister();
      throw error;
    }
    this.#startPipelines();
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
   */
  waitForSave(metadata: MooncakeStoreConnectorMetadata, fence?: SaveFence): void {
    if (this.settings.capacityOnly || !this.settings.canPut) return;
    for (const request of metadata.requests) if (request.canSave) this.#savePipeline().add(request, fence);
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
    const collect = this.settings.loadAsync ? this.#loads : undefined;
    return {
      finishedSending: new Set(),
      finishedRecving: collect?.takeFinished() ?? new Set(),
      failedRecving: collect?.takeFailed() ?? new Set(),
    };
  }

  /** Blocks that a load did not fill, since the last call. Mirrors `get_block_ids_with_load_errors`. */
  getBlockIdsWithLoadErrors(): Set<number> {
    return this.#loads?.takeInvalidBlockIds() ?? new Set();
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
   * store: that is a miss with a `failure`. Mirrors `lookup`.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` or `ERR_HASH` for a number of tokens or hashes that are none.
   */
  async lookup(numTokens: number, blockHashes: BlockHashSequence): Promise<LookupResult> {
    const { coordinator, groups } = this.settings;
    if (coordinator === undefined || groups === undefined)
      return { hitLength: 0, tailKeyBoundaries: [], keysAsked: 0, questions: 0, limitedBy: [] };
    return coordinator.lookup({
      numTokens,
      blockHashes,
      keyPrefixes: groups.lookupKeyPrefixes,
      windows: this.#options.lookupWindows,
      exists: (keys) => this.#store.exists("lookup_exists", keys),
    });
  }

  /**
   * Empties the store, after the jobs that wait: all deployments' objects. Generation must be paused. Mirrors the reset
   * of vLLM's lookup server.
   *
   * @returns whether the store says that it is empty.
   */
  async reset(): Promise<boolean> {
    await this.#saves?.drained();
    try {
      return (await this.#options.store.removeAll({ force: true })) >= 0;
    } catch (error) {
      this.#options.logger?.warn("the store could not be emptied", { error });
      return false;
    }
  }

  /** Resolves once no job waits or runs. */
  async drained(): Promise<void> {
    await Promise.all([this.#saves?.drained(), this.#loads?.drained()]);
  }

  /** What is remembered of requests; undefined for a worker that does not save. */
  snapshot(): WorkerSnapshot | undefined {
    return this.#saves && { ...this.#saves.ledger.snapshot(), awaitingRetire: [...this.#awaitingRetire] };
  }

  /** Waits some seconds for jobs, and unregisters the memory. Closing twice is fine. The store stays open. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_DEADLINE);
    });
    await Promise.race([this.drained(), deadline]);
    clearTimeout(timer);
    await this.#unregister();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #startPipelines(): void {
    const { coordinator, groups, tpRank, canPut, enableKvEvents, enableGroupSemantics } = this.settings;
    const options = this.#options;
    const common = {
      coordinator: coordinator!,
      databases: groups!.databases,
      tpRank,
      store: this.#store,
      logger: options.logger,
    };
    if (canPut)
      this.#saves = new SavePipeline({
        ...common,
        putSteps: groups!.replicationFactors,
        putOptions: options.preferredSegment ? { preferredSegments: [options.preferredSegment] } : {},
        groupIds: enableGroupSemantics && options.supportsGroupIds !== false,
        enableKvEvents,
        useIntBlockHashes: options.useIntBlockHashes ?? true,
        capacity: options.maxQueuedSaves ?? 4096,
      });
    const budget = options.diskOffloadBufferBudgetBytes;
    const ratio = options.diskStagingUsableRatio ?? DEFAULT_DISK_STAGING_USABLE_RATIO;
    this.#loads = new LoadPipeline({
      ...common,
      byRequest: this.settings.isHmaRequired,
      diskBudget:
        budget === undefined
          ? undefined
          : { raw: budget, usable: usableDiskOffloadBufferBudgetBytes(budget, ratio) },
      tierLog: options.tierLog ?? false,
      runners: Math.max(1, options.recvThreads ?? 1),
      capacity: options.maxQueuedLoads ?? 4096,
    });
  }

  async #registerStorages(caches: readonly CacheTensor[]): Promise<void> {
    if (this.#options.registerMemory === false) return;
    const seen = new Set<bigint>();
    for (const { storageAddress, storageBytes } of caches) {
      if (seen.has(storageAddress)) continue;
      seen.add(storageAddress);
      const code = await this.#options.store.registerBuffer(storageAddress, storageBytes);
      if (code === 0) this.#registered.push(storageAddress);
      else
        this.#options.logger?.warn("the store does not accept a memory region", {
          address: storageAddress,
          bytes: storageBytes,
          code,
        });
    }
  }

  async #unregister(): Promise<void> {
    for (const address of this.#registered.splice(0))
      try {
        await this.#options.store.unregisterBuffer(address);
      } catch (error) {
        this.#options.logger?.warn("a memory region stays registered", { address, error });
      }
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
    if (this.#closed) throw requestError("the worker is closed");
  }
}
