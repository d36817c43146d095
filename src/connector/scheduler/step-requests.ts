import { requestError } from "../../request/checks.js";
import type { LoadSpec } from "../../request/load-spec.js";
import { ReqMeta } from "../../request/req-meta.js";
import { RequestTracker } from "../../request/request-tracker.js";
import type { ConnectorSettings } from "../connector-config.js";
import {
  type CachedRequestData,
  type NewRequestData,
  projectBlockIds,
  type SchedulerOutput,
  scheduledTokens,
} from "./scheduler-output.js";
import type { AllocatedRequest, SchedulerState } from "./scheduler-state.js";
import { type StoreRequest, sliceTokens } from "./store-request.js";

/** What the parts of a step share. */
export interface Step {
  readonly settings: ConnectorSettings;
  readonly state: SchedulerState;
  readonly output: SchedulerOutput;
}

/**
 * The jobs of one step before block tables and job ids are filled in: new requests, cached requests, then parked ones
 * whose load may start.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for a request that was never given blocks, or an output that does not fit it.
 */
export function stepRequests(step: Step): ReqMeta[] {
  const { output, settings } = step;
  const metas: (ReqMeta | null)[] = output.scheduledNewReqs.map((data) => newRequest(step, data));
  if (!settings.isConsumer || settings.saveDecodeCache)
    for (const data of output.scheduledCachedReqs) metas.push(cachedRequest(step, data));
  metas.push(...parkedRequests(step));
  return metas.filter((meta) => meta !== null);
}

function newRequest(step: Step, data: NewRequestData): ReqMeta | null {
  const { reqId } = data;
  const loadSpec = takeLoadSpec(step, reqId);
  const { request } = allocated(step, reqId);
  return beginPrefill(step, request, {
    loadSpec,
    blockIds: data.blockIds,
    tokenLen: data.numComputedTokens + scheduledTokens(step.output, reqId),
    prefillTokens: data.numPrefillTokens ?? request.numPromptTokens,
  });
}

function cachedRequest(step: Step, data: CachedRequestData): ReqMeta | null {
  const { reqId, newBlockIds } = data;
  if (!data.resumed) return runningRequest(step, data);
  if (newBlockIds === null || newBlockIds.length === 0) return null;
  const loadSpec = takeLoadSpec(step, reqId);
  const { request } = allocated(step, reqId);
  return beginPrefill(step, request, {
    loadSpec,
    blockIds: newBlockIds,
    tokenLen: request.numComputedTokens + scheduledTokens(step.output, reqId),
    // A resumed request computes what it had generated once more.
    prefillTokens: request.numTokens,
  });
}

/** A prefill that begins, or begins anew: its block table replaces what was known. */
function beginPrefill(
  { settings, state }: Step,
  request: StoreRequest,
  prefill: {
    readonly loadSpec: LoadSpec | null;
    readonly blockIds: readonly (readonly number[])[];
    readonly tokenLen: number;
    readonly prefillTokens: number;
  },
): ReqMeta | null {
  const reqId = request.requestId;
  const { tokenLen, prefillTokens } = prefill;
  const tracker = new RequestTracker({
    reqId,
    tokenLen,
    allocatedBlockIds: projectBlockIds(reqId, prefill.blockIds, settings.storeGroupIds),
    tokenIds: settings.enableKvEvents
      ? sliceTokens(request.allTokenIds, 0, Math.min(tokenLen, prefillTokens))
      : null,
    prefillEndTokens: prefillTokens,
  });
  state.trackers.set(reqId, tracker);
  state.scheduledRequestIds.add(reqId);
  return ReqMeta.fromRequestTracker(tracker, {
    blockSize: settings.blockSize,
    loadSpec: prefill.loadSpec,
    // A consumer may save what it decodes, but never what it prefills.
    skipSave: settings.isConsumer,
    blockHashes: request.blockHashes,
    numPromptTokens: request.numPromptTokens,
    savePartialTail: settings.enablePartialHashHits,
  });
}

/** A request that goes on: another chunk of its prefill, or a decode step. */
function runningRequest(
  step: Step,
  { reqId, newBlockIds, numComputedTokens }: CachedRequestData,
): ReqMeta | null {
  const { settings, state, output } = step;
  const tracker = state.trackers.get(reqId);
  if (tracker === undefined)
    throw requestError(`request ${reqId} goes on, but was never scheduled as a new one`, { reqId });
  const isDecode = numComputedTokens >= tracker.prefillEndTokens;
  if (isDecode && !settings.saveDecodeCache) return null;
  const scheduled = scheduledTokens(output, reqId);
  const { request } = allocated(step, reqId);
  state.willChange(tracker);
  // Draft tokens are scheduled before they are known to be part of the request, so only tokens that exist count.
  const end = Math.max(tracker.tokenLen, Math.min(request.numTokens, tracker.tokenLen + scheduled));
  if (tracker.tokenIds !== null) {
    const tokenIds = sliceTokens(request.allTokenIds, tracker.tokenLen, end);
    for (const tokenId of tokenIds) tracker.tokenIds.push(tokenId);
  }
  tracker.tokenLen = end;
  if (newBlockIds !== null && newBlockIds.length > 0)
    tracker.update(projectBlockIds(reqId, newBlockIds, settings.storeGroupIds));
  if (settings.isConsumer && !isDecode) return null;
  return ReqMeta.fromRequestTracker(tracker, {
    blockSize: settings.blockSize,
    blockHashes: request.blockHashes,
    numPromptTokens: request.numPromptTokens,
    savePartialTail: settings.enablePartialHashHits,
  });
}

/**
 * Loads of requests that wait for them outside the batch. A load spec that no blocks were allocated for belongs to a hit
 * that the engine refused, maybe for another connector's; it is dropped.
 */
function* parkedRequests({ settings, state, output }: Step): Generator<ReqMeta | null> {
  const scheduled = new Set<string>();
  for (const { reqId } of output.scheduledNewReqs) scheduled.add(reqId);
  for (const { reqId } of output.scheduledCachedReqs) scheduled.add(reqId);
  for (const [reqId, { request, blockIds }] of state.unfinishedRequests) {
    if (scheduled.has(reqId)) continue;
    const loadSpec = state.loadSpecs.get(reqId);
    if (loadSpec === undefined) continue;
    state.loadSpecs.delete(reqId);
    if (!loadSpec.canLoad) continue;
    const tracker = new RequestTracker({
      reqId,
      tokenLen: loadSpec.kvpoolCachedTokens,
      allocatedBlockIds: blockIds as number[][],
    });
    state.trackers.set(reqId, tracker);
    yield ReqMeta.fromRequestTracker(tracker, {
      blockSize: settings.blockSize,
      loadSpec,
      blockHashes: request.blockHashes,
      numPromptTokens: request.numPromptTokens,
    });
  }
}

function takeLoadSpec({ state }: Step, reqId: string): LoadSpec | null {
  const loadSpec = state.loadSpecs.get(reqId) ?? null;
  state.loadSpecs.delete(reqId);
  return loadSpec;
}

function allocated({ state }: Step, reqId: string): AllocatedRequest {
  const request = state.unfinishedRequests.get(reqId);
  if (request === undefined)
    throw requestError(
      `request ${reqId} is scheduled, but holds no blocks; call updateStateAfterAlloc first, again after a preemption`,
      { reqId },
    );
  return request;
}
