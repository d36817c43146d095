import { checkNames, checkWhole, checkWord, type OptionNames } from "../checks/checks-for.js";
import { describe } from "../errors.js";
import { DEFAULT_RELEASE, RELEASES, type Release } from "../release.js";
import {
  type BlockFormat,
  blockFormat,
  DEFAULT_HASH_ALGORITHM,
  type HashAlgorithm,
  hashLength,
  isCryptographic,
  parseHashAlgorithm,
} from "./algorithm.js";
import type { BlobBlockHashes, BlockHash } from "./blob-block-hashes.js";
import { BlockHashSession } from "./block-hash-session.js";
import { cborDumps } from "./cbor.js";
import { type Digest, loadDigest, sha256 } from "./digest.js";
import { hashError } from "./hash-error.js";
import type { HashRules } from "./hash-rules.js";
import type { Hashable } from "./hashable.js";
import type { BlockHashKernel } from "./kernel.js";
import { resolveNoneHash, unshareableRoot } from "./none-hash.js";
import { pickleDumps } from "./pickle.js";
import type { HashRequest, TokenIds } from "./request.js";

/** How an engine hashes its blocks. */
export interface BlockHasherOptions {
  /** The engine's vLLM release; what is hashed depends on it. Default: the newest. */
  readonly release?: Release | undefined;
  /** `--prefix-caching-hash-algo`. Default: `sha256`, as in vLLM. */
  readonly algorithm?: HashAlgorithm | undefined;
  /** Tokens of one hashed block (`hash_block_size`). */
  readonly blockSize: number;
  /** The engine's PYTHONHASHSEED, exactly as set; leave it out where the engine has none. */
  readonly seed?: string | undefined;
  /**
   * The root itself, where it is known and the seed is not; wins over `seed`. 32 bytes; under the xxhash algorithms
   * 16, or 32 where an engine of vllm-0.27 drew it at random.
   */
  readonly noneHash?: Uint8Array | undefined;
  /**
   * `"shared"` (default) refuses a root that no other process can compute; `"private"` allows it, for hashes that stay
   * in this process.
   */
  readonly rootSharing?: "shared" | "private" | undefined;
  /** Tokens after a block that its hash covers as well (drafters; vllm-0.33). Default: 0. */
  readonly numHashLookaheadTokens?: number | undefined;
  /** A native fast path for the sha256 algorithms. */
  readonly kernel?: BlockHashKernel | undefined;
}

const OPTIONS: OptionNames<BlockHasherOptions> = {
  release: 1,
  algorithm: 1,
  blockSize: 1,
  seed: 1,
  noneHash: 1,
  rootSharing: 1,
  numHashLookaheadTokens: 1,
  kernel: 1,
};

/** How `hashAsync` behaves. */
export interface HashAsyncOptions {
  /** Ends the work with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Hashes token blocks exactly as a vLLM engine does: each hash covers its block and, through its parent, everything
 * before it. Mirrors vLLM's `get_request_block_hasher`, `hash_block_tokens` and `init_none_hash`.
 *
 * @example
 * ```ts
 * import { BlockHasher } from "mooncake-kv";
 *
 * const hasher = new BlockHasher({ release: "vllm-0.33", blockSize: 16, seed: "0" });
 * const hashes = hasher.hash(Uint32Array.from({ length: 40 }, (_, token) => token));
 * console.log(hashes.length, hashes.toHex()[0]); // 2 full blocks; the last 8 tokens have no hash
 * ```
 */
export class BlockHasher implements HashRules {
  /** The engine's vLLM release. */
  readonly release: Release;
  /** `--prefix-caching-hash-algo`. */
  readonly algorithm: HashAlgorithm;
  /** How a block is serialised before it is digested. */
  readonly format: BlockFormat;
  /** Tokens of one hashed block. */
  readonly blockSize: number;
  /** Bytes of one hash. */
  readonly hashLength: number;
  /** Tokens after a block that its hash covers as well. */
  readonly numHashLookaheadTokens: number;
  /** The text the root was made of; undefined where the root is plain bytes. */
  readonly seed: string | undefined;
  /** The parent of every first block: vLLM's NONE_HASH. */
  readonly noneHash: BlockHash;
  /** Whether another process with the same settings gets the same hashes. */
  readonly shareable: boolean;
  /** The native fast path; undefined where there is none. */
  readonly kernel: BlockHashKernel | undefined;
  /** Digests serialised bytes with this algorithm. */
  readonly digest: Digest;

  /**
   * For the sha256 algorithms; the xxhash ones need `BlockHasher.create`.
   *
   * @throws MooncakeKvError `ERR_HASH` for options that no engine can have, or a root that can't be shared.
   */
  constructor(options: BlockHasherOptions, digest?: Digest) {
    checkNames(hashError, "BlockHasher", options, OPTIONS);
    this.release = checkWord(hashError, "release", options.release ?? DEFAULT_RELEASE, RELEASES);
    this.algorithm = parseHashAlgorithm(options.algorithm ?? DEFAULT_HASH_ALGORITHM);
    this.format = blockFormat(this.algorithm);
    this.blockSize = checkWhole(hashError, "blockSize", options.blockSize, 1);
    this.hashLength = hashLength(this.algorithm);
    checkWord(hashError, "rootSharing", options.rootSharing ?? "shared", ["shared", "private"]);
    this.numHashLookaheadTokens = checkWhole(
      hashError,
      "numHashLookaheadTokens",
      options.numHashLookaheadTokens ?? 0,
      0,
    );
    if (this.numHashLookaheadTokens > 0 && this.release !== "vllm-0.33")
      throw hashError(
        `numHashLookaheadTokens ${this.numHashLookaheadTokens} does not exist in ${this.release}; it came with vllm-0.33`,
        { release: this.release },
      );
    this.digest = digest ?? syncDigest(this.algorithm);
    this.kernel = isCryptographic(this.algorithm) ? options.kernel : undefined;
    if (options.noneHash !== undefined) {
      this.seed = undefined;
      this.noneHash = checkNoneHash(options.noneHash, this.algorithm);
      this.shareable = true;
      return;
    }
    if (options.seed !== undefined && typeof options.seed !== "string")
      throw hashError(`seed ${describe(options.seed)} is not a text; pass PYTHONHASHSEED as set`);
    const root = resolveNoneHash(this.algorithm, this.digest, options.seed, this.release);
    if (!root.shareable && options.rootSharing !== "private")
      throw unshareableRoot(this.algorithm, this.release);
    this.seed = root.seed;
    this.noneHash = root.noneHash;
    this.shareable = root.shareable;
  }

  /** A hasher for any algorithm; loads what the algorithm needs first. */
  static async create(options: BlockHasherOptions): Promise<BlockHasher> {
    checkNames(hashError, "BlockHasher", options, OPTIONS);
    return new BlockHasher(
      options,
      await loadDigest(parseHashAlgorithm(options.algorithm ?? DEFAULT_HASH_ALGORITHM)),
    );
  }

  /**
   * The hashes of all full blocks of a prompt; a tail shorter than a block is not hashed.
   *
   * @throws MooncakeKvError `ERR_HASH` for a token id that is not a whole number of 0 to 2^32 - 1, and for requests
   * that no engine accepts.
   */
  hash(input: TokenIds | HashRequest): BlobBlockHashes {
    const session = this.session(asRequest(input));
    session.advance();
    return session.hashes;
  }

  /** `hash` in slices of a few milliseconds, so that a long prompt does not stall other work. */
  async hashAsync(input: TokenIds | HashRequest, options: HashAsyncOptions = {}): Promise<BlobBlockHashes> {
    const session = this.session(asRequest(input));
    await session.advanceAsync(options.signal);
    return session.hashes;
  }

  /** Starts hashing a request that will grow: `session.append(tokens)` hashes what became full. */
  session(request: HashRequest = { promptTokenIds: [] }): BlockHashSession {
    return new BlockHashSession(this, request);
  }

  /**
   * The hash of one explicit block. Mirrors vLLM's `hash_block_tokens`.
   *
   * @param parent the hash before it; null or empty for a first block.
   */
  hashBlock(
    parent: Uint8Array | null,
    tokens: readonly (number | bigint)[] | Uint32Array,
    extraKeys: Hashable = null,
  ): BlockHash {
    const start = parent === null || parent.length === 0 ? this.noneHash : parent;
    const dumps = this.format === "cbor" ? cborDumps : pickleDumps;
    return this.digest(dumps([start, Array.from<number | bigint>(tokens), extraKeys]));
  }
}

function asRequest(input: TokenIds | HashRequest): HashRequest {
  if (typeof input !== "object" || input === null)
    throw hashError(`${describe(input)} is neither a list of token ids nor a request with promptTokenIds`);
  return "length" in input && typeof input.length === "number"
    ? { promptTokenIds: input as TokenIds }
    : (input as HashRequest);
}

function syncDigest(algorithm: HashAlgorithm): Digest {
  if (isCryptographic(algorithm)) return sha256;
  throw hashError(
    `${algorithm} is WebAssembly that must be loaded first: use await BlockHasher.create(options)`,
    { algorithm },
  );
}

function checkNoneHash(noneHash: Uint8Array, algorithm: HashAlgorithm): BlockHash {
  const lengths = isCryptographic(algorithm) ? [32] : [16, 32];
  if (!(noneHash instanceof Uint8Array) || !lengths.includes(noneHash.length))
    throw hashError(
      `noneHash ${describe(noneHash)} must be a Uint8Array of ${lengths.join(" or ")} bytes for ${algorithm}`,
      { noneHash, algorithm },
    );
  return Uint8Array.from(noneHash);
}
