import { tpSharedNamespace } from "./store-namespace.js";
import { type BlockPart, type BlockStrides, TPShardedStoreLayout } from "./tp-sharded-store-layout.js";

const STORE_FORMAT = "tp_shared_lbhnc";

/**
 * TP-shared layout for caches that are head-major inside a block: the heads of a shard are one segment a layer.
 * Mirrors vLLM's `LBHNCStoreLayout`.
 *
 * @example
 * ```ts
 * import { kvCacheBytes, kvCacheTensors, LBHNCStoreLayout } from "mooncake-kv";
 *
 * const cache = { layout: "LBHNC", numLayers: 2, numBlocks: 8, numHeads: 2, blockSize: 16, contentSize: 128, elementSize: 2 } as const;
 * const metadata = { modelName: "Qwen3-8B", storeNamespace: LBHNCStoreLayout.sharedNamespace(4, 1) };
 * const layout = new LBHNCStoreLayout({ metadata, blockSize: 16, tpSize: 4, tpRank: 0, storeTpSize: 4, numKvHeads: 8 });
 * layout.registerKvCaches(kvCacheTensors(cache, 0x7f0000000000n), cache.numBlocks);
 * console.log(kvCacheBytes(cache), layout.localShardIds);
 * ```
 */
export class LBHNCStoreLayout extends TPShardedStoreLayout {
  /** The format's name in keys. */
  get storeFormat(): string {
    return STORE_FORMAT;
  }

  /** The namespace of its keys: `@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc`. */
  static override sharedNamespace(storeTpSize: number, ppSize: number): string {
    return tpSharedNamespace(storeTpSize, ppSize, STORE_FORMAT);
  }

  protected isPacked({ head, token, content }: BlockStrides): boolean {
    return token === content && head === BigInt(this.blockSize) * content;
  }

  protected *shardParts(firstHead: bigint, { head }: BlockStrides): Iterable<BlockPart> {
    yield { offset: firstHead * head, size: BigInt(this.headsPerStoreShard) * head };
  }
}
