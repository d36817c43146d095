import type { MooncakeStoreCoordinator } from "../../coordinator/mooncake-store-coordinator.js";
import { mambaPrefillCheckpointPosition } from "../../coordinator/spec/retention.js";
import { BoundaryPut } from "../../request/boundary-put.js";
import { requestError } from "../../request/checks.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { NULL_BLOCK_ID } from "../null-block.js";

/**
 * The blocks of the other groups that a job has to store so that a later request can resume at the Mamba state of the
 * prompt's end. That state lies at a hash boundary inside a block (`boundary`), where the normal save, which stores
 * whole scheduler blocks, does not reach. What is missing are the blocks from the last scheduler block up to `boundary`,
 * and up to the proof margin of a speculative group, each named by the hash at its end, or at the end of the proof.
 *
 * Nothing is due before the job that first covers the prompt, or that carries the state itself; a state at any other
 * place inside a block belongs to a shared prefix, whose other blocks are stored by other jobs. A group whose proof is
 * not computed yet is left out. Mirrors `_partial_tail_non_mamba_puts` of vllm-0.33.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for a job that does not say how long the prompt is and how far it is computed.
 */
export function partialTailNonMambaPuts(
  coordinator: MooncakeStoreCoordinator,
  reqMeta: ReqMeta,
): BoundaryPut[] {
  const { hashBlockSize, schedulerBlockSize, mambaGroupIds, kvCacheGroups } = coordinator;
  const blockSize = (groupId: number) => kvCacheGroups[groupId]!.kvCacheSpec.blockSize;
  const mambaTails = (reqMeta.boundaryPuts ?? [])
    .filter(({ groupId, numTokens }) => mambaGroupIds.has(groupId) && numTokens % blockSize(groupId) !== 0)
    .map(({ numTokens }) => numTokens);
  if (mambaTails.length === 0 && !reqMeta.publishPartialTail) return [];
  const { numPromptTokens, completedTokenLen } = reqMeta;
  if (numPromptTokens === null || completedTokenLen === null)
    throw requestError(
      `the partial tail of request ${reqMeta.reqId} needs numPromptTokens and completedTokenLen in its job`,
      { reqId: reqMeta.reqId, numPromptTokens, completedTokenLen },
    );
  // The core drops a block for speculative decoding whichever groups are marked for it.
  const boundary = mambaPrefillCheckpointPosition(numPromptTokens, hashBlockSize, coordinator.useEagle);
  if (!reqMeta.publishPartialTail && !mambaTails.includes(boundary)) return [];
  const hashedTokens = reqMeta.blockHashes.length * hashBlockSize;
  if (boundary === 0 || boundary > hashedTokens) return [];
  const start = boundary - (boundary % schedulerBlockSize);
  const puts: BoundaryPut[] = [];
  for (const groupId of kvCacheGroups.keys()) {
    if (mambaGroupIds.has(groupId)) continue;
    const proofEnd = boundary + (coordinator.eagleProofMarginByGroup.get(groupId) ?? 0);
    if (proofEnd > completedTokenLen || proofEnd - (proofEnd % hashBlockSize) > hashedTokens) continue;
    const size = blockSize(groupId);
    const blockIds = reqMeta.blockIds[groupId] ?? [];
    const end = Math.min(Math.ceil(proofEnd / size), blockIds.length);
    for (let block = Math.floor(start / size); block < end; block++)
      if (blockIds[block] !== NULL_BLOCK_ID)
        puts.push(new BoundaryPut(groupId, blockIds[block]!, Math.min((block + 1) * size, proofEnd)));
  }
  return puts;
}
