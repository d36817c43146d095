import { requestError } from "../request/checks.js";
import type { LoadSpec } from "../request/load-spec.js";
import type { ReqMeta } from "../request/req-meta.js";
import {
  estimateDiskOffloadStagingBytes,
  type LoadBatch,
  splitDiskOffloadLoadBatches,
} from "./disk-staging.js";
import { JobQueue } from "./job-queue.js";
import { type LoadGroups, type LoadPlan, loadPlan } from "./load-rows.js";
import { classifyReplicaTier, type ReplicaTier, tierSummary } from "./replica-tier.js";
import { rowSizes, sliceSegments } from "./segment-rows.js";
import { type ConnectorLogger, type CountedStore, failedPositions } from "./store-calls.js";

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
  readonly logger: ConnectorLogger | undefined;
}

/**
 * Reads what loads ask for into the blocks of their requests. Every request is reported once, whatever becomes of its
 * load, and every block that was not filled is reported as such, so that the engine computes it again: a lost load costs
 * time, never wrong bytes. Mirrors vLLM's `KVCacheStoreRecvingThread`.
 */
export class LoadPipeline {
  readonly #options: LoadPipelineOptions;
  readonly #queue: JobQueue<ReqMeta>;
  readonly #finished = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #invalidBlockIds = new Set<number>();

  constructor(options: LoadPipelineOptions) {
    this.#options = options;
    this.#queue = new JobQueue((job) => this.#run(job), options.runners, options.capacity);
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
    const spec = checkedSpec(job);
    if (this.#queue.push(job)) return;
    this.#warn("too many loads wait; this one fails", { reqId: job.reqId });
    this.#reportAll(job, spec);
    this.#finished.add(job.reqId);
  }

  /** The requests whose load has ended since the last call. */
  takeFinished(): Set<string> {
    return take(this.#finished);
  }

  /** The requests whose load has failed since the last call. */
  takeFailed(): Set<string> {
    return take(this.#failed);
  }

  /** The blocks that were not filled since the last call. */
  takeInvalidBlockIds(): Set<number> {
    return take(this.#invalidBlockIds);
  }

  async #run(job: ReqMeta): Promise<void> {
    const { reqId } = job;
    const spec = checkedSpec(job);
    try {
      const plan = loadPlan(this.#options, job, spec);
      const batches = this.#batches(plan, reqId);
      if (batches === undefined) this.#report(reqId, plan.segments.blockIds);
      else await this.#load(reqId, plan, batches);
    } catch (error) {
      this.#warn("a load is impossible", { reqId, error });
      this.#reportAll(job, spec);
    }
    this.#finished.add(reqId);
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
      this.#warn("an object is larger than the staging buffer; its request is not loaded", {
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
  async #load(reqId: string, { keys, segments }: LoadPlan, batches: readonly LoadBatch[]): Promise<void> {
    for (const { start, end } of batches) {
      const batchKeys = keys.slice(start, end);
      const batch = sliceSegments(segments, start, end);
      try {
        const tiers = this.#options.tierLog ? await this.#tiers(batchKeys) : undefined;
        const codes = await this.#options.store.get(batchKeys, batch);
        if (tiers) this.#options.logger?.info?.("load by tier", { ...tierSummary(reqId, tiers, codes) });
        const failed = [...failedPositions(codes)];
        if (failed.length === 0) continue;
        this.#report(
          reqId,
          failed.map((position) => batch.blockIds[position]!),
        );
        this.#warn("some objects could not be read", {
          reqId,
          failed: failed.length,
          keys: batchKeys.length,
          firstKey: batchKeys[failed[0]!],
          firstCode: Number(codes[failed[0]!]),
        });
        if (this.#options.byRequest) return;
      } catch (error) {
        this.#report(reqId, segments.blockIds.subarray(start));
        this.#warn("a load failed", { reqId, keys: batchKeys.length, firstKey: batchKeys[0], error });
        return;
      }
    }
  }

  async #tiers(keys: readonly string[]): Promise<ReplicaTier[]> {
    try {
      const { replicas } = await this.#options.store.store.replicas(keys);
      return keys.map((_, index) => classifyReplicaTier(replicas[index]));
    } catch (error) {
      this.#warn("the store does not say where objects lie", { keys: keys.length, error });
      return keys.map(() => "unknown");
    }
  }

  #report(reqId: string, blockIds: ArrayLike<number>): void {
    if (this.#options.byRequest) this.#failed.add(reqId);
    else for (let i = 0; i < blockIds.length; i++) this.#invalidBlockIds.add(blockIds[i]!);
  }

  /** Reports every block that a load could have filled, where it is not known which it would have. */
  #reportAll(job: ReqMeta, spec: LoadSpec): void {
    const { databases } = this.#options;
    const blockIds = job.blockIds.flatMap((table, groupId) => {
      const size = databases[groupId]?.blockSize ?? 1;
      return table.slice(Math.floor(spec.vllmCachedTokens / size), Math.ceil(spec.kvpoolCachedTokens / size));
    });
    this.#report(job.reqId, blockIds);
  }

  #warn(message: string, details: Readonly<Record<string, unknown>>): void {
    this.#options.logger?.warn(message, details);
  }
}

function checkedSpec({ reqId, loadSpec }: ReqMeta): LoadSpec {
  if (!loadSpec?.canLoad)
    throw requestError(`a job of request ${reqId} loads nothing: it has no load spec that can load`, {
      reqId,
    });
  return loadSpec;
}

function take<T>(set: Set<T>): Set<T> {
  const taken = new Set(set);
  set.clear();
  return taken;
}
