import type { OptionNames } from "../checks/checks-for.js";
import type { ChunkSpans } from "../chunk/chunk-spans.js";
import { type ChunkOptions, chunkSizes, chunkTokens } from "../chunk/chunk-tokens.js";
import type { BlockHash, BlockHashSequence } from "../hash/blob-block-hashes.js";
import type { KeyMetadata } from "../key/key-metadata.js";
import type { ChunkRanges } from "./block-rows.js";
import { layoutChecks, layoutError } from "./checks.js";
import { type BlockValue, RankLocalStoreLayout } from "./rank-local-store-layout.js";
import type { Segment, SegmentTable } from "./segment-table.js";
import type { StoreLayout, StoreLayoutOptions } from "./store-layout.js";
import { STORE_LAYOUT_OPTIONS } from "./store-layout.js";

/** What a token database needs to know. */
export interface ChunkedTokenDatabaseOptions extends StoreLayoutOptions {
  /** How chunks are stored. Default: a `RankLocalStoreLayout`. */
  readonly storeLayout?: StoreLayout | undefined;
}

const OPTIONS: OptionNames<ChunkedTokenDatabaseOptions> = { ...STORE_LAYOUT_OPTIONS, storeLayout: 1 };

/**
 * The chunks of one cache group: which there are, and how they are stored. Mirrors vLLM's `ChunkedTokenDatabase`.
 *
 * The members that deal with keys and memory stand for release 0.27, where the database owned both; since 0.31 they
 * belong to the layout, and work here only while that is rank-local.
 *
 * @example
 * ```ts
 * import { BlockHasher, ChunkedTokenDatabase } from "mooncake-kv";
 *
 * const tokens = Uint32Array.from({ length: 64 }, (_, token) => token);
 * const hashes = new BlockHasher({ blockSize: 16 }).hash(tokens);
 * const database = new ChunkedTokenDatabase({ metadata: { modelName: "Qwen3-8B" }, blockSize: 16 });
 * const chunks = database.chunks(tokens.length, hashes, { maskNum: 32 }); // the first 32 tokens are stored already
 * console.log(database.storeLayout.keys(chunks).toArray());
 * ```
 */
export class ChunkedTokenDatabase {
  /** What the keys say besides shard and hash. */
  readonly metadata: KeyMetadata;
  /** Tokens of one chunk. */
  readonly blockSize: number;
  /** Tokens of one block hash. */
  readonly hashBlockSize: number;
  /** How chunks are stored. */
  readonly storeLayout: StoreLayout;

  /**
   * @throws MooncakeKvError `ERR_CHUNK` when the block size is no positive multiple of the hash block size,
   * `ERR_LAYOUT` when the layout has another block size.
   */
  constructor(options: ChunkedTokenDatabaseOptions) {
    layoutChecks.names("ChunkedTokenDatabase", options, OPTIONS);
    const { blockSize, hashBlockSize } = chunkSizes(options.blockSize, options.hashBlockSize);
    this.storeLayout =
      options.storeLayout ??
      new RankLocalStoreLayout({ metadata: options.metadata, blockSize, hashBlockSize });
    if (this.storeLayout.blockSize !== blockSize)
      throw layoutError(
        `the database has blocks of ${blockSize} tokens, its layout blocks of ${this.storeLayout.blockSize}; they must be equal`,
        { blockSize, layoutBlockSize: this.storeLayout.blockSize },
      );
    this.blockSize = blockSize;
    this.hashBlockSize = hashBlockSize;
    this.metadata = this.storeLayout.metadata;
  }

  /**
   * The chunks of the first `tokenLen` tokens, flat.
   *
   * @throws MooncakeKvError `ERR_CHUNK` when the tokens are not whole hash blocks, or there are too few hashes.
   */
  chunks(tokenLen: number, blockHashes: BlockHashSequence, options?: ChunkOptions): ChunkSpans {
    return chunkTokens(this, tokenLen, blockHashes, options);
  }

  /** `chunks` one by one, as `[start, end, hash]`. Mirrors `process_tokens`; throws when called, not when read. */
  processTokens(
    tokenLen: number,
    blockHashes: BlockHashSequence,
    options?: ChunkOptions,
  ): IterableIterator<[start: number, end: number, hash: BlockHash]> {
    return triples(this.chunks(tokenLen, blockHashes, options));
  }

  /** The key of a chunk. */
  keyFor(chunkHash: Uint8Array): string {
    return this.#rankLocal().keyFor(0, chunkHash);
  }

  /** Address of each region in block 0. */
  get kvCachesBaseAddr(): readonly bigint[] {
    return this.#rankLocal().kvCachesBaseAddr;
  }

  /** Bytes of a block in each region. */
  get blockLen(): readonly number[] {
    return this.#rankLocal().blockLen;
  }

  /** Sets where each region of the cache begins. Mirrors `set_kv_caches_base_addr` of 0.27. */
  setKvCachesBaseAddr(baseAddresses: readonly bigint[]): void {
    this.#rankLocal().setKvCachesBaseAddr(baseAddresses);
  }

  /** Sets the bytes of a block in each region. Mirrors `set_block_len` of 0.27. */
  setBlockLen(blockLengths: readonly number[]): void {
    this.#rankLocal().setBlockLen(blockLengths);
  }

  /** The memory of the token range `[start, end)`. */
  prepareValue(start: number, end: number, blockIds: ArrayLike<number>): BlockValue {
    return this.#rankLocal().prepareValue(start, end, blockIds);
  }

  /** The memory of chunks, one row each. */
  prepareValues(chunks: ChunkRanges, blockIds: ArrayLike<number>): SegmentTable {
    return this.#rankLocal().prepareValues(chunks, blockIds);
  }

  /** The memory of one block. */
  prepareValueForBlock(blockId: number): Segment[] {
    return this.#rankLocal().prepareValueForBlock(blockId);
  }

  #rankLocal(): RankLocalStoreLayout {
    if (this.storeLayout instanceof RankLocalStoreLayout) return this.storeLayout;
    throw layoutError(
      `this needs a rank-local layout, but the database has a ${this.storeLayout.constructor.name}; ask the layout itself, which has a key and a value a shard`,
      { layout: this.storeLayout.constructor.name },
    );
  }
}

function* triples(chunks: ChunkSpans): Generator<[number, number, BlockHash]> {
  for (let index = 0; index < chunks.length; index++)
    yield [chunks.starts[index]!, chunks.ends[index]!, chunks.hash(index)];
}
