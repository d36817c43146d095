import { MooncakeStoreConnectorStats } from "../../../connector/metrics/connector-stats.js";
import { NULL_BLOCK_ID } from "../../../connector/null-block.js";
import type { MooncakeStoreConnectorMetadata } from "../../../request/connector-metadata.js";
import { type DemoModel, hybridCacheShape } from "../model.js";
import type { HybridRank } from "./hybrid-rank.js";

/** One time that a request asked the store: as a new one, after a preemption, or after a load that failed. */
export interface Admission {
  /** Tokens of the request. */
  readonly tokens: number;
  /** Those that the store offered. */
  readonly hitTokens: number;
  /** Whether all of these were loaded. */
  readonly loaded: boolean;
}

/** Counts what an engine does for one request. */
export class TurnMeter {
  /** The first that loaded is what the request began with; one of 0 tokens where every load failed. */
  readonly admissions: Admission[] = [];
  /** Seconds that the request waited. */
  readonly seconds: { lookup: number; load: number; total: number } = { lookup: 0, load: 0, total: 0 };
  /** Jobs that the scheduler side handed to the workers. */
  readonly jobs: { save: number; load: number } = { save: 0, load: 0 };
  computedTokens = 0;
  /** Bytes of the blocks that loads have filled, on all ranks. */
  loadedBytes = 0;
  /** Bytes that were put, on all ranks: what the store had already is not put again. */
  savedBytes = 0;
  /** Objects that the store refused. */
  refusedObjects = 0;
  /** 32-bit words that are not what they should be. */
  differences = 0;
  readonly #started = performance.now();

  /** Runs `work`, and adds the time that it takes. */
  async time<Result>(what: "lookup" | "load", work: () => Promise<Result>): Promise<Result> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      this.seconds[what] += (performance.now() - started) / 1000;
    }
  }

  /** Counts the jobs of a step. */
  count({ requests }: MooncakeStoreConnectorMetadata): void {
    for (const job of requests) {
      if (job.canSave) this.jobs.save++;
      else if (job.loadSpec?.canLoad) this.jobs.load++;
    }
  }

  /** Counts the bytes of a load that has filled all blocks of a request. */
  loaded(
    blockIds: readonly (readonly number[])[],
    ranks: readonly HybridRank[],
    { model, tpSize }: { readonly model: DemoModel; readonly tpSize: number },
  ): void {
    const { numLayers, numHeads, blockSize, contentSize, elementSize } = hybridCacheShape(model, tpSize, 1);
    const blocks = blockIds.flat().filter((blockId) => blockId !== NULL_BLOCK_ID).length;
    this.loadedBytes += blocks * ranks.length * numLayers * numHeads * blockSize * contentSize * elementSize;
  }

  /** Ends the turn, and takes what the workers have counted. */
  end(ranks: readonly HybridRank[]): void {
    this.seconds.total = (performance.now() - this.#started) / 1000;
    const stats = new MooncakeStoreConnectorStats();
    for (const { worker } of ranks) {
      const own = worker.getKvConnectorStats();
      if (own !== null) stats.aggregate(own);
    }
    for (const { numBytes, numKeys, numFailedKeys } of stats.data.get("save_put") ?? []) {
      // All objects have the same size.
      this.savedBytes += (numBytes / numKeys) * (numKeys - numFailedKeys);
      this.refusedObjects += numFailedKeys;
    }
  }
}
