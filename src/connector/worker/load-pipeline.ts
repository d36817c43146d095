import { describe } from "../../errors.js";
import { requestError } from "../../request/checks.js";
import type { LoadSpec } from "../../request/load-spec.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { CallLimit, type CallLimitOptions } from "../call-limit.js";
import type { ConnectorLogger } from "../user-callbacks.js";
import {
  estimateDiskOffloadStagingBytes,
  type LoadBatch,
  splitDiskOffloadLoadBatches,
} from "./disk-staging.js";
import { JobQueue } from "./job-queue.js";
import { LoadReports } from "./load-reports.js";
import { type LoadGroups, type LoadPlan, loadPlan } from "./load-rows.js";
import { classifyReplicaTier, type ReplicaTier, tierSummary } from "./replica-tier.js";
import { rowSizes, sliceSegments } from "./segment-rows.js";
import type { CountedStore } from "./store-calls.js";

/** How much of a staging buffer loads from disk may use, in bytes. */
export interface DiskBudget {
  readonly raw: number;
  readonly usable: number;
}

/** What the load side of a worker works with. */
export interface LoadPipelineOptions extends LoadGroups {
  readonly store: CountedStore;
  /** Whether block ids are unique in one group only, so that failures are reported by request. */
  readonly byRequest: boolean;
  readonly diskBudget: DiskBudget | undefined;
  /** Whether the store is asked where objects lie before each load, and the logger told. It renews leases. */
  readonly tierLog: boolean;
  /** Loads that run at the same time. */
  readonly runners: number;
  /** Loads that may wait. */
  readonly capacity: number;
  /** The time of one load, the wait for others included. */
  readonly limit: CallLimitOptions;
  /** Must never throw. */
  readonly logger: Required<ConnectorLogger>;
}

interface QueuedLoad {
  readonly job: ReqMeta;
  readonly spec: LoadSpec;
  readonly limit: CallLimit;
}

/**
 * Reads what loads ask for into the blocks of their requests. Every request is reported once, when all of its loads have
 * ended, whatever becomes of them, and every block that was not filled is reported as such, so that the engine computes
 * it again: a lost load costs time, never wrong bytes. Mirrors vLLM's `KVCacheStoreRecvingThread`.
 */
export class LoadPipeline {
  readonly reports: LoadReports;
  readonly #options: LoadPipelineOptions;
  readonly #queue: JobQueue<QueuedLoad>;

  constructor(options: LoadPipelineOptions) {
    this.reports = new LoadReports(options.byRequest);
    this.#options = options;
    this.#queue = new JobQueue((load) => this.#run(load), options.runners, options.capacity);
  }

  /** Loads that wait or run. */
  get size(): number {
    return this.#queue.size;
  }

  /** Resolves once no load waits or runs. */
  drained(): Promise<void> {
    return this.#queue.drained();
  }

  /**
   * Adds a load. Where there is no room it fails at once.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for a job that loads nothing.
   */
  add(job: ReqMeta): void {
    const load = { job, spec: checkedSpec(job), limit: new CallLimit(this.#options.limit) };
    this.reports.begin(job.reqId);
    if (this.#queue.push(load)) return;
    this.#lostAll(load);
    this.reports.end(job.reqId);
    this.#options.logger.warn("too many loads wait; this one fails", { reqId: job.reqId });
  }

  async #run(load: QueuedLoad): Promise<void> {
    const { job, spec, limit } = load;
    const { reqId } = job;
    try {
      const plan = loadPlan(this.#options, job, spec);
      const batches = this.#batches(plan, reqId);
      if (batches === undefined) this.reports.lost(reqId, plan.segments.blockIds);
      else await this.#load(reqId, plan, batches, limit);
    } catch (error) {
      this.#lostAll(load);
      this.#options.logger.warn("a load is impossible", { reqId, error });
    } finally {
      limit.end();
      this.reports.end(reqId);
    }
  }

  /** The parts in which a load is read; undefined where one object is too large for any. */
  #batches({ keys, segments }: LoadPlan, reqId: string): readonly LoadBatch[] | undefined {
    const { diskBudget } = this.#options;
    const whole = { start: 0, end: keys.length };
    if (keys.length === 0) return [];
    if (diskBudget === undefined) return [whole];
    const sizes = rowSizes(segments);
    const staging = sizes.reduce((sum, size) => sum + estimateDiskOffloadStagingBytes(size), 0);
    if (staging <= diskBudget.usable) return [whole];
    const { batches, oversize } = splitDiskOffloadLoadBatches(sizes, diskBudget.usable, diskBudget.raw);
    if (oversize !== undefined)
      this.#options.logger.warn("an object is larger than the staging buffer; its request is not loaded", {
        reqId,
        key: keys[oversize],
        bytes: estimateDiskOffloadStagingBytes(sizes[oversize]!),
        budget: diskBudget.raw,
      });
    return batches;
  }

  /**
   * Reads the parts one by one. A part with failures does not end the load, since what follows may lie before it in the
   * prompt; a call that fails does, and then the rest counts as not loaded. With failures by request one is enough.
   */
  async #load(
    reqId: string,
    { keys, segments }: LoadPlan,
    batches: readonly LoadBatch[],
    limit: CallLimit,
  ): Promise<void> {
    const { store, tierLog, logger, byRequest } = this.#options;
    for (const { start, end } of batches) {
      const batchKeys = keys.slice(start, end);
      const batch = sliceSegments(segments, start, end);
      try {
        const tiers = tierLog ? await this.#tiers(batchKeys, limit) : undefined;
        const { codes, failed } = await store.get(batchKeys, batch, limit);
        if (tiers) logger.info("load by tier", { ...tierSummary(reqId, tiers, rowSizes(batch), failed) });
        const [first] = failed;
        if (first === undefined) continue;
        this.reports.lost(
          reqId,
          Array.from(failed, (position) => batch.blockIds[position]!),
        );
        logger.warn("some objects could not be read", {
          reqId,
          failed: failed.size,
          keys: batchKeys.length,
          firstKey: batchKeys[first],
          firstCode: describe(codes[first]),
          firstBytes: Number(batch.rowBytes(first)),
        });
        if (byRequest) return;
      } catch (error) {
        this.reports.lost(reqId, segments.blockIds.subarray(start));
        logger.warn("a load failed", { reqId, keys: batchKeys.length, firstKey: batchKeys[0], error });
        return;
      }
    }
  }

  async #tiers(keys: readonly string[], limit: CallLimit): Promise<ReplicaTier[]> {
    try {
      const replicas = await this.#options.store.replicas(keys, limit);
      return keys.map((_, index) => classifyReplicaTier(replicas[index]));
    } catch (error) {
      this.#options.logger.warn("the store does not say where objects lie", { keys: keys.length, error });
      return keys.map(() => "unknown");
    }
  }

  /** Every block that a load could have filled, where it is not known which it would have. */
  #lostAll({ job, spec }: QueuedLoad): void {
    const { databases } = this.#options;
    const blockIds = job.blockIds.flatMap((table, groupId) => {
      const size = databases[groupId]?.blockSize ?? 1;
      return table.slice(Math.floor(spec.vllmCachedTokens / size), Math.ceil(spec.kvpoolCachedTokens / size));
    });
    this.reports.lost(job.reqId, blockIds);
  }
}

function checkedSpec({ reqId, loadSpec }: ReqMeta): LoadSpec {
  if (!loadSpec?.canLoad)
    throw requestError(`a job of request ${reqId} loads nothing: it has no load spec that can load`, {
      reqId,
    });
  return loadSpec;
}
