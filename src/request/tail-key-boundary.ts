import type { MooncakeLookupResult, TailKeyBoundary as Wire } from "../../generated/typescript/index.js";
import { checkCount } from "./checks.js";

/**
 * The boundary whose hash names a group's tail block in the store, where the length of the hit does not. A frozen
 * value. Mirrors vLLM's `TailKeyBoundary`, since vllm-0.31.
 */
export class TailKeyBoundary implements Wire {
  /** The cache group that the tail block belongs to. */
  readonly groupId: number;
  /** Tokens in front of the boundary. */
  readonly numTokens: number;

  /** @throws MooncakeKvError `ERR_REQUEST` when a number is not a whole one of 0 or more. */
  constructor(groupId: number, numTokens: number) {
    this.groupId = checkCount("groupId", groupId);
    this.numTokens = checkCount("numTokens", numTokens);
    Object.freeze(this);
  }

  /** Whether both are the same boundary of the same group. */
  equals(other: Wire): boolean {
    return this.groupId === other.groupId && this.numTokens === other.numTokens;
  }

  /** A text that is equal exactly for equal boundaries: for maps and sets. */
  get identity(): string {
    return `${this.groupId}:${this.numTokens}`;
  }
}

/**
 * What a lookup found: the longest prefix in tokens that all groups can reuse, and one boundary a group unless that is
 * 0. Mirrors vLLM's `MooncakeLookupResult`, since vllm-0.31.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when `hitLength` is not a whole number of 0 or more.
 */
export function createLookupResult(
  hitLength: number,
  tailKeyBoundaries: readonly Wire[] = [],
): MooncakeLookupResult {
  return { hitLength: checkCount("hitLength", hitLength), tailKeyBoundaries: [...tailKeyBoundaries] };
}
