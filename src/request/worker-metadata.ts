import type { MooncakeStoreWorkerMetadata as Wire } from "../../generated/typescript/index.js";
import { describe } from "../errors.js";
import { checkCount, requestError } from "./checks.js";

/**
 * What the workers tell the scheduler: how many ranks are done with each store job. Mirrors vLLM's
 * `MooncakeStoreWorkerMetadata`, since vllm-0.31.
 */
export class MooncakeStoreWorkerMetadata implements Wire {
  /** Ranks that are done, by store job id. */
  readonly completedSaves: Map<number, number>;

  /** @throws MooncakeKvError `ERR_REQUEST` when an id or a count is not a whole number, or the count is not positive. */
  constructor(completedSaves: Iterable<readonly [storeJobId: number, ranks: number]> = []) {
    this.completedSaves = new Map();
    for (const [storeJobId, ranks] of completedSaves)
      this.completedSaves.set(checkCount("store job id", storeJobId), checkCount("ranks", ranks, 1));
  }

  /**
   * Adds the counts of another report to this one, which it returns. The other one stays as it is.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when `other` is no such report.
   */
  aggregate(other: Wire): this {
    if (!(other?.completedSaves instanceof Map))
      throw requestError(
        `${describe(other)} is no MooncakeStoreWorkerMetadata: its completedSaves must be a Map`,
        { other },
      );
    for (const [storeJobId, ranks] of other.completedSaves)
      this.completedSaves.set(storeJobId, (this.completedSaves.get(storeJobId) ?? 0) + ranks);
    return this;
  }
}
