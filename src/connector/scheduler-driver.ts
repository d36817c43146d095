import type { BoundaryPut } from "../../generated/typescript/index.js";
import { describe } from "../errors.js";
import type { BoundaryPutTuple } from "../request/boundary-put.js";
import { checkCount, requestError } from "../request/checks.js";
import { MooncakeStoreWorkerMetadata } from "../request/worker-metadata.js";
import type { MooncakeStoreScheduler } from "./mooncake-store-scheduler.js";
import type {
  BuildConnectorMeta,
  RequestChanged,
  SchedulerEvent,
  SchedulerEventResults,
} from "./scheduler-events.js";
import type { SchedulerOutput } from "./scheduler-output.js";
import type { StoreRequest } from "./store-request.js";

/** A request as events describe it. */
interface DrivenRequest extends StoreRequest {
  numPromptTokens: number;
  numTokens: number;
  numComputedTokens: number;
  readonly blockHashes: Uint8Array[];
  readonly allTokenIds: number[];
}

/**
 * Drives a scheduler by plain events instead of calls with live objects: for an engine in another process or language, a
 * recorded trace, or a test. An event that can't be right throws, and has changed nothing.
 */
export class SchedulerDriver {
  readonly scheduler: MooncakeStoreScheduler;
  readonly #requests = new Map<string, DrivenRequest>();

  constructor(scheduler: MooncakeStoreScheduler) {
    this.scheduler = scheduler;
  }

  /** Requests that have not ended. */
  get requests(): ReadonlyMap<string, StoreRequest> {
    return this.#requests;
  }

  /**
   * Takes one event.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for an event of no known type, a request that is not known, and whatever the
   * scheduler refuses.
   */
  apply<Event extends SchedulerEvent>(event: Event): SchedulerEventResults[Event["type"]];
  apply(event: SchedulerEvent): SchedulerEventResults[SchedulerEvent["type"]] {
    const { scheduler } = this;
    switch (event?.type) {
      case "RequestChanged":
        return this.#change(event);
      case "GetNumNewMatchedTokens":
        return scheduler.getNumNewMatchedTokens(this.#request(event.reqId), event.numComputedTokens);
      case "UpdateStateAfterAlloc":
        scheduler.updateStateAfterAlloc(this.#request(event.reqId), event.blockIds, event.numExternalTokens);
        return undefined;
      case "BuildConnectorMeta": {
        const meta = scheduler.buildConnectorMeta(schedulerOutput(event));
        for (const reqId of event.finishedReqIds ?? []) this.#requests.delete(reqId);
        return meta;
      }
      case "UpdateConnectorOutput":
        scheduler.updateConnectorOutput(new MooncakeStoreWorkerMetadata(event.completedSaves));
        return undefined;
      case "RequestFinished":
        return scheduler.requestFinished(this.#request(event.reqId), event.blockIds);
      case "RegisterFinishedPartialTail":
        return scheduler.registerFinishedPartialTail(
          this.#request(event.reqId),
          event.blockIds,
          event.offloads.map(tuple),
        );
      case "ResetCache":
        return scheduler.resetCache();
      default:
        throw requestError(`${describe(event)} is no scheduler event`, { event });
    }
  }

  #change(event: RequestChanged): undefined {
    const { reqId, newBlockHashes = [], newTokenIds = [] } = event;
    if (typeof reqId !== "string") throw requestError(`reqId is ${describe(reqId)}; it is a text`, { reqId });
    const known = this.#requests.get(reqId);
    const numPromptTokens = event.numPromptTokens ?? known?.numPromptTokens;
    if (numPromptTokens === undefined)
      throw requestError(`request ${reqId} is new, so the event must say its numPromptTokens`, { reqId });
    const counts = {
      numPromptTokens: checkCount("numPromptTokens", numPromptTokens),
      numTokens: checkCount("numTokens", event.numTokens ?? known?.numTokens ?? numPromptTokens),
      numComputedTokens: checkCount(
        "numComputedTokens",
        event.numComputedTokens ?? known?.numComputedTokens ?? 0,
      ),
    };
    const odd = newBlockHashes.findIndex((hash) => !(hash instanceof Uint8Array));
    if (odd >= 0)
      throw requestError(
        `new block hash ${odd} of request ${reqId} is ${describe(newBlockHashes[odd])}, no bytes`,
        {
          reqId,
          index: odd,
        },
      );
    for (const tokenId of newTokenIds) checkCount(`a token of request ${reqId}`, tokenId);
    const request = known ?? { requestId: reqId, ...counts, blockHashes: [], allTokenIds: [] };
    Object.assign(request, counts);
    for (const hash of newBlockHashes) request.blockHashes.push(hash);
    for (const tokenId of newTokenIds) request.allTokenIds.push(tokenId);
    this.#requests.set(reqId, request);
    return undefined;
  }

  #request(reqId: string): StoreRequest {
    const request = this.#requests.get(reqId);
    if (request === undefined)
      throw requestError(`request ${describe(reqId)} is not known; a RequestChanged event comes first`, {
        reqId,
      });
    return request;
  }
}

function schedulerOutput(event: BuildConnectorMeta): SchedulerOutput {
  return {
    scheduledNewReqs: event.scheduledNewReqs ?? [],
    scheduledCachedReqs: event.scheduledCachedReqs ?? [],
    numScheduledTokens: event.numScheduledTokens ?? new Map(),
    finishedReqIds: event.finishedReqIds ?? [],
    preemptedReqIds: event.preemptedReqIds ?? [],
    kvConnectorBlockState: {
      blockTables: new Map((event.blockTables ?? []).map(({ reqId, blockIds }) => [reqId, blockIds])),
      boundaryStateOffloads: new Map(
        (event.boundaryStateOffloads ?? []).map(({ reqId, offloads }) => [reqId, offloads.map(tuple)]),
      ),
    },
  };
}

function tuple({ groupId, blockId, numTokens }: BoundaryPut): BoundaryPutTuple {
  return [groupId, blockId, numTokens];
}
