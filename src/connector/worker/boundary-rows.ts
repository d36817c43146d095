import { SegmentTable } from "../../layout/segment-table.js";
import { checkCount, requestError } from "../../request/checks.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { NULL_BLOCK_ID } from "../null-block.js";
import type { SaveGroups } from "./save-rows.js";

/** The objects of a job's boundary puts. */
export interface BoundaryRows {
  readonly keys: readonly string[];
  readonly groupIds: readonly number[];
  /** The memory of the objects at these positions. */
  segments(positions: readonly number[]): SegmentTable;
}

/**
 * The boundary puts that this rank is to store, each block under the hash of the prefix that ends at its tokens. Blocks
 * are taken as handed over, never looked up by position: the table of a Mamba group changes without telling. Ranks take
 * turns as for other chunks. Mirrors `_boundary_puts`.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for a group that does not exist, or tokens that are no whole hash blocks.
 */
export function boundaryRows(
  { coordinator, databases, putSteps, tpRank }: SaveGroups,
  job: ReqMeta,
): BoundaryRows {
  const { hashBlockSize } = coordinator;
  const keys: string[] = [];
  const groupIds: number[] = [];
  const blockIds: number[] = [];
  for (const { groupId, blockId, numTokens } of job.boundaryPuts ?? []) {
    const database = databases[groupId];
    if (database === undefined)
      throw requestError(
        `a boundary put of request ${job.reqId} is of group ${groupId}; there are ${databases.length}`,
        {
          reqId: job.reqId,
          groupId,
        },
      );
    if (checkCount("numTokens", numTokens) === 0 || blockId === NULL_BLOCK_ID) continue;
    if (numTokens % hashBlockSize !== 0)
      throw requestError(
        `a boundary put of request ${job.reqId} is at ${numTokens} tokens, which are no whole hash blocks of ${hashBlockSize}`,
        { reqId: job.reqId, numTokens, hashBlockSize },
      );
    const hash = job.blockHashes[numTokens / hashBlockSize - 1];
    const putStep = putSteps[groupId]!;
    const turn = (Math.ceil(numTokens / database.blockSize) - 1) % putStep;
    if (hash === undefined || turn !== (tpRank + groupId) % putStep) continue;
    keys.push(database.keyFor(hash));
    groupIds.push(groupId);
    blockIds.push(blockId);
  }
  return {
    keys,
    groupIds,
    segments: (positions) =>
      SegmentTable.fromRows(
        positions.map((position) =>
          databases[groupIds[position]!]!.prepareValueForBlock(blockIds[position]!),
        ),
        positions.map((position) => blockIds[position]!),
      ),
  };
}
