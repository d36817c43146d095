import { describe } from "../../errors.js";
import { requestError } from "../../request/checks.js";
import type { BlockPool } from "./block-pool.js";

/** A store job that holds blocks. */
export interface PinnedSave {
  readonly storeJobId: number;
  /** The blocks it holds a reference on, each once, in the order in which they were taken. */
  readonly blockIds: readonly number[];
  /** Ranks that have not reported yet. */
  readonly remaining: number;
}

/** A job that is about to be opened. */
export interface JobPins {
  readonly storeJobId: number;
  readonly blockIds: readonly number[];
}

/**
 * The store jobs of an engine and the blocks they hold. Workers read a job's blocks after the step that made it, so each
 * job keeps a reference on them until every rank has reported, whatever becomes of its request meanwhile. Job ids never
 * repeat: a request id may.
 */
export class StoreJobs {
  readonly #numWorkers: number;
  readonly #pinned = new Map<number, PinnedSave>();
  #nextJobId = 0;

  constructor(numWorkers: number) {
    this.#numWorkers = numWorkers;
  }

  /** The id that the next job gets. */
  get nextJobId(): number {
    return this.#nextJobId;
  }

  /** Jobs that hold blocks, oldest first. */
  get pinned(): PinnedSave[] {
    return [...this.#pinned.values()];
  }

  /** Whether some job holds blocks. */
  get pending(): boolean {
    return this.#pinned.size > 0;
  }

  /** Whether this job holds blocks. */
  holds(storeJobId: number): boolean {
    return this.#pinned.has(storeJobId);
  }

  /**
   * Opens jobs with the ids from `nextJobId` on, and takes a reference on the blocks of each. A job without blocks has
   * nothing to release, so it is not recorded. When the pool throws, no reference is kept and no job is open.
   */
  open(jobs: readonly JobPins[], pool: BlockPool | undefined): void {
    const holding = jobs.filter(({ blockIds }) => blockIds.length > 0);
    if (holding.length > 0 && pool === undefined)
      throw requestError("a store job needs blocks, but no block pool is bound; call bindGpuBlockPool first");
    const touched: number[] = [];
    try {
      for (const { blockIds } of holding) {
        pool!.touch(blockIds);
        for (const blockId of blockIds) touched.push(blockId);
      }
    } catch (error) {
      if (touched.length > 0) pool!.freeBlocks(touched.reverse());
      throw error;
    }
    for (const { storeJobId, blockIds } of holding)
      this.#pinned.set(storeJobId, { storeJobId, blockIds: [...blockIds], remaining: this.#numWorkers });
    this.#nextJobId += jobs.length;
  }

  /**
   * Whether reports can be so: each of a whole number of ranks, and no more than have not reported yet. Jobs that hold
   * nothing, or not any more, are passed over.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for anything else.
   */
  check(completedSaves: ReadonlyMap<number, number>): void {
    if (!(completedSaves instanceof Map))
      throw requestError(`completedSaves is ${describe(completedSaves)}; it is a Map from jobs to ranks`, {
        completedSaves,
      });
    for (const [storeJobId, count] of completedSaves as ReadonlyMap<number, number>) {
      if (!Number.isSafeInteger(count) || count < 0)
        throw requestError(
          `store job ${describe(storeJobId)} is reported by ${describe(count)} ranks; that is a whole number of 0 or more`,
          { storeJobId, count },
        );
      const remaining = this.#pinned.get(storeJobId)?.remaining ?? count;
      if (count > remaining)
        throw requestError(
          `store job ${storeJobId} is reported by ${count} ranks, but only ${remaining} have not reported yet`,
          { storeJobId, count, remaining },
        );
    }
  }

  /**
   * Counts reports that were checked, and gives the blocks of each job back that all ranks have reported: last block
   * first, so that a shared prefix is evicted last.
   */
  complete(completedSaves: ReadonlyMap<number, number>, pool: BlockPool | undefined): void {
    const freed: number[] = [];
    for (const [storeJobId, count] of completedSaves) {
      const job = this.#pinned.get(storeJobId);
      if (job === undefined) continue;
      const remaining = job.remaining - count;
      if (remaining > 0) this.#pinned.set(storeJobId, { ...job, remaining });
      else {
        this.#pinned.delete(storeJobId);
        for (let i = job.blockIds.length - 1; i >= 0; i--) freed.push(job.blockIds[i]!);
      }
    }
    if (freed.length > 0) pool!.freeBlocks(freed);
  }
}
