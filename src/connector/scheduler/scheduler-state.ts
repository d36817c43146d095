import type { LoadSpec } from "../../request/load-spec.js";
import type { ReqMeta } from "../../request/req-meta.js";
import type { RequestTracker } from "../../request/request-tracker.js";
import type { StoreRequest } from "./store-request.js";

/** A request that was given blocks. */
export interface AllocatedRequest {
  readonly request: StoreRequest;
  /** Blocks of the store's groups that an external hit is loaded into; empty without one. */
  readonly blockIds: readonly (readonly number[])[];
}

/** The members of a tracker that a step may change in place. */
interface TrackerBefore {
  readonly tracker: RequestTracker;
  readonly fields: RequestTracker;
  readonly blockCounts: readonly number[];
  readonly tokenCount: number;
}

/**
 * What the scheduler side knows of requests. A step either happens as a whole or not at all: `atomically` undoes what a
 * failed one has changed.
 */
export class SchedulerState {
  /** What may be loaded, by request, from the lookup on until the load is handed out. */
  loadSpecs: Map<string, LoadSpec> = new Map();
  trackers: Map<string, RequestTracker> = new Map();
  /** Requests that hold blocks, in the order of their allocation. */
  unfinishedRequests: Map<string, AllocatedRequest> = new Map();
  /** Requests that were ever given blocks and have not ended; a preempted request stays one. */
  unfinishedRequestIds: Set<string> = new Set();
  /** Requests that were scheduled and neither preempted nor finished since. */
  scheduledRequestIds: Set<string> = new Set();
  /** Scheduled requests that were given blocks anew since the last step: a preemption must lie in between. */
  readmittedRequestIds: Set<string> = new Set();
  /** Jobs of requests that have ended, to be handed out in the next step. */
  finishedPartialTails: Map<string, ReqMeta> = new Map();
  #changed: TrackerBefore[] | undefined;

  /** Runs one step; when it throws, everything is as before. */
  atomically<T>(step: () => T): T {
    const before = {
      loadSpecs: new Map(this.loadSpecs),
      trackers: new Map(this.trackers),
      unfinishedRequests: new Map(this.unfinishedRequests),
      unfinishedRequestIds: new Set(this.unfinishedRequestIds),
      scheduledRequestIds: new Set(this.scheduledRequestIds),
      readmittedRequestIds: new Set(this.readmittedRequestIds),
      finishedPartialTails: new Map(this.finishedPartialTails),
    };
    this.#changed = [];
    try {
      return step();
    } catch (error) {
      Object.assign(this, before);
      for (const change of this.#changed.reverse()) restore(change);
      throw error;
    } finally {
      this.#changed = undefined;
    }
  }

  /** Must be called before a step changes a tracker that existed before it. */
  willChange(tracker: RequestTracker): void {
    this.#changed?.push({
      tracker,
      fields: { ...tracker } as RequestTracker,
      blockCounts: tracker.allocatedBlockIds.map((blockIds) => blockIds.length),
      tokenCount: tracker.tokenIds?.length ?? 0,
    });
  }
}

/** Lists only grow in place, so cutting them restores them. */
function restore({ tracker, fields, blockCounts, tokenCount }: TrackerBefore): void {
  Object.assign(tracker, fields);
  for (const [group, count] of blockCounts.entries()) tracker.allocatedBlockIds[group]!.length = count;
  if (tracker.tokenIds !== null) tracker.tokenIds.length = tokenCount;
}
