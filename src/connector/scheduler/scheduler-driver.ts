import type {
  BoundaryPut,
  BuildConnectorMeta,
  RequestChanged,
  SchedulerEvent as WireEvent,
} from "../../../generated/typescript/index.js";
import { describe } from "../../errors.js";
import type { BoundaryPutTuple } from "../../request/boundary-put.js";
import { requestError } from "../../request/checks.js";
import { checkedEvent } from "./checked-event.js";
import type { MooncakeStoreScheduler } from "./mooncake-store-scheduler.js";
import type { SchedulerEvent, SchedulerEventResults } from "./scheduler-events.js";
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
   * @throws MooncakeKvError `ERR_SCHEMA` for an event that its schema, `connector-events`, does not allow; `ERR_REQUEST`
   * for a request that is not known, and whatever the scheduler refuses.
   */
  apply<Event extends SchedulerEvent>(event: Event): SchedulerEventResults[Event["type"]];
  apply(event: SchedulerEvent): SchedulerEventResults[SchedulerEvent["type"]] {
    return this.#apply(checkedEvent(event));
  }

  #apply(event: WireEvent): SchedulerEventResults[SchedulerEvent["type"]] {
    const { scheduler } = this;
    switch (event.type) {
      case "RequestChanged":
        return this.#change(event);
      case "GetNumNewMatchedTokens":
        return scheduler.getNumNewMatchedTokens(this.#request(event.reqId), event.numComputedTokens);
      case "UpdateStateAfterAlloc":
        scheduler.updateStateAfterAlloc(this.#request(event.reqId), event.blockIds, event.numExternalTokens);
        return undefined;
      case "BuildConnectorMeta": {
        const meta = scheduler.buildConnectorMeta(schedulerOutput(event));
        for (const reqId of event.finishedReqIds) this.#requests.delete(reqId);
        return meta;
      }
      case "UpdateConnectorOutput":
        scheduler.updateConnectorOutput(event);
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
    }
  }

  #change({ reqId, newBlockHashes, newTokenIds, ...counts }: RequestChanged): undefined {
    const known = this.#requests.get(reqId);
    const numPromptTokens = counts.numPromptTokens ?? known?.numPromptTokens;
    if (numPromptTokens === undefined)
      throw requestError(`request ${reqId} is new, so the event must say its numPromptTokens`, { reqId });
    const request = known ?? {
      requestId: reqId,
      numPromptTokens,
      numTokens: numPromptTokens,
      numComputedTokens: 0,
      blockHashes: [],
      allTokenIds: [],
    };
    request.numPromptTokens = numPromptTokens;
    request.numTokens = counts.numTokens ?? request.numTokens;
    request.numComputedTokens = counts.numComputedTokens ?? request.numComputedTokens;
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

function schedulerOutput({
  blockTables,
  boundaryStateOffloads,
  ...output
}: BuildConnectorMeta): SchedulerOutput {
  return {
    ...output,
    kvConnectorBlockState: {
      blockTables: new Map(blockTables.map(({ reqId, blockIds }) => [reqId, blockIds])),
      boundaryStateOffloads: new Map(
        boundaryStateOffloads.map(({ reqId, offloads }) => [reqId, offloads.map(tuple)]),
      ),
    },
  };
}

function tuple({ groupId, blockId, numTokens }: BoundaryPut): BoundaryPutTuple {
  return [groupId, blockId, numTokens];
}
