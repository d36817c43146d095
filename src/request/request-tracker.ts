import type { RequestTracker as Wire } from "../../generated/typescript/index.js";
import { checkCount, requestError } from "./checks.js";

/** A tracker as a caller may write it: what has a default in vLLM may be left out. */
export type RequestTrackerInit = Pick<Wire, "reqId" | "tokenLen" | "allocatedBlockIds"> & Partial<Wire>;

/**
 * The state of a request across scheduler steps. Mirrors vLLM's `RequestTracker`; `partialTailSent` is of vllm-0.33
 * and stays false in earlier releases.
 */
export class RequestTracker implements Wire {
  /** The request. */
  readonly reqId: string;
  /** Tokens that are computed or scheduled so far. */
  tokenLen: number;
  /** The request's blocks: one list a cache group, in token order. */
  allocatedBlockIds: number[][];
  /** Tokens that were handed out to be saved. */
  numSavedTokens: number;
  /** The tokens, where KV events need them. */
  tokenIds: number[] | null;
  /** Whether a state or a tail waits to be stored. */
  hasPendingOffload: boolean;
  /** Tokens of the prefill when tracking began; after a preemption with the tokens generated before it. */
  prefillEndTokens: number;
  /** Whether the partial tail of the prompt was handed out to be saved. */
  partialTailSent: boolean;

  /**
   * Copies the lists it is given.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when a number of tokens is not a whole number of 0 or more.
   */
  constructor(init: RequestTrackerInit) {
    this.reqId = init.reqId;
    this.tokenLen = checkCount("tokenLen", init.tokenLen);
    this.allocatedBlockIds = init.allocatedBlockIds.map((blockIds) => [...blockIds]);
    this.numSavedTokens = checkCount("numSavedTokens", init.numSavedTokens ?? 0);
    this.tokenIds = init.tokenIds ? [...init.tokenIds] : null;
    this.hasPendingOffload = init.hasPendingOffload ?? false;
    this.prefillEndTokens = checkCount("prefillEndTokens", init.prefillEndTokens ?? 0);
    this.partialTailSent = init.partialTailSent ?? false;
  }

  /** Forgets everything but the request's id: after a preemption the request starts anew. */
  reset(): void {
    this.tokenLen = 0;
    this.allocatedBlockIds = [];
    this.numSavedTokens = 0;
    this.tokenIds = null;
    this.hasPendingOffload = false;
    this.prefillEndTokens = 0;
    this.partialTailSent = false;
  }

  /**
   * Appends newly allocated blocks: one list a cache group, null where a group got none.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when the number of groups differs; nothing is appended then.
   */
  update(newBlockIds: readonly (readonly number[] | null)[]): void {
    if (newBlockIds.length !== this.allocatedBlockIds.length)
      throw requestError(
        `request ${this.reqId} has blocks in ${this.allocatedBlockIds.length} cache groups, but the update lists ${newBlockIds.length}; it needs one list a group`,
        { groups: this.allocatedBlockIds.length, updateGroups: newBlockIds.length },
      );
    for (const [group, blockIds] of newBlockIds.entries())
      for (const blockId of blockIds ?? []) this.allocatedBlockIds[group]!.push(blockId);
  }
}
