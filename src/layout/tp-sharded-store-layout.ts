import type { OptionNames } from "../checks/checks-for.js";
import { describe } from "../errors.js";
import { PoolKey } from "../key/pool-key.js";
import { blockRows, type ChunkRanges } from "./block-rows.js";
import { type CacheTensor, checkCacheTensor } from "./cache-tensor.js";
import { checkUint64, checkWhole, layoutChecks, layoutError, UINT64_END } from "./checks.js";
import { checkedHighest, noSegments, segmentsOfAllShards, segmentsOfOneShard } from "./prepare-segments.js";
import type { SegmentTable } from "./segment-table.js";
import { type SegmentTemplate, type SegmentTemplates, segmentTemplates } from "./segment-templates.js";
import {
  checkShardCount,
  notOwned,
  type RankNamespace,
  STORE_LAYOUT_OPTIONS,
  StoreLayout,
  type StoreLayoutOptions,
} from "./store-layout.js";

const MAX_TP_SIZE = 1 << 20;

/** What a layout shared between TP sizes needs to know. */
export interface TPShardedStoreLayoutOptions extends StoreLayoutOptions {
  /** TP size of this engine; divides `storeTpSize`. */
  readonly tpSize: number;
  /** TP rank of this worker, below `tpSize`. */
  readonly tpRank: number;
  /** Shards that a block is stored in; divides `numKvHeads`. */
  readonly storeTpSize: number;
  /** KV heads of the whole model, over all ranks. */
  readonly numKvHeads: number;
}

const OPTIONS: OptionNames<TPShardedStoreLayoutOptions> = {
  ...STORE_LAYOUT_OPTIONS,
  tpSize: 1,
  tpRank: 1,
  storeTpSize: 1,
  numKvHeads: 1,
};

/** Strides of one block in bytes. */
export interface BlockStrides {
  readonly head: bigint;
  readonly token: bigint;
  /** Bytes of one token in one head: K and V together. */
  readonly content: bigint;
}

/** A part of a block: offset from its first byte, and size, in bytes. */
export interface BlockPart {
  readonly offset: bigint;
  readonly size: bigint;
}

/**
 * A layout that engines of different TP sizes share: a block is stored as `storeTpSize` objects, each with an equal
 * share of the KV heads; a rank owns `storeTpSize / tpSize` of them. Mirrors vLLM's `TPShardedStoreLayout`; use
 * `LBHNCStoreLayout` or `LBNHCStoreLayout`, whichever is the order of the cache in memory.
 *
 * As in vLLM the numbers need not divide evenly; heads and shards that are left over are stored by nobody.
 */
export abstract class TPShardedStoreLayout extends StoreLayout {
  readonly storeTpSize: number;
  readonly tpRank: number;
  /** Shards that each rank owns. */
  readonly shardsPerRank: number;
  readonly headsPerStoreShard: number;
  /** KV heads on this rank. */
  readonly localNumKvHeads: number;
  readonly localShardIds: readonly number[];
  readonly #keyPrefixes: Map<number, string> = new Map();
  /** Templates of shard `localShardIds[0]`, then of the next one, and so on. */
  #templates: SegmentTemplates = segmentTemplates([]);

  /** @throws MooncakeKvError `ERR_LAYOUT` for sizes that give no shards or heads to divide. */
  constructor(options: TPShardedStoreLayoutOptions) {
    super(layoutChecks.names("a layout of shards", options, OPTIONS));
    if (new.target === TPShardedStoreLayout) throw noFormat();
    const tpSize = divisor("tpSize", options.tpSize);
    this.storeTpSize = divisor("storeTpSize", options.storeTpSize);
    this.tpRank = checkWhole("tpRank", options.tpRank);
    const numKvHeads = checkWhole("numKvHeads", options.numKvHeads);
    this.shardsPerRank = Math.floor(this.storeTpSize / tpSize);
    if (this.shardsPerRank < 0)
      throw layoutError(`storeTpSize ${this.storeTpSize} and tpSize ${tpSize} must have one sign`, {
        storeTpSize: this.storeTpSize,
        tpSize,
      });
    this.headsPerStoreShard = Math.floor(numKvHeads / this.storeTpSize);
    this.localNumKvHeads = Math.floor(numKvHeads / tpSize);
    const first = this.tpRank * this.shardsPerRank;
    this.localShardIds = Object.freeze(Array.from({ length: this.shardsPerRank }, (_, i) => first + i));
  }

  /** Name of the order in memory, as it stands in the namespace of the keys. Mirrors `store_format`. */
  abstract get storeFormat(): string;

  /**
   * The namespace that the keys of this layout carry, for `metadata.storeNamespace`. Mirrors `shared_namespace`.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when called on this class, which has no format.
   */
  static sharedNamespace(_storeTpSize: number, _ppSize: number): string {
    throw noFormat();
  }

  /** Where the segments of each local shard lie: one list a shard. */
  get segmentTemplates(): readonly (readonly SegmentTemplate[])[] {
    const { bases, strides, sizes } = this.#templates;
    const width = this.#width;
    return this.localShardIds.map((_, shard) =>
      Array.from({ length: width }, (_, j) => ({
        base: bases[shard * width + j]!,
        stride: strides[shard * width + j]!,
        size: sizes[shard * width + j]!,
      })),
    );
  }

  keyPrefix(shardId: number): string {
    if (!this.localShardIds.includes(shardId)) throw notOwned(shardId, this.localShardIds);
    let prefix = this.#keyPrefixes.get(shardId);
    if (prefix === undefined) {
      prefix = PoolKey.buildPrefix(this.metadata, { tpRank: shardId });
      this.#keyPrefixes.set(shardId, prefix);
    }
    return prefix;
  }

  /** All shards of each PP rank among `rankNamespaces`: shards in order, PP ranks innermost and ascending. */
  lookupKeyPrefixes(rankNamespaces: readonly RankNamespace[]): string[] {
    const ppRanks = [...new Set(rankNamespaces.map(([, , , ppRank]) => ppRank))].sort((a, b) => a - b);
    return Array.from({ length: this.storeTpSize }, (_, tpRank) =>
      ppRanks.map((ppRank) => PoolKey.buildPrefix(this.metadata, { tpRank, ppRank })),
    ).flat();
  }

  /**
   * Tensors have the logical shape (blocks, local KV heads, tokens of a block, content); their strides say how that
   * lies in memory.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when the shape is another one, or a block is not packed in this layout's order.
   */
  registerKvCaches(tensors: readonly CacheTensor[], numBlocks: number): void {
    checkWhole("numBlocks", numBlocks, 0);
    const shards: SegmentTemplate[][] = this.localShardIds.map(() => []);
    for (const [index, tensor] of tensors.entries()) {
      checkCacheTensor(tensor, `tensor ${index}`);
      const { block, strides } = this.#blockStrides(tensor, numBlocks, `tensor ${index}`);
      for (const [shard, templates] of shards.entries())
        for (const { offset, size } of this.shardParts(BigInt(shard * this.headsPerStoreShard), strides))
          templates.push({
            base: checkUint64("segment address", tensor.address + offset),
            stride: checkUint64("block stride", block),
            size: checkUint64("segment size", size),
          });
    }
    this.#templates = segmentTemplates(shards.flat());
    this.haveBlocks(numBlocks);
  }

  /** Only full blocks are stored. */
  prepareValues(
    chunks: ChunkRanges,
    blockIds: ArrayLike<number>,
    shardIds?: ArrayLike<number>,
  ): SegmentTable {
    if (chunks.length === 0) return noSegments();
    if (shardIds !== undefined) checkShardCount(chunks, shardIds);
    this.#checkFullBlocks(chunks);
    const shards = shardIds === undefined ? this.shardsOfEveryChunk().length : 1;
    const localShards = shardIds === undefined ? undefined : this.#localShards(shardIds);
    const rows = blockRows(chunks, blockIds, this.blockSize);
    this.checkBlocks(rows);
    const highest = checkedHighest(this.#templates, rows, UINT64_END);
    if (localShards === undefined || this.shardsPerRank === 1)
      return segmentsOfAllShards(rows, this.#templates, shards, highest);
    return segmentsOfOneShard(rows, this.#templates, this.#width, localShards);
  }

  /** Whether a block with these strides is packed in this layout's order. Mirrors `_has_packed_strides`. */
  protected abstract isPacked(strides: BlockStrides): boolean;

  /** The parts of a block that hold the heads of a shard, the first of which is `firstHead`. Mirrors `_shard_segments`. */
  protected abstract shardParts(firstHead: bigint, strides: BlockStrides): Iterable<BlockPart>;

  /** Segments of one object. */
  get #width(): number {
    return this.shardsPerRank === 0 ? 0 : this.#templates.bases.length / this.shardsPerRank;
  }

  #blockStrides(
    tensor: CacheTensor,
    numBlocks: number,
    name: string,
  ): { block: bigint; strides: BlockStrides } {
    const { shape, strides, elementSize } = tensor;
    const wanted = [numBlocks, this.localNumKvHeads, this.blockSize];
    if (shape.length !== 4 || wanted.some((size, axis) => shape[axis] !== size))
      throw layoutError(
        `${name} has the shape ${describe(shape)}; a TP-shared layout needs (blocks, local KV heads, block size, content) = (${wanted.join(", ")}, any)`,
        { shape, wanted },
      );
    const element = BigInt(elementSize);
    const [block, head, token, contentStride] = strides.map((stride) => BigInt(stride) * element);
    const blockStrides = { head: head!, token: token!, content: BigInt(shape[3]!) * element };
    if (contentStride !== element || !this.isPacked(blockStrides))
      throw layoutError(
        `${name} with shape ${describe(shape)} and strides ${describe(strides)} is not packed as ${this.storeFormat}`,
        { shape, strides, storeFormat: this.storeFormat },
      );
    return { block: block!, strides: blockStrides };
  }

  #checkFullBlocks({ length, starts, ends }: ChunkRanges): void {
    for (let i = 0; i < length; i++)
      if (ends[i]! - starts[i]! !== this.blockSize)
        throw layoutError(
          `chunk ${i} has ${ends[i]! - starts[i]!} tokens, from ${starts[i]} to ${ends[i]}; a TP-shared layout stores full blocks of ${this.blockSize}`,
          { chunk: i, start: starts[i], end: ends[i], blockSize: this.blockSize },
        );
  }

  /** Shard ids counted from the first one of this rank. */
  #localShards(shardIds: ArrayLike<number>): Uint32Array {
    const first = this.localShardIds[0];
    const localShards = new Uint32Array(shardIds.length);
    for (let i = 0; i < shardIds.length; i++) {
      const local = first === undefined ? -1 : shardIds[i]! - first;
      if (!Number.isInteger(local) || local < 0 || local >= this.shardsPerRank)
        throw notOwned(shardIds[i], this.localShardIds);
      localShards[i] = local;
    }
    return localShards;
  }
}

/** A TP size: vLLM divides by it, and the shards of a rank are listed. */
function divisor(name: string, value: number): number {
  if (checkWhole(name, value) === 0 || Math.abs(value) > MAX_TP_SIZE)
    throw layoutError(`${name} is ${value}; it must be from 1 to ${MAX_TP_SIZE}`, { [name]: value });
  return value;
}

function noFormat(): Error {
  return layoutError("TPShardedStoreLayout has no store format; use LBHNCStoreLayout or LBNHCStoreLayout");
}
