import { tpSharedNamespace } from "./store-namespace.js";
import { type BlockPart, type BlockStrides, TPShardedStoreLayout } from "./tp-sharded-store-layout.js";

const STORE_FORMAT = "tp_shared_lbhnc";

/**
 * TP-shared layout for caches that are head-major inside a block: the heads of a shard are one segment a layer.
 * Mirrors vLLM's `LBHNCStoreLayout`.
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
