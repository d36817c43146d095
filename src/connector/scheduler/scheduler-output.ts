import { describe } from "../../errors.js";
import type { BoundaryPutTuple } from "../../request/boundary-put.js";
import { checkCount, requestError } from "../../request/checks.js";

/** The blocks of a request: one list an engine cache group, in token order. Block 0 is the null block. */
export type BlockIds = readonly (readonly number[])[];

/** A request that is scheduled for the first time, or under the v2 model runner again after a preemption. */
export interface NewRequestData {
  readonly reqId: string;
  readonly blockIds: BlockIds;
  /** Tokens that were computed before this step. */
  readonly numComputedTokens: number;
  /** Tokens of this prefill where it is not just the prompt: the v2 model runner's `prefill_token_ids`. */
  readonly numPrefillTokens?: number | null | undefined;
}

/** A request that was scheduled before. */
export interface CachedRequestData {
  readonly reqId: string;
  /** Whether it resumes after a preemption, so that `newBlockIds` is its whole block table. */
  readonly resumed: boolean;
  /** Blocks that were allocated in this step; null where there are none. */
  readonly newBlockIds: BlockIds | null;
  /** Tokens that were computed before this step. */
  readonly numComputedTokens: number;
}

/** What only the core knows of blocks. Mirrors `SchedulerOutput.kv_connector_block_state`. */
export interface ConnectorBlockState {
  /** The current block table of a request, all engine groups; undefined where it has none. */
  readonly blockTables: { get(reqId: string): BlockIds | undefined };
  /**
   * Blocks with a Mamba state at a token boundary, by request: engine group, block, tokens. Default: none.
   */
  readonly boundaryStateOffloads?: ReadonlyMap<string, readonly BoundaryPutTuple[]> | undefined;
}

/** One step of the engine's scheduler. Mirrors the part of vLLM's `SchedulerOutput` that the connector reads. */
export interface SchedulerOutput {
  readonly scheduledNewReqs: readonly NewRequestData[];
  readonly scheduledCachedReqs: readonly CachedRequestData[];
  /** Tokens that each scheduled request computes in this step. */
  readonly numScheduledTokens: ReadonlyMap<string, number>;
  /** Requests that ended since the last step. */
  readonly finishedReqIds: Iterable<string>;
  /** Requests that lost their blocks since the last step. */
  readonly preemptedReqIds: Iterable<string>;
  /** Null where the core keeps none; then nothing can be saved. */
  readonly kvConnectorBlockState: ConnectorBlockState | null;
}

/**
 * The block lists of the store's groups, copied.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when a group has no list, or a block id is no whole number of 0 or more.
 */
export function projectBlockIds(
  reqId: string,
  blockIds: BlockIds,
  storeGroupIds: readonly number[],
): number[][] {
  return storeGroupIds.map((groupId) => {
    const list = blockIds[groupId];
    if (!Array.isArray(list))
      throw requestError(
        `request ${reqId} has no block list for cache group ${groupId}; it lists ${blockIds.length} groups`,
        { reqId, groupId, groups: blockIds.length },
      );
    const odd = list.findIndex((blockId) => !Number.isSafeInteger(blockId) || blockId < 0);
    if (odd >= 0)
      throw requestError(
        `block ${odd} of request ${reqId} in group ${groupId} is ${describe(list[odd])}; a block id is a whole number of 0 or more`,
        { reqId, groupId, blockId: list[odd] },
      );
    return [...(list as readonly number[])];
  });
}

/** Tokens that a request computes in this step. @throws MooncakeKvError `ERR_REQUEST` when the output does not say. */
export function scheduledTokens(output: SchedulerOutput, reqId: string): number {
  const tokens = output.numScheduledTokens.get(reqId);
  if (tokens === undefined)
    throw requestError(`request ${reqId} is scheduled, but numScheduledTokens does not list it`, { reqId });
  return checkCount(`numScheduledTokens of request ${reqId}`, tokens);
}
