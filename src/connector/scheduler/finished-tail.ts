import { BoundaryPut, type BoundaryPutTuple } from "../../request/boundary-put.js";
import { requestError } from "../../request/checks.js";
import { ReqMeta } from "../../request/req-meta.js";
import type { RequestTracker } from "../../request/request-tracker.js";
import type { ConnectorSettings } from "../connector-config.js";
import { NULL_BLOCK_ID } from "../null-block.js";
import { boundaryStateGroup } from "./boundary-states.js";
import { partialTailNonMambaPuts } from "./partial-tail.js";
import { type BlockIds, projectBlockIds } from "./scheduler-output.js";
import type { StoreRequest } from "./store-request.js";

/**
 * The job that stores the Mamba states with which a request ends, without its job id; undefined where they can't
 * complete a hit: past the prefill, of another group, or without a block. Mirrors the first half of
 * `register_finished_partial_tail`.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when the states lie at several boundaries.
 */
export function finishedPartialTail(
  settings: ConnectorSettings,
  tracker: RequestTracker,
  request: StoreRequest,
  blockIds: BlockIds,
  offloads: readonly BoundaryPutTuple[],
): ReqMeta | undefined {
  const boundaries = new Set(offloads.map(([, , numTokens]) => numTokens));
  if (boundaries.size !== 1)
    throw requestError(
      `the partial tail of request ${request.requestId} lies at ${[...boundaries].join(" and ")} tokens; all states of a request share one boundary`,
      { reqId: request.requestId, boundaries: [...boundaries] },
    );
  const mambaPuts: BoundaryPut[] = [];
  for (const [groupId, blockId, numTokens] of offloads) {
    const storeGroupId = boundaryStateGroup(settings, groupId);
    if (numTokens > tracker.prefillEndTokens || storeGroupId === undefined || blockId === NULL_BLOCK_ID)
      return undefined;
    mambaPuts.push(new BoundaryPut(storeGroupId, blockId, numTokens));
  }
  const meta = ReqMeta.create({
    reqId: request.requestId,
    tokenLenChunk: 0,
    blockIds: projectBlockIds(request.requestId, blockIds, settings.storeGroupIds),
    blockHashes: [...request.blockHashes],
    canSave: true,
    numPromptTokens: request.numPromptTokens,
    prefillEndTokens: tracker.prefillEndTokens,
    boundaryPuts: mambaPuts,
    completedTokenLen: request.numComputedTokens,
  });
  return { ...meta, boundaryPuts: [...partialTailNonMambaPuts(settings.coordinator!, meta), ...mambaPuts] };
}
