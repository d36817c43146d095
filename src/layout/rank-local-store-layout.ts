import { PoolKey } from "../key/pool-key.js";
import { blockRows, type ChunkRanges } from "./block-rows.js";
import { type CacheTensor, checkCacheTensor } from "./cache-tensor.js";
import { checkUint64, checkWhole, layoutChecks, layoutError, UINT64_END } from "./checks.js";
import { checkedHighest, noSegments, segmentsOfAllShards } from "./prepare-segments.js";
import { cacheRegions } from "./rank-local-regions.js";
import type { Segment, SegmentTable } from "./segment-table.js";
import { type SegmentTemplates, segmentTemplates } from "./segment-templates.js";
import {
  checkShardCount,
  notOwned,
  type RankNamespace,
  STORE_LAYOUT_OPTIONS,
  StoreLayout,
  type StoreLayoutOptions,
} from "./store-layout.js";

/** vLLM computes rank-local addresses and sizes in signed 64-bit integers. */
const INT64_END = UINT64_END / 2n;

const ONE_SHARD: readonly number[] = [0];

/** The memory of one object, with the block that it belongs to. */
export interface BlockValue {
  readonly segments: readonly Segment[];
  readonly blockId: number;
}

/**
 * The historical layout: each rank stores its own part of a block as one object, under a key with its own ranks.
 * Mirrors vLLM's `RankLocalStoreLayout`, and in release 0.27 the descriptors inside `ChunkedTokenDatabase`.
 */
export class RankLocalStoreLayout extends StoreLayout {
  readonly #keyPrefix: string;
  #baseAddresses: readonly bigint[] = [];
  #blockLengths: readonly number[] = [];
  #templates: SegmentTemplates | undefined;

  /** @throws MooncakeKvError `ERR_LAYOUT` for sizes that do not fit together, `ERR_KEY` for bad metadata. */
  constructor(options: StoreLayoutOptions) {
    super(layoutChecks.names("RankLocalStoreLayout", options, STORE_LAYOUT_OPTIONS));
    this.#keyPrefix = PoolKey.buildPrefix(this.metadata);
  }

  /** Address of each region in block 0. */
  get kvCachesBaseAddr(): readonly bigint[] {
    return this.#baseAddresses;
  }

  /** Bytes of a block in each region; used in turn where there are fewer lengths than regions. */
  get blockLen(): readonly number[] {
    return this.#blockLengths;
  }

  get localShardIds(): readonly number[] {
    return ONE_SHARD;
  }

  keyPrefix(shardId: number): string {
    if (shardId !== 0) throw notOwned(shardId, ONE_SHARD);
    return this.#keyPrefix;
  }

  /** One prefix a rank, in the order given. */
  lookupKeyPrefixes(rankNamespaces: readonly RankNamespace[]): string[] {
    return rankNamespaces.map(([tpRank, pcpRank, dcpRank, ppRank]) =>
      PoolKey.buildPrefix(this.metadata, { tpRank, pcpRank, dcpRank, ppRank }),
    );
  }

  /** Sets the region addresses directly. Mirrors `set_kv_caches_base_addr`. */
  setKvCachesBaseAddr(baseAddresses: readonly bigint[]): void {
    for (const [i, address] of baseAddresses.entries()) checkUint64(`base address ${i}`, address);
    this.#baseAddresses = [...baseAddresses];
    this.#templates = undefined;
    this.haveBlocks(Number.POSITIVE_INFINITY);
  }

  /** Sets the block lengths directly. Mirrors `set_block_len`. */
  setBlockLen(blockLengths: readonly number[]): void {
    for (const [i, length] of blockLengths.entries()) checkWhole(`block length ${i}`, length, 0);
    this.#blockLengths = [...blockLengths];
    this.#templates = undefined;
  }

  /**
   * Finds the regions of each tensor; a region that was found before is not listed again.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when the blocks of a tensor are neither dense nor dense per index of axis 1.
   */
  registerKvCaches(tensors: readonly CacheTensor[], numBlocks: number): void {
    checkWhole("numBlocks", numBlocks, 0);
    const lengths = new Map<bigint, number>();
    for (const [index, tensor] of tensors.entries()) {
      checkCacheTensor(tensor, `tensor ${index}`);
      for (const { address, blockLength } of cacheRegions(tensor, numBlocks, `tensor ${index}`))
        if (!lengths.has(address)) lengths.set(address, blockLength);
    }
    this.setKvCachesBaseAddr([...lengths.keys()]);
    this.setBlockLen([...lengths.values()]);
    this.haveBlocks(numBlocks);
  }

  /** A chunk may end inside a block, or span several that lie one after the other; whole blocks are stored. */
  prepareValues(
    chunks: ChunkRanges,
    blockIds: ArrayLike<number>,
    shardIds?: ArrayLike<number>,
  ): SegmentTable {
    if (chunks.length === 0) return noSegments();
    if (shardIds !== undefined) this.#checkShards(chunks, shardIds);
    const templates = this.#segmentTemplates();
    const counts = this.#blockCounts(chunks);
    const rows = blockRows(chunks, blockIds, this.blockSize);
    this.checkBlocks(rows, counts);
    const highest = checkedHighest(templates, rows, INT64_END);
    const table = segmentsOfAllShards(rows, templates, 1, highest);
    if (counts !== undefined) scaleSizes(table, counts);
    return table;
  }

  /** The memory of the token range `[start, end)`. Mirrors `prepare_value` of release 0.27. */
  prepareValue(start: number, end: number, blockIds: ArrayLike<number>): BlockValue {
    const table = this.prepareValues({ length: 1, starts: [start], ends: [end] }, blockIds);
    return { segments: table.row(0), blockId: table.blockIds[0]! };
  }

  /**
   * The memory of one block. Over addresses set by hand the id is an offset, as in vLLM: -1 is the block before the first.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when the block lies outside the registered caches, none are registered, or an
   * address would leave [0, 2^64).
   */
  prepareValueForBlock(blockId: number): Segment[] {
    const { bases, strides, sizes } = this.#segmentTemplates();
    const id = BigInt(checkWhole("block id", blockId));
    this.checkBlock(blockId);
    return Array.from(bases, (base, i) => ({
      address: checkUint64(`address of block ${blockId}`, base + id * strides[i]!),
      size: sizes[i]!,
    }));
  }

  #checkShards(chunks: ChunkRanges, shardIds: ArrayLike<number>): void {
    checkShardCount(chunks, shardIds);
    for (let i = 0; i < shardIds.length; i++) if (shardIds[i] !== 0) throw notOwned(shardIds[i], ONE_SHARD);
  }

  /** How many blocks each chunk spans, or undefined when it is one for all. */
  #blockCounts({ length, starts, ends }: ChunkRanges): BigUint64Array | undefined {
    let counts: BigUint64Array | undefined;
    for (let i = 0; i < length; i++) {
      const span = ends[i]! - starts[i]!;
      if (!(span >= 0) || span % this.hashBlockSize !== 0)
        throw layoutError(
          `chunk ${i} has ${span} tokens, from ${starts[i]} to ${ends[i]}, which is not a multiple of hashBlockSize ${this.hashBlockSize}`,
          { chunk: i, start: starts[i], end: ends[i], hashBlockSize: this.hashBlockSize },
        );
      if (span > 0 && span <= this.blockSize) continue;
      counts ??= new BigUint64Array(length).fill(1n);
      counts[i] = BigInt(Math.ceil(span / this.blockSize));
    }
    return counts;
  }

  #segmentTemplates(): SegmentTemplates {
    const lengths = this.#blockLengths;
    if (this.#baseAddresses.length > 0 && lengths.length === 0)
      throw layoutError(
        `${this.#baseAddresses.length} base addresses but no block length; set at least one`,
        {
          baseAddresses: this.#baseAddresses.length,
        },
      );
    this.#templates ??= segmentTemplates(
      this.#baseAddresses.map((base, i) => {
        const length = BigInt(lengths[i % lengths.length]!);
        return { base, stride: length, size: length };
      }),
    );
    return this.#templates;
  }
}

/** Multiplies the sizes of row i by `counts[i]`. */
function scaleSizes({ sizes, rowOffsets }: SegmentTable, counts: BigUint64Array): void {
  for (const [row, count] of counts.entries()) {
    if (count === 1n) continue;
    for (let i = rowOffsets[row]!; i < rowOffsets[row + 1]!; i++) {
      const size = sizes[i]! * count;
      if (size >= INT64_END)
        throw layoutError(`chunk ${row} spans ${count} blocks of ${sizes[i]} bytes, 2^63 bytes or more`, {
          chunk: row,
          blocks: count,
          blockLength: sizes[i],
        });
      sizes[i] = size;
    }
  }
}
