import { requestError } from "../../request/checks.js";
import type { ReqMeta } from "../../request/req-meta.js";
import type { ConnectorSettings } from "../connector-config.js";
import { NULL_BLOCK_ID } from "../null-block.js";
import { partialTailNonMambaPuts } from "./partial-tail.js";
import { projectBlockIds, type SchedulerOutput } from "./scheduler-output.js";
import type { JobPins } from "./store-jobs.js";

/**
 * The jobs with the core's current block tables in place of what was collected from step to step: the core replaces
 * blocks without telling. Mirrors `_apply_current_save_block_ids`.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when a job saves and the core has no table for it.
 */
export function withCurrentBlockIds(
  metas: readonly ReqMeta[],
  output: SchedulerOutput,
  settings: ConnectorSettings,
): ReqMeta[] {
  return metas.map((meta) => {
    if (!meta.canSave) return meta;
    const { reqId } = meta;
    const blockState = output.kvConnectorBlockState;
    if (blockState === null)
      throw requestError(
        `request ${reqId} is to be saved, but the step has no kvConnectorBlockState with its blocks`,
        { reqId },
      );
    const table = blockState.blockTables.get(reqId);
    if (table === undefined)
      throw requestError(`request ${reqId} is to be saved, but blockTables does not list it`, { reqId });
    return { ...meta, blockIds: projectBlockIds(reqId, table, settings.storeGroupIds) };
  });
}

/** Jobs with their ids, and the blocks that each of them must hold. */
export interface NumberedJobs {
  readonly metas: readonly ReqMeta[];
  /** The jobs that are to be opened, in order. */
  readonly pins: readonly JobPins[];
}

/**
 * Gives each job that saves and has no id yet the next one, and says which blocks it must hold: those of its boundary
 * puts, and for a normal save every other block of the request. Not only those of its own range: a rank goes on where it
 * last succeeded, which may lie far below. Mirrors `_reference_save_blocks`.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when a boundary put names the null block.
 */
export function numberJobs(
  metas: readonly ReqMeta[],
  settings: ConnectorSettings,
  nextJobId: number,
): NumberedJobs {
  const pins: JobPins[] = [];
  const numbered = metas.map((meta) => {
    if (!meta.canSave || meta.storeJobId !== null) return meta;
    const tail = partialTailNonMambaPuts(settings.coordinator!, meta);
    const boundaryPuts = tail.length > 0 ? [...tail, ...(meta.boundaryPuts ?? [])] : meta.boundaryPuts;
    const storeJobId = nextJobId + pins.length;
    const job = { ...meta, boundaryPuts, storeJobId };
    pins.push({ storeJobId, blockIds: blocksToPin(job, settings) });
    return job;
  });
  return { metas: numbered, pins };
}

function blocksToPin(job: ReqMeta, { boundaryStateGroupIds }: ConnectorSettings): number[] {
  const blockIds = new Set((job.boundaryPuts ?? []).map(({ blockId }) => blockId));
  if (blockIds.has(NULL_BLOCK_ID))
    throw requestError(`a boundary put of request ${job.reqId} names the null block, which holds nothing`, {
      reqId: job.reqId,
    });
  if (job.tokenLenChunk > 0)
    for (const [groupId, table] of job.blockIds.entries())
      if (!boundaryStateGroupIds.has(groupId))
        for (const blockId of table) if (blockId !== NULL_BLOCK_ID) blockIds.add(blockId);
  return [...blockIds];
}
