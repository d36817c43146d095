import type { BlockFormat } from "./algorithm.js";

/** What a kernel hashes: a run of blocks that follow each other. */
export interface HashChainInput {
  /** How a block is serialised. */
  readonly format: BlockFormat;
  /** The hash before the first block, 32 bytes. */
  readonly parent: Uint8Array;
  /** All tokens of the run: a whole number of blocks. */
  readonly tokens: Uint32Array;
  /** Tokens of one block. */
  readonly blockSize: number;
  /** The serialised extra keys of all blocks, back to back; absent when no block has any. */
  readonly extras?: Uint8Array | undefined;
  /** Where the extra keys of each block end in `extras`; an empty piece means None. One entry a block. */
  readonly extraEnds?: Uint32Array | undefined;
}

/**
 * A fast path for SHA-256 chains, handed in by who has one: `nativeBlockHashKernel()` of `mooncake-kv/native`. The
 * results are the same with and without.
 */
export interface BlockHashKernel {
  /** The hashes of all blocks, 32 bytes each, back to back. */
  hashChain(input: HashChainInput): Uint8Array;
}
