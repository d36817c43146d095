import type { MooncakeStoreWorkerMetadata } from "../../../generated/typescript/index.js";
import type { OptionNames } from "../../checks/checks-for.js";
import { configChecks } from "../../coordinator/checks.js";
import { describe } from "../../errors.js";
import { MooncakeStoreKVEvents } from "../../events/kv-event-aggregator.js";
import type { KVCacheEvent } from "../../events/kv-events.js";
import type { BoundaryPutTuple } from "../../request/boundary-put.js";
import { checkCount, requestError } from "../../request/checks.js";
import { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { createLoadSpec, type LoadSpec } from "../../request/load-spec.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { type ConnectorConfig, type ConnectorSettings, connectorSettings } from "../connector-config.js";
import {
  checkedTimeLimits,
  DEFAULT_SCHEDULER_TIME_LIMITS,
  type SchedulerTimeLimits,
  type TimeLimitOptions,
} from "../time-limits.js";
import { type ConnectorLogger, guardedLogger } from "../user-callbacks.js";
import type { BlockPool } from "./block-pool.js";
import { addBoundaryStates } from "./boundary-states.js";
import { finishedPartialTail } from "./finished-tail.js";
import type { LookupClient } from "./lookup-client.js";
import { numberJobs, withCurrentBlockIds } from "./save-jobs.js";
import { type LookupCounts, SchedulerLookups } from "./scheduler-lookups.js";
import { type BlockIds, projectBlockIds, type SchedulerOutput } from "./scheduler-output.js";
import { SchedulerState } from "./scheduler-state.js";
import { stepRequests } from "./step-requests.js";
import { type PinnedSave, StoreJobs } from "./store-jobs.js";
import type { StoreRequest } from "./store-request.js";

/** What the scheduler side works with. */
export interface MooncakeStoreSchedulerOptions {
  readonly config: ConnectorConfig;
  readonly lookupClient: LookupClient;
  /** Where references on blocks are taken. May be bound later. */
  readonly blockPool?: BlockPool | undefined;
  /** How long the scheduler side waits for its client. Default: `DEFAULT_SCHEDULER_TIME_LIMITS`. */
  readonly timeLimits?: TimeLimitOptions<SchedulerTimeLimits> | undefined;
  /** Told of lookups that gave no answer. It may throw: that costs nothing but what it would have said. */
  readonly logger?: ConnectorLogger | undefined;
}

const OPTIONS: OptionNames<MooncakeStoreSchedulerOptions> = {
  config: 1,
  lookupClient: 1,
  blockPool: 1,
  timeLimits: 1,
  logger: 1,
};

/**
 * The scheduler side of the connector: decides in every step of the engine what its workers save and load, and keeps the
 * blocks of a job from being given away until all ranks have reported it. Mirrors vLLM's `MooncakeStoreScheduler` and
 * the scheduler role of `MooncakeStoreConnector`, vllm-0.33.
 *
 * Every call either does all of its work or, when it throws, none of it: a caller that goes on has lost nothing. Only
 * what can be so is believed of a lookup, and a client that says nothing is not waited for for ever. One thing is not as
 * in vLLM: a request that is preempted and admitted again before the next step keeps what belongs to its new life. vLLM
 * drops it, so that a load is never issued and the request waits for ever, or raises.
 *
 * @example
 * ```ts
 * import { MooncakeStoreScheduler, PendingLookups } from "mooncake-kv/connector";
 * import { LookupKeyClient } from "mooncake-kv/lookup";
 *
 * const client = new LookupKeyClient({ socketPath: "ipc:///tmp/lookup" });
 * const scheduler = new MooncakeStoreScheduler({
 *   config: { kvRole: "kv_both", kvCacheGroups: [{ kvCacheSpec: { kind: "full", blockSize: 16 } }], blockSize: 16 },
 *   lookupClient: new PendingLookups({
 *     lookup: (numTokens, blockHashes) => client.lookup("scheduler", numTokens, blockHashes),
 *     reset: () => client.reset(),
 *   }),
 * });
 * console.log(scheduler.settings.hashBlockSize);
 * ```
 */
export class MooncakeStoreScheduler {
  readonly settings: ConnectorSettings;
  readonly #lookups: SchedulerLookups;
  readonly #state: SchedulerState = new SchedulerState();
  readonly #jobs: StoreJobs;
  #pool: BlockPool | undefined;
  #events: MooncakeStoreKVEvents | undefined;

  /**
   * @throws MooncakeKvError `ERR_CONFIG` for a configuration that makes no sense (see `connectorSettings`), a time limit
   * that can't be and a logger that is none.
   */
  constructor(options: MooncakeStoreSchedulerOptions) {
    configChecks.names("MooncakeStoreScheduler", options, OPTIONS);
    if (typeof options.lookupClient !== "object" || options.lookupClient === null)
      throw configChecks.error(
        `lookupClient is ${describe(options.lookupClient)}; it must be a client, such as PendingLookups`,
        { lookupClient: options.lookupClient },
      );
    this.settings = connectorSettings(options.config);
    this.#lookups = new SchedulerLookups(
      options.lookupClient,
      this.settings,
      checkedTimeLimits(options.timeLimits, DEFAULT_SCHEDULER_TIME_LIMITS),
      guardedLogger(options.logger),
    );
    this.#pool = options.blockPool;
    this.#jobs = new StoreJobs(this.settings.numWorkers);
  }

  /** Sets where references on blocks are taken. Mirrors `bind_gpu_block_pool`. */
  bindGpuBlockPool(blockPool: BlockPool): void {
    this.#pool = blockPool;
  }

  /**
   * How many tokens the store can add to the `numComputedTokens` that the engine has, and whether they are loaded while
   * other requests run. `null` while the lookup runs: ask again in a later step. Mirrors
   * `get_num_new_matched_tokens`. A lookup that fails, says what can't be or says nothing for `timeLimits.lookupMs` is no
   * miss, but the request goes on as after one; see `lookupCounts`.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when `numComputedTokens` is no number of tokens.
   */
  getNumNewMatchedTokens(
    request: StoreRequest,
    numComputedTokens: number,
  ): readonly [numNewTokens: number | null, loadAsync: boolean] {
    checkCount("numComputedTokens", numComputedTokens);
    const { enableLookup, enablePartialHashHits, hashBlockSize, blockSize } = this.settings;
    const alignment = enablePartialHashHits ? hashBlockSize : blockSize;
    if (!enableLookup || request.numTokens < alignment) return [0, false];
    const found = this.#lookups.ask(request);
    if (found === null) return [null, false];
    const needed = found.hitLength - numComputedTokens;
    if (needed <= 0) return [0, false];
    this.#state.loadSpecs.set(
      request.requestId,
      createLoadSpec({
        vllmCachedTokens: numComputedTokens,
        kvpoolCachedTokens: found.hitLength,
        canLoad: false,
        tailKeyBoundaries: found.tailKeyBoundaries,
      }),
    );
    return [needed, this.settings.loadAsync];
  }

  /**
   * Tells that a request was given blocks, all engine groups, `numExternalTokens` of which are to be filled from the
   * store; 0 refuses what was offered. Mirrors `update_state_after_alloc`.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when that is not the number that was offered.
   */
  updateStateAfterAlloc(request: StoreRequest, blockIds: BlockIds, numExternalTokens: number): void {
    const { requestId } = request;
    const state = this.#state;
    checkCount("numExternalTokens", numExternalTokens);
    const loadSpec = state.loadSpecs.get(requestId);
    const offered = loadSpec && loadSpec.kvpoolCachedTokens - loadSpec.vllmCachedTokens;
    if (offered !== undefined && numExternalTokens > 0 && numExternalTokens !== offered)
      throw requestError(
        `request ${requestId} was given blocks for ${numExternalTokens} external tokens, but the store offered ${offered}`,
        { reqId: requestId, numExternalTokens, offered },
      );
    const projected =
      numExternalTokens > 0 ? projectBlockIds(requestId, blockIds, this.settings.storeGroupIds) : [];
    state.unfinishedRequests.set(requestId, { request, blockIds: projected });
    state.unfinishedRequestIds.add(requestId);
    this.#lookups.forget(requestId);
    if (state.scheduledRequestIds.has(requestId)) state.readmittedRequestIds.add(requestId);
    if (loadSpec !== undefined)
      state.loadSpecs.set(requestId, { ...loadSpec, canLoad: numExternalTokens > 0 });
  }

  /**
   * What the workers do in this step. The blocks of every job that saves are referenced in the pool. Mirrors
   * `build_connector_meta`.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for an output that contradicts what is known; the step has not happened then.
   */
  buildConnectorMeta(output: SchedulerOutput): MooncakeStoreConnectorMetadata {
    const finished = new Set(output.finishedReqIds);
    const preempted = new Set(output.preemptedReqIds);
    const state = this.#state;
    const meta = state.atomically(() => {
      for (const reqId of finished) this.#forget(reqId);
      for (const reqId of preempted) this.#preempt(reqId);
      state.readmittedRequestIds.clear();
      const requests = this.#stepJobs(output);
      const step = new MooncakeStoreConnectorMetadata(state.unfinishedRequestIds, preempted);
      for (const request of requests) step.addRequest(request);
      return step;
    });
    // From here on nothing may fail: the jobs hold their blocks, and only their metadata brings them back.
    for (const reqId of preempted) this.#lookups.forget(reqId);
    for (const reqId of finished) {
      this.#lookups.forget(reqId);
      this.#lookups.discard(reqId);
    }
    return meta;
  }

  /**
   * Counts the jobs that ranks have reported, gives the blocks of finished jobs back, and takes in events. Mirrors
   * `update_connector_output`.
   *
   * @param workerMeta the reports of all workers of a step, added up; null when there are none.
   * @param kvCacheEvents the events of all workers of a step in one container, as `KVOutputAggregator` makes it.
   * @throws MooncakeKvError `ERR_REQUEST` when a job is reported too often, or by no number of ranks, and for an event of a
   * group that the store does not have. Nothing is counted or taken in then, and `details` say what it was: the report may
   * be handed in again without it. What a pool throws comes after everything has been.
   */
  updateConnectorOutput(
    workerMeta: MooncakeStoreWorkerMetadata | null,
    kvCacheEvents: MooncakeStoreKVEvents | null = null,
  ): void {
    if (workerMeta !== null) this.#jobs.check(workerMeta.completedSaves);
    if (kvCacheEvents !== null) this.#addEvents(kvCacheEvents);
    if (workerMeta !== null) this.#jobs.complete(workerMeta.completedSaves, this.#pool);
  }

  /** The events that enough workers have reported by now. Mirrors `take_events`. */
  takeEvents(): KVCacheEvent[] {
    const events = this.#events?.popCommonEvents() ?? [];
    if (!this.#events?.hasEvents()) this.#events = undefined;
    return events;
  }

  /**
   * Whether the engine must go on stepping although it has no request, because jobs still hold blocks and reports only
   * arrive in steps. Mirrors `has_pending_push_work`.
   */
  hasPendingPushWork(): boolean {
    return this.#jobs.pending;
  }

  /**
   * Whether the engine must keep the blocks of a request that ends: never, since a job holds its own references. Mirrors
   * `request_finished_all_groups`.
   */
  requestFinished(_request: StoreRequest, _blockIds: BlockIds): readonly [delayFree: false, params: null] {
    return [false, null];
  }

  /**
   * Takes the Mamba states with which a request ends, as engine group, block and tokens, for the next step's jobs, and
   * references their blocks at once. Mirrors `register_finished_partial_tail`.
   *
   * @returns false: the engine need not keep the blocks.
   * @throws MooncakeKvError `ERR_REQUEST` when the states lie at several boundaries, no pool is bound, or the request
   * has handed in a tail since the last step already.
   */
  registerFinishedPartialTail(
    request: StoreRequest,
    blockIds: BlockIds,
    offloads: readonly BoundaryPutTuple[],
  ): false {
    const { requestId } = request;
    const state = this.#state;
    const tracker = state.trackers.get(requestId);
    if (this.settings.isConsumer || offloads.length === 0 || tracker === undefined) return false;
    if (!blockIds.some((table) => table.length > 0)) return false;
    const tail = finishedPartialTail(this.settings, tracker, request, blockIds, offloads);
    if (tail === undefined) return false;
    if (state.finishedPartialTails.has(requestId))
      throw requestError(`request ${requestId} has handed in its partial tail already`, { reqId: requestId });
    const storeJobId = this.#jobs.nextJobId;
    const pinned = [...new Set((tail.boundaryPuts ?? []).map(({ blockId }) => blockId))];
    this.#jobs.open([{ storeJobId, blockIds: pinned }], this.#pool);
    state.finishedPartialTails.set(requestId, { ...tail, storeJobId });
    tracker.hasPendingOffload = true;
    return false;
  }

  /**
   * Forgets what was to be loaded and published, and empties the store, all deployments' objects. Generation must be paused. Mirrors
   * `reset_cache`.
   *
   * @returns whether the store is empty; false also when it could not be asked, or says nothing for `timeLimits.resetMs`.
   */
  async resetCache(): Promise<boolean> {
    this.#state.loadSpecs.clear();
    this.#events = undefined;
    return this.#lookups.reset();
  }

  /** What became of the lookups so far. */
  get lookupCounts(): Readonly<LookupCounts> {
    return { ...this.#lookups.counts };
  }

  /** What may be loaded, by request: offered or allocated, and not handed out yet. */
  get loadSpecs(): ReadonlyMap<string, LoadSpec> {
    return this.#state.loadSpecs;
  }

  /** The jobs that hold blocks, oldest first. */
  get pinnedSaves(): readonly PinnedSave[] {
    return this.#jobs.pinned;
  }

  /** Takes in all events or, when it throws, none. */
  #addEvents(events: MooncakeStoreKVEvents): void {
    if (!(events instanceof MooncakeStoreKVEvents))
      throw requestError(`kvCacheEvents is ${describe(events)}; it is a MooncakeStoreKVEvents, or null`);
    const groups = this.settings.storeGroupIds.length;
    for (const event of events.getAllEvents()) {
      const groupIdx = event.type === "AllBlocksCleared" ? null : event.groupIdx;
      if (groupIdx !== null && !(Number.isSafeInteger(groupIdx) && groupIdx >= 0 && groupIdx < groups))
        throw requestError(
          `a worker reports an event of cache group ${describe(groupIdx)}; the store has ${groups} groups`,
          { groupIdx, groups },
        );
    }
    if (this.#events === undefined) this.#events = events;
    else this.#events.addEvents(events.getAllEvents());
  }

  #stepJobs(output: SchedulerOutput): readonly ReqMeta[] {
    const { settings } = this;
    const state = this.#state;
    const step = { settings, state, output };
    const jobs = withCurrentBlockIds(addBoundaryStates(step, stepRequests(step)), output, settings);
    // Their blocks were referenced when they were handed in: no table knows them any more.
    jobs.push(...state.finishedPartialTails.values());
    state.finishedPartialTails.clear();
    if (settings.capacityOnly) return jobs;
    const { metas, pins } = numberJobs(jobs, settings, this.#jobs.nextJobId);
    this.#jobs.open(pins, this.#pool);
    return metas;
  }

  #forget(reqId: string): void {
    const state = this.#state;
    state.loadSpecs.delete(reqId);
    state.trackers.delete(reqId);
    state.unfinishedRequests.delete(reqId);
    state.unfinishedRequestIds.delete(reqId);
    state.scheduledRequestIds.delete(reqId);
  }

  #preempt(reqId: string): void {
    const state = this.#state;
    const tracker = state.trackers.get(reqId);
    if (tracker !== undefined) {
      state.willChange(tracker);
      tracker.reset();
    }
    state.scheduledRequestIds.delete(reqId);
    // Blocks, and a load into them, that came after the preemption are the new life's.
    if (state.readmittedRequestIds.has(reqId)) return;
    state.loadSpecs.delete(reqId);
    state.unfinishedRequests.delete(reqId);
  }
}
