import type * as FastCheck from "fast-check";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import type { CacheTensor } from "../../layout/cache-tensor.js";
import { kvCacheBytes, kvCacheTensors } from "../../layout/kv-cache-tensors.js";
import { LBHNCStoreLayout } from "../../layout/lbhnc-store-layout.js";
import { LBNHCStoreLayout } from "../../layout/lbnhc-store-layout.js";
import { RankLocalStoreLayout } from "../../layout/rank-local-store-layout.js";
import type { HashedChunks, StoreLayout } from "../../layout/store-layout.js";
import type { KvCacheLayout } from "../../layout/store-namespace.js";
import type { TPShardedStoreLayout } from "../../layout/tp-sharded-store-layout.js";
import fc from "../fast-check.js";

/** A layout with the memory that it was told of. */
export interface RegisteredLayout {
  readonly layout: StoreLayout;
  readonly tensors: readonly CacheTensor[];
  readonly numBlocks: number;
}

/** A model and a store that engines of several TP sizes share. */
export interface SharedModel {
  readonly layoutClass: typeof LBHNCStoreLayout | typeof LBNHCStoreLayout;
  /** Physical order of the caches. */
  readonly order: KvCacheLayout;
  readonly storeTpSize: number;
  readonly headsPerShard: number;
  readonly numLayers: number;
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly contentSize: number;
  readonly elementSize: number;
}

/** One rank of an engine: its layout, and its memory at an address of its own. */
export interface Rank {
  readonly layout: TPShardedStoreLayout;
  readonly tensors: readonly CacheTensor[];
  readonly baseAddress: bigint;
  readonly bytes: Uint8Array;
  /** First KV head of the model that the rank holds, and how many. */
  readonly firstHead: number;
  readonly numHeads: number;
}

/** Any shared model, small enough to look at every byte. Both layouts, layer-major and block-major. */
export function sharedModel(): FastCheck.Arbitrary<SharedModel> {
  const kinds = [
    [LBHNCStoreLayout, "LBHNC"],
    [LBHNCStoreLayout, "BLHNC"],
    [LBNHCStoreLayout, "LBNHC"],
    [LBNHCStoreLayout, "BLNHC"],
  ] as const;
  return fc
    .record({
      kind: fc.constantFrom(...kinds),
      storeTpSize: fc.constantFrom(1, 2, 3, 4, 6, 8),
      headsPerShard: fc.integer({ min: 1, max: 3 }),
      numLayers: fc.integer({ min: 1, max: 3 }),
      numBlocks: fc.integer({ min: 1, max: 4 }),
      blockSize: fc.integer({ min: 1, max: 4 }),
      contentSize: fc.integer({ min: 1, max: 3 }),
      elementSize: fc.constantFrom(1, 2),
    })
    .map(({ kind: [layoutClass, order], ...sizes }) => ({ layoutClass, order, ...sizes }));
}

/** A shared model with a TP size that divides its shards. */
export function sharedModelAndTp(): FastCheck.Arbitrary<[SharedModel, number]> {
  return sharedModel().chain((model) => fc.tuple(fc.constant(model), tpSizeOf(model)));
}

/** A shared model with two TP sizes, each of which divides its shards. */
export function sharedModelAndTwoTps(): FastCheck.Arbitrary<[SharedModel, number, number]> {
  return sharedModel().chain((model) => fc.tuple(fc.constant(model), tpSizeOf(model), tpSizeOf(model)));
}

function tpSizeOf({ storeTpSize }: SharedModel): FastCheck.Arbitrary<number> {
  const sizes = Array.from({ length: storeTpSize }, (_, i) => i + 1);
  return fc.constantFrom(...sizes.filter((size) => storeTpSize % size === 0));
}

/** The ranks of an engine of one TP size, each with memory of its own. */
export function engineRanks(model: SharedModel, tpSize: number): Rank[] {
  const numHeads = (model.storeTpSize * model.headsPerShard) / tpSize;
  const { numLayers, numBlocks, blockSize, contentSize, elementSize } = model;
  const shape = { layout: model.order, numLayers, numBlocks, numHeads, blockSize, contentSize, elementSize };
  return Array.from({ length: tpSize }, (_, tpRank) => {
    const baseAddress = 0x7f00_0000_0000n + BigInt(tpRank) * 0x10_0000_0000n;
    const layout = new model.layoutClass({
      metadata: {
        modelName: "m",
        tpRank,
        storeNamespace: model.layoutClass.sharedNamespace(model.storeTpSize, 1),
      },
      blockSize: model.blockSize,
      tpSize,
      tpRank,
      storeTpSize: model.storeTpSize,
      numKvHeads: numHeads * tpSize,
    });
    const tensors = kvCacheTensors(shape, baseAddress);
    layout.registerKvCaches(tensors, model.numBlocks);
    const bytes = new Uint8Array(kvCacheBytes(shape));
    return { layout, tensors, baseAddress, bytes, firstHead: tpRank * numHeads, numHeads };
  });
}

/** Where a byte of a rank's cache lies in its memory. `head` counts the rank's own heads. */
export function byteOffset(
  { tensors, baseAddress }: Rank,
  at: { layer: number; block: number; head: number; token: number; byte: number },
): number {
  const { address, strides, elementSize } = tensors[at.layer]!;
  const [block, head, token] = strides as [number, number, number];
  const elements = at.block * block + at.head * head + at.token * token;
  return Number(address - baseAddress) + elements * elementSize + at.byte;
}

/** One registered rank of a shared layout. */
export function registeredSharedLayout(): FastCheck.Arbitrary<RegisteredLayout> {
  return sharedModelAndTp().chain(([model, tpSize]) =>
    fc.constantFrom(...engineRanks(model, tpSize)).map(({ layout, tensors }) => ({
      layout,
      tensors,
      numBlocks: model.numBlocks,
    })),
  );
}

/**
 * A registered rank-local layout: one storage for all layers or one each, with or without room behind the blocks.
 * Two kinds of cache are left out, because vLLM describes their blocks with lengths that overlap and reach beyond the
 * storage: those in the order BHLNC, and block-major ones with room behind the blocks.
 */
export function registeredRankLocalLayout(): FastCheck.Arbitrary<RegisteredLayout> {
  return fc
    .record({
      layout: fc.constantFrom<KvCacheLayout>("LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC"),
      numLayers: fc.integer({ min: 1, max: 4 }),
      numBlocks: fc.integer({ min: 1, max: 9 }),
      numHeads: fc.integer({ min: 1, max: 4 }),
      blockSize: fc.integer({ min: 1, max: 16 }),
      contentSize: fc.integer({ min: 1, max: 8 }),
      elementSize: fc.constantFrom(1, 2, 4),
      separate: fc.boolean(),
      room: fc.integer({ min: 0, max: 64 }),
    })
    .map(({ separate, room, ...shape }) => {
      const address = 0x7f00_0000_0000n;
      const tensors = separate
        ? Array.from({ length: shape.numLayers }, (_, layer) =>
            kvCacheTensors({ ...shape, numLayers: 1 }, address + BigInt(layer) * 0x1000_0000n),
          ).flat()
        : kvCacheTensors(shape, address);
      const extra = separate || shape.layout.startsWith("L") ? BigInt(room) : 0n;
      const roomy = tensors.map((tensor) => ({ ...tensor, storageBytes: tensor.storageBytes + extra }));
      const layout = new RankLocalStoreLayout({ metadata: { modelName: "m" }, blockSize: shape.blockSize });
      layout.registerKvCaches(roomy, shape.numBlocks);
      return { layout, tensors: roomy, numBlocks: shape.numBlocks };
    });
}

/** Full-block chunks of a request with a block for each, in any order, some of them twice. */
export function blockTable({ layout, numBlocks }: RegisteredLayout): FastCheck.Arbitrary<{
  readonly chunks: HashedChunks;
  readonly blockIds: readonly number[];
}> {
  return fc
    .array(fc.nat(numBlocks - 1), { minLength: 1, maxLength: 6 })
    .chain((blockIds) =>
      fc
        .array(fc.nat(blockIds.length - 1), { minLength: 1, maxLength: 6 })
        .map((indexes) => ({ chunks: fullChunks(indexes, layout.blockSize), blockIds })),
    );
}

/** Full-block chunks at the given block indexes, each with a hash of its own. */
export function fullChunks(indexes: readonly number[], blockSize: number): HashedChunks {
  const hashes = BlobBlockHashes.from(indexes.map((index, i) => Uint8Array.of(i, index, 0xab)));
  return {
    length: indexes.length,
    starts: indexes.map((index) => index * blockSize),
    ends: indexes.map((index) => (index + 1) * blockSize),
    hash: (index) => hashes.at(index)!,
    hashes: () => hashes,
  };
}
