import type { BoundaryPut as Wire } from "../../generated/typescript/index.js";
import { checkCount } from "./checks.js";

/** A boundary put as a tuple, which is its form on the wire. */
export type BoundaryPutTuple = readonly [groupId: number, blockId: number, numTokens: number];

/**
 * A block that is stored under the hash of the prefix that ends at `numTokens`, instead of by its position. A frozen
 * value. Mirrors vLLM's `BoundaryPut`, since vllm-0.33.
 */
export class BoundaryPut implements Wire {
  /** The store's group. */
  readonly groupId: number;
  /** The block in the cache. */
  readonly blockId: number;
  /** Tokens of the prefix. */
  readonly numTokens: number;

  /** @throws MooncakeKvError `ERR_REQUEST` when a number is not a whole one of 0 or more. */
  constructor(groupId: number, blockId: number, numTokens: number) {
    this.groupId = checkCount("groupId", groupId);
    this.blockId = checkCount("blockId", blockId);
    this.numTokens = checkCount("numTokens", numTokens);
    Object.freeze(this);
  }

  /** The three numbers as they lie on the wire. */
  toTuple(): BoundaryPutTuple {
    return [this.groupId, this.blockId, this.numTokens];
  }

  /** The order of the tuples: by group, then block, then tokens. */
  static compare(a: Wire, b: Wire): number {
    return a.groupId - b.groupId || a.blockId - b.blockId || a.numTokens - b.numTokens;
  }

  /** Whether both name the same group, block and prefix. */
  equals(other: Wire): boolean {
    return BoundaryPut.compare(this, other) === 0;
  }
}
