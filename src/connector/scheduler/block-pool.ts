/**
 * The engine's pool of blocks, as far as a store job needs it: whoever holds a reference on a block keeps it from being
 * given away. Mirrors `BlockPool.touch` and `BlockPool.free_blocks`.
 */
export interface BlockPool {
  /** Takes one reference on each block. */
  touch(blockIds: readonly number[]): void;
  /** Gives one reference on each block back, in this order: what comes first is evicted first. */
  freeBlocks(blockIds: readonly number[]): void;
}
