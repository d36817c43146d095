import { NULL_BLOCK_ID } from "../../../connector/null-block.js";
import type { BlockPool } from "../../../connector/scheduler/block-pool.js";
import { MooncakeKvError } from "../../../errors.js";

/** The blocks of an engine: given out one by one, and again when nobody holds a reference on them any more. */
export class DemoBlockPool implements BlockPool {
  readonly numBlocks: number;
  readonly #free: number[];
  readonly #references: Uint32Array;

  /** @param numBlocks with the null block, which is never given out. */
  constructor(numBlocks: number) {
    this.numBlocks = numBlocks;
    this.#references = new Uint32Array(numBlocks);
    // Not in order, as in an engine that has run for a while.
    this.#free = Array.from({ length: numBlocks - 1 }, (_, index) => index + 1);
    this.#free.sort((a, b) => reversedBits(a) - reversedBits(b));
  }

  /** Blocks that nobody holds. */
  get numFree(): number {
    return this.#free.length;
  }

  /** A block with one reference. @throws MooncakeKvError `ERR_REQUEST` when there is none left. */
  allocate(): number {
    const blockId = this.#free.shift();
    if (blockId === undefined)
      throw new MooncakeKvError("ERR_REQUEST", `all ${this.numBlocks - 1} blocks of the engine are in use`, {
        numBlocks: this.numBlocks,
      });
    this.#references[blockId] = 1;
    return blockId;
  }

  touch(blockIds: readonly number[]): void {
    for (const blockId of blockIds) this.#references[blockId] = this.#held(blockId) + 1;
  }

  freeBlocks(blockIds: readonly number[]): void {
    for (const blockId of blockIds) {
      if (blockId === NULL_BLOCK_ID) continue;
      const left = this.#held(blockId) - 1;
      this.#references[blockId] = left;
      if (left === 0) this.#free.push(blockId);
    }
  }

  #held(blockId: number): number {
    const references = this.#references[blockId] ?? 0;
    if (references === 0)
      throw new MooncakeKvError("ERR_REQUEST", `block ${blockId} is free, so nobody can hold it or free it`, {
        blockId,
      });
    return references;
  }
}

function reversedBits(value: number): number {
  let reversed = 0;
  for (let bit = 0; bit < 16; bit++) reversed |= ((value >> bit) & 1) << (15 - bit);
  return reversed;
}
