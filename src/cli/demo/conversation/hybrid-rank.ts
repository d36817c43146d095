import { MooncakeStoreWorker } from "../../../connector/worker/mooncake-store-worker.js";
import type { WorkerConfig } from "../../../connector/worker/worker-config.js";
import { kvCacheBytes, kvCacheTensors } from "../../../layout/kv-cache-tensors.js";
import type { Arena } from "../../../store/arena.js";
import type { KvStore } from "../../../store/kv-store.js";
import { countDifferences, fillPattern, type PatternSlice, poison, type TokenSpan } from "../kv-pattern.js";
import { type DemoModel, hybridCacheShape } from "../model.js";

/** What a rank is built of. */
export interface HybridRankOptions {
  readonly store: KvStore;
  readonly model: DemoModel;
  readonly config: WorkerConfig & { readonly tpSize: number; readonly tpRank: number };
  readonly numBlocks: number;
}

/** One rank of an engine: its KV cache, and its half of the connector. */
export class HybridRank {
  readonly worker: MooncakeStoreWorker;
  readonly #arena: Arena;
  /** The layers of each group. */
  readonly #groups: readonly (readonly PatternSlice[])[];

  private constructor(
    worker: MooncakeStoreWorker,
    arena: Arena,
    groups: readonly (readonly PatternSlice[])[],
  ) {
    this.worker = worker;
    this.#arena = arena;
    this.#groups = groups;
  }

  /** Allocates the cache and registers it. */
  static async create({ store, model, config, numBlocks }: HybridRankOptions): Promise<HybridRank> {
    const shape = hybridCacheShape(model, config.tpSize, numBlocks);
    const arena = await store.createArena(kvCacheBytes(shape));
    try {
      const worker = new MooncakeStoreWorker({ config, store, registerMemory: false });
      await worker.registerKvCaches(kvCacheTensors(shape, arena.baseAddress), numBlocks);
      const words = arena.bytes.length / 4 / shape.numLayers;
      const slice = (tensor: number, group: number): PatternSlice => ({
        words: new Uint32Array(arena.bytes.buffer, arena.bytes.byteOffset + tensor * words * 4, words),
        layer: 2 * tensor + group,
        firstHead: config.tpRank * shape.numHeads,
        numHeads: shape.numHeads,
        blockSize: shape.blockSize,
        contentWords: (shape.contentSize * shape.elementSize) / 4,
      });
      const tensors = Array.from({ length: shape.numLayers }, (_, tensor) => tensor);
      const groups = config.kvCacheGroups.map((_, group) => tensors.map((tensor) => slice(tensor, group)));
      return new HybridRank(worker, arena, groups);
    } catch (error) {
      await arena.close();
      throw error;
    }
  }

  /** Stands in for the model: fills the blocks with what it would have computed for a span of tokens. */
  async compute(tokens: ArrayLike<number>, blockIds: readonly number[][], span: TokenSpan): Promise<void> {
    for (const [group, slices] of this.#groups.entries()) {
      for (const slice of slices) fillPattern(slice, tokens, blockIds[group]!, span);
      await new Promise(setImmediate);
    }
  }

  /** Number of 32-bit words that are not what the model would have computed, in the blocks that there are. */
  async verify(tokens: ArrayLike<number>, blockIds: readonly number[][], end: number): Promise<number> {
    let differences = 0;
    for (const [group, slices] of this.#groups.entries())
      for (const slice of slices) {
        differences += countDifferences(slice, tokens, blockIds[group]!, { start: 0, end });
        await new Promise(setImmediate);
      }
    return differences;
  }

  /** Spoils blocks that are about to be filled. */
  poison(blockIds: readonly number[]): void {
    for (const slice of this.#groups[0]!) poison(slice, blockIds);
  }

  /** Waits for what is under way and gives the cache back. */
  async close(): Promise<void> {
    await this.worker.close();
    await this.#arena.close();
  }
}
