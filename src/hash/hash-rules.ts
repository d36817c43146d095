import type { Release } from "../release.js";
import type { BlockFormat } from "./algorithm.js";
import type { BlockHash } from "./blob-block-hashes.js";
import type { BlockHashKernel } from "./kernel.js";
import type { Digest } from "./xxh3.js";

/** What a session needs to know of how an engine hashes. `BlockHasher` has it all. */
export interface HashRules {
  /** The engine's vLLM release. */
  readonly release: Release;
  /** How a block is serialised before it is digested. */
  readonly format: BlockFormat;
  /** Tokens of one hashed block. */
  readonly blockSize: number;
  /** Bytes of one hash. */
  readonly hashLength: number;
  /** Tokens after a block that its hash covers as well. */
  readonly numHashLookaheadTokens: number;
  /** The parent of every first block. */
  readonly noneHash: BlockHash;
  /** The native fast path; undefined where there is none. */
  readonly kernel: BlockHashKernel | undefined;
  /** Digests serialised bytes. */
  readonly digest: Digest;
}
