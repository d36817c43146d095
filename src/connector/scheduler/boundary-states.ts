import type { BoundaryPutTuple } from "../../request/boundary-put.js";
import { BoundaryPut } from "../../request/boundary-put.js";
import { ReqMeta } from "../../request/req-meta.js";
import type { ConnectorSettings } from "../connector-config.js";
import { NULL_BLOCK_ID } from "../null-block.js";
import type { Step } from "./step-requests.js";

/**
 * Adds the Mamba states that the core hands over in this step: to the job that saves the request anyway, or as a job of
 * their own. They are stored in the very step that they arrive in, because only this step's event is known to come after
 * the copy that filled their blocks. States of a request that ended or was preempted are dropped: its blocks go away.
 * Mirrors `_handle_boundary_state_offloads`.
 */
export function addBoundaryStates({ settings, state, output }: Step, metas: readonly ReqMeta[]): ReqMeta[] {
  const offloads = output.kvConnectorBlockState?.boundaryStateOffloads;
  const result = [...metas];
  if (offloads === undefined || offloads.size === 0 || settings.isConsumer) return result;
  const saves = new Map<string, number>();
  for (const [index, meta] of metas.entries()) if (meta.canSave) saves.set(meta.reqId, index);
  for (const [reqId, entries] of offloads) {
    const tracker = state.trackers.get(reqId);
    const request = state.unfinishedRequests.get(reqId)?.request;
    if (tracker === undefined || request === undefined) continue;
    const boundaryPuts = acceptedStates(settings, entries, tracker.prefillEndTokens);
    if (boundaryPuts.length === 0) continue;
    state.willChange(tracker);
    tracker.hasPendingOffload = true;
    const save = saves.get(reqId);
    if (save !== undefined) result[save] = { ...result[save]!, boundaryPuts };
    else
      result.push(
        ReqMeta.create({
          reqId,
          tokenLenChunk: 0,
          blockIds: tracker.allocatedBlockIds.map((blockIds) => [...blockIds]),
          blockHashes: [...request.blockHashes],
          canSave: true,
          numPromptTokens: request.numPromptTokens,
          prefillEndTokens: tracker.prefillEndTokens,
          boundaryPuts,
          completedTokenLen: tracker.tokenLen,
        }),
      );
  }
  return result;
}

/**
 * The states that can complete a hit: every other group stops saving at the end of the prefill, so a state past it never
 * can. Engine group ids become those of the store.
 */
function acceptedStates(
  settings: ConnectorSettings,
  entries: readonly BoundaryPutTuple[],
  prefillEndTokens: number,
): BoundaryPut[] {
  const accepted: BoundaryPut[] = [];
  for (const [groupId, blockId, numTokens] of entries) {
    const storeGroupId = boundaryStateGroup(settings, groupId);
    if (numTokens <= prefillEndTokens && blockId !== NULL_BLOCK_ID && storeGroupId !== undefined)
      accepted.push(new BoundaryPut(storeGroupId, blockId, numTokens));
  }
  return accepted;
}

/** The store's id of an engine group whose blocks are Mamba states; undefined for any other group. */
export function boundaryStateGroup(settings: ConnectorSettings, groupId: number): number | undefined {
  const storeGroupId = settings.storeGroupIds.indexOf(groupId);
  return settings.boundaryStateGroupIds.has(storeGroupId) ? storeGroupId : undefined;
}
