import type { OptionNames } from "../checks/checks-for.js";
import { describe } from "../errors.js";
import type { BlobBlockHashes, BlockHash } from "../hash/blob-block-hashes.js";
import { type KeyMetadata, type KeyMetadataInit, keyMetadata } from "../key/key-metadata.js";
import { KeyTable } from "../key/key-table.js";
import { PoolKey } from "../key/pool-key.js";
import type { BlockRows, ChunkRanges } from "./block-rows.js";
import type { CacheTensor } from "./cache-tensor.js";
import { checkWhole, layoutError } from "./checks.js";
import type { SegmentTable } from "./segment-table.js";

/** Physical ranks that a rank-local key names: TP, PCP, DCP, PP. Mirrors vLLM's `RankNamespace`. */
export type RankNamespace = readonly [tpRank: number, pcpRank: number, dcpRank: number, ppRank: number];

/** Token ranges with the hash that names each; `ChunkSpans` is one. */
export interface HashedChunks extends ChunkRanges {
  hash(index: number): BlockHash;
  hashes(): BlobBlockHashes;
}

/** What every layout needs to know. */
export interface StoreLayoutOptions {
  /** What the keys say besides shard and hash. */
  readonly metadata: KeyMetadataInit;
  /** Tokens of one block. */
  readonly blockSize: number;
  /** Tokens of one block hash; divides `blockSize`. Default: `blockSize`. */
  readonly hashBlockSize?: number | undefined;
  /**
   * Whether a block beyond the registered caches is refused. `false`: its address is computed all the same, as vLLM does it.
   * Default: true.
   */
  readonly checkBlockIds?: boolean | undefined;
}

/** The names of `StoreLayoutOptions`. */
export const STORE_LAYOUT_OPTIONS: OptionNames<StoreLayoutOptions> = {
  metadata: 1,
  blockSize: 1,
  hashBlockSize: 1,
  checkBlockIds: 1,
};

/**
 * How the blocks of one cache group on one rank become stored objects: their keys and their memory. A block is stored
 * as one object a shard. Mirrors vLLM's `StoreLayout`; use one of its three implementations.
 *
 * Where a method takes `shardIds`, element i is the shard of chunk i, as in vLLM. Without them every chunk gets all
 * shards of this rank: chunk 0 in each shard, then chunk 1, and so on. `keys` and `prepareValues` agree on that order.
 */
export abstract class StoreLayout {
  readonly metadata: KeyMetadata;
  readonly blockSize: number;
  readonly hashBlockSize: number;
  /** Blocks that may be named; undefined before caches are registered. */
  #numBlocks: number | undefined;
  readonly #checkBlockIds: boolean;

  /** @throws MooncakeKvError `ERR_LAYOUT` for sizes that do not fit together, `ERR_KEY` for bad metadata. */
  constructor({ metadata, blockSize, hashBlockSize = blockSize, checkBlockIds = true }: StoreLayoutOptions) {
    if (new.target === StoreLayout)
      throw layoutError(
        "StoreLayout is abstract; use RankLocalStoreLayout, LBHNCStoreLayout or LBNHCStoreLayout",
      );
    this.metadata = keyMetadata(metadata);
    this.#checkBlockIds = checkBlockIds;
    this.blockSize = checkWhole("blockSize", blockSize, 1);
    this.hashBlockSize = checkWhole("hashBlockSize", hashBlockSize, 1);
    if (blockSize % hashBlockSize !== 0)
      throw layoutError(
        `blockSize ${blockSize} is not a multiple of hashBlockSize ${hashBlockSize}; a block ends with a hash`,
        { blockSize, hashBlockSize },
      );
  }

  /** Shards that this rank stores and loads. Mirrors `local_shard_ids`. */
  abstract get localShardIds(): readonly number[];

  /**
   * The part of this rank's keys for a shard before the hash.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when the shard is not one of this rank.
   */
  abstract keyPrefix(shardId: number): string;

  /**
   * The prefixes under which a block must exist, each with its hash, to be reusable. `rankNamespaces` lists the
   * physical ranks of the engine. Mirrors `lookup_key_prefixes`.
   *
   * @throws MooncakeKvError `ERR_KEY` for a rank that no key can carry.
   */
  abstract lookupKeyPrefixes(rankNamespaces: readonly RankNamespace[]): string[];

  /**
   * Learns where the KV cache lies: one tensor a layer, in an order that is the same on every rank. Replaces what was
   * registered before; after an error nothing has changed. Mirrors `register_kv_caches`.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when a tensor is not laid out as this layout needs it.
   */
  abstract registerKvCaches(tensors: readonly CacheTensor[], numBlocks: number): void;

  /**
   * The memory of chunks: one row an object, in the order of `keys`. `blockIds` is the block table of the request, in
   * token order. Unlike in vLLM, a block beyond the registered caches is refused: its memory may be that of another layer.
   * Mirrors `prepare_values`.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when a shard is not one of this rank, a chunk has no block, its length is not one
   * that this layout stores, its block lies beyond the registered caches, or none are registered.
   */
  abstract prepareValues(
    chunks: ChunkRanges,
    blockIds: ArrayLike<number>,
    shardIds?: ArrayLike<number>,
  ): SegmentTable;

  /**
   * The key of one object. Mirrors `key_for`.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when the shard is not one of this rank.
   */
  keyFor(shardId: number, chunkHash: Uint8Array): string {
    return PoolKey.buildKeyString(this.keyPrefix(shardId), chunkHash);
  }

  /**
   * The keys of chunks, in the order of the rows of `prepareValues`.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when a shard is not one of this rank, `ERR_HASH` when hashes differ in length.
   */
  keys(chunks: HashedChunks, shardIds?: ArrayLike<number>): KeyTable {
    if (chunks.length === 0) return KeyTable.fromTexts([]);
    if (shardIds === undefined) {
      const prefixes = this.shardsOfEveryChunk().map((shardId) => this.keyPrefix(shardId));
      return KeyTable.fromPrefixes(prefixes, chunks.hashes());
    }
    checkShardCount(chunks, shardIds);
    return KeyTable.fromTexts(
      Array.from(shardIds, (shardId, chunk) => this.keyFor(shardId, chunks.hash(chunk))),
    );
  }

  /** Notes that there is memory, for blocks below `numBlocks`; Infinity where addresses are set by hand. */
  protected haveBlocks(numBlocks: number): void {
    this.#numBlocks = numBlocks;
  }

  /**
   * Checks that rows lie in the registered caches. `spans[i]` are the blocks that row i takes from its id on, one where there
   * is none.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` that names the id and the number of blocks, or says that no caches are registered.
   */
  protected checkBlocks({ blockIds, maxBlockId }: BlockRows, spans?: BigUint64Array): void {
    const numBlocks = this.#blockLimit();
    if (numBlocks === Number.POSITIVE_INFINITY || (maxBlockId < numBlocks && spans === undefined)) return;
    for (let row = 0; row < blockIds.length; row++) {
      const last = blockIds[row]! + Math.max(1, Number(spans?.[row] ?? 1)) - 1;
      if (last >= numBlocks) throw beyond(`chunk ${row} lies in block`, last, numBlocks);
    }
  }

  /** Checks one block as `checkBlocks` does, where a negative id is none of the registered ones either. */
  protected checkBlock(blockId: number): void {
    const numBlocks = this.#blockLimit();
    if (numBlocks !== Number.POSITIVE_INFINITY && (blockId < 0 || blockId >= numBlocks))
      throw beyond("there is no block", blockId, numBlocks);
  }

  #blockLimit(): number {
    if (!this.#checkBlockIds) return Number.POSITIVE_INFINITY;
    if (this.#numBlocks === undefined)
      throw layoutError(
        "no KV caches are registered, so that no block has memory; call registerKvCaches first",
      );
    return this.#numBlocks;
  }

  /** The shards that each chunk gets when no shard is named. */
  protected shardsOfEveryChunk(): readonly number[] {
    const shardIds = this.localShardIds;
    if (shardIds.length === 0)
      throw layoutError(
        "this rank owns no shard, so it has nothing to store or load; storeTpSize must be tpSize or more",
      );
    return shardIds;
  }
}

/** @throws MooncakeKvError `ERR_LAYOUT` unless there is one shard id a chunk. */
export function checkShardCount(chunks: ChunkRanges, shardIds: ArrayLike<number>): void {
  if (chunks.length !== shardIds.length)
    throw layoutError(`${shardIds.length} shard ids for ${chunks.length} chunks; every chunk needs one`, {
      chunks: chunks.length,
      shardIds: shardIds.length,
    });
}

/** The error for a shard of another rank. */
export function notOwned(shardId: unknown, localShardIds: readonly number[]): Error {
  return layoutError(
    `shard ${describe(shardId)} does not belong to this rank, which owns ${localShardIds.length === 0 ? "none" : localShardIds.join(", ")}`,
    { shardId, localShardIds },
  );
}

function beyond(what: string, blockId: number, numBlocks: number): Error {
  const ids = numBlocks === 0 ? "" : `, 0 to ${numBlocks - 1}`;
  return layoutError(`${what} ${blockId}: the registered caches have ${numBlocks} blocks${ids}`, {
    blockId,
    numBlocks,
  });
}
