import type { ChunkSpans } from "../../chunk/chunk-spans.js";
import type { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { KeyTable } from "../../key/key-table.js";
import { modelBasename } from "../../key/model-name.js";
import { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import { kvCacheBytes, kvCacheTensors } from "../../layout/kv-cache-tensors.js";
import { LBHNCStoreLayout } from "../../layout/lbhnc-store-layout.js";
import type { Arena } from "../../store/arena.js";
import type { KvStore } from "../../store/kv-store.js";
import { countDifferences, fillPattern, type PatternSlice } from "./kv-pattern.js";
import { type DemoModel, rankCacheShape } from "./model.js";

/** How an engine of the demo is built. */
export interface DemoEngineOptions {
  readonly store: KvStore;
  readonly model: DemoModel;
  readonly tpSize: number;
  /** TP size that the stored objects are cut for. */
  readonly storeTpSize: number;
  /** Blocks of its KV cache. */
  readonly numBlocks: number;
  /** What keeps its keys apart from those of real engines. */
  readonly cachePrefix: string;
}

/** What a save or a load moved. */
export interface Transfer {
  readonly objects: number;
  readonly bytes: bigint;
  readonly seconds: number;
}

interface Rank {
  readonly arena: Arena;
  readonly layout: LBHNCStoreLayout;
  readonly database: ChunkedTokenDatabase;
  readonly slices: readonly PatternSlice[];
}

/** The KV cache side of an engine: one arena and one layout a TP rank, in this process. */
export class DemoEngine {
  readonly tpSize: number;
  readonly numBlocks: number;
  readonly #store: KvStore;
  readonly #ranks: readonly Rank[];

  private constructor(options: DemoEngineOptions, ranks: readonly Rank[]) {
    this.tpSize = options.tpSize;
    this.numBlocks = options.numBlocks;
    this.#store = options.store;
    this.#ranks = ranks;
  }

  /** Allocates and registers the caches of all ranks. */
  static async create(options: DemoEngineOptions): Promise<DemoEngine> {
    const ranks: Rank[] = [];
    for (let tpRank = 0; tpRank < options.tpSize; tpRank++) ranks.push(await createRank(options, tpRank));
    return new DemoEngine(options, ranks);
  }

  /** The chunks of a prompt's full blocks. */
  chunks(tokens: Uint32Array, hashes: BlobBlockHashes): ChunkSpans {
    const { database } = this.#ranks[0]!;
    return database.chunks(Math.floor(tokens.length / database.blockSize) * database.blockSize, hashes);
  }

  /** First key of the first rank and last key of the last one. */
  keys(chunks: ChunkSpans): readonly [first: string, last: string] {
    const last = this.#ranks.at(-1)!.layout.keys(chunks);
    return [this.#ranks[0]!.layout.keys(chunks).at(0) ?? "", last.at(last.length - 1) ?? ""];
  }

  /** Stands in for the prefill: fills the blocks with what the model would have computed. */
  async compute(tokens: Uint32Array, blockIds: readonly number[]): Promise<void> {
    for (const { slices } of this.#ranks)
      for (const slice of slices) {
        fillPattern(slice, tokens, blockIds);
        await new Promise(setImmediate);
      }
  }

  /** Stores the chunks, each rank its shards. @throws MooncakeKvError `ERR_STORE` when a key failed. */
  async save(chunks: ChunkSpans, blockIds: readonly number[]): Promise<Transfer> {
    return this.#transfer(chunks, async (rank) => {
      const segments = rank.layout.prepareValues(chunks, blockIds);
      (await this.#store.putFrom(rank.layout.keys(chunks), segments)).throwIfFailed();
      return segments.totalBytes();
    });
  }

  /** Loads the chunks, each rank its shards. @throws MooncakeKvError `ERR_STORE` when a key failed. */
  async load(chunks: ChunkSpans, blockIds: readonly number[]): Promise<Transfer> {
    return this.#transfer(chunks, async (rank) => {
      const segments = rank.layout.prepareValues(chunks, blockIds);
      (await this.#store.getInto(rank.layout.keys(chunks), segments)).throwIfFailed();
      return segments.totalBytes();
    });
  }

  /** How many tokens from the beginning are in the store: blocks of which every shard exists. */
  async lookup(chunks: ChunkSpans): Promise<number> {
    const { layout, database } = this.#ranks[0]!;
    const ranks = Array.from({ length: this.tpSize }, (_, tpRank) => [tpRank, 0, 0, 0] as const);
    const prefixes = layout.lookupKeyPrefixes(ranks);
    const exists = await this.#store.exists(KeyTable.fromPrefixes(prefixes, chunks.hashes()));
    const firstMissing = exists.codes.findIndex((code) => code !== 1);
    return (
      (firstMissing < 0 ? chunks.length : Math.floor(firstMissing / prefixes.length)) * database.blockSize
    );
  }

  /** Number of 32-bit words that differ from what the model would have computed for these tokens. */
  async verify(tokens: Uint32Array, blockIds: readonly number[]): Promise<number> {
    let differences = 0;
    for (const { slices } of this.#ranks)
      for (const slice of slices) {
        differences += countDifferences(slice, tokens, blockIds);
        await new Promise(setImmediate);
      }
    return differences;
  }

  /** Gives the caches back. */
  async close(): Promise<void> {
    for (const { arena } of this.#ranks) await arena.close();
  }

  async #transfer(chunks: ChunkSpans, run: (rank: Rank) => Promise<bigint>): Promise<Transfer> {
    const started = performance.now();
    // All end before one that failed is told: nothing is under way when the caches are given back.
    const ranks = await Promise.allSettled(this.#ranks.map(run));
    const bytes = ranks.map((rank) => {
      if (rank.status === "rejected") throw rank.reason;
      return rank.value;
    });
    return {
      objects: this.#ranks.reduce((sum, { layout }) => sum + layout.localShardIds.length * chunks.length, 0),
      bytes: bytes.reduce((sum, count) => sum + count, 0n),
      seconds: (performance.now() - started) / 1000,
    };
  }
}

async function createRank(options: DemoEngineOptions, tpRank: number): Promise<Rank> {
  const { model, tpSize, storeTpSize, numBlocks, store, cachePrefix } = options;
  const shape = rankCacheShape(model, tpSize, numBlocks);
  const arena = await store.createArena(kvCacheBytes(shape));
  const metadata = {
    cachePrefix,
    modelName: modelBasename(model.model),
    storeNamespace: LBHNCStoreLayout.sharedNamespace(storeTpSize, 1),
  };
  const { blockSize, numKvHeads } = model;
  const layout = new LBHNCStoreLayout({ metadata, blockSize, tpSize, tpRank, storeTpSize, numKvHeads });
  const tensors = kvCacheTensors(shape, arena.baseAddress);
  layout.registerKvCaches(tensors, numBlocks);
  const layerWords = arena.bytes.length / model.numLayers / 4;
  const { buffer, byteOffset } = arena.bytes;
  return {
    arena,
    layout,
    database: new ChunkedTokenDatabase({ metadata, blockSize, storeLayout: layout }),
    slices: tensors.map((_, layer) => ({
      words: new Uint32Array(buffer, byteOffset + layer * layerWords * 4, layerWords),
      layer,
      firstHead: tpRank * shape.numHeads,
      numHeads: shape.numHeads,
      blockSize,
      contentWords: (shape.contentSize * shape.elementSize) / 4,
    })),
  };
}
