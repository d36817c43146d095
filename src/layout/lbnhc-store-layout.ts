import { tpSharedNamespace } from "./store-namespace.js";
import { type BlockPart, type BlockStrides, TPShardedStoreLayout } from "./tp-sharded-store-layout.js";

const STORE_FORMAT = "tp_shared_lbnhc";

/**
 * TP-shared layout for caches that are token-major inside a block, vLLM's default: the heads of a shard are one
 * segment a token and layer, so prefer LBHNC where the attention backend allows it. Mirrors vLLM's `LBNHCStoreLayout`.
 */
export class LBNHCStoreLayout extends TPShardedStoreLayout {
  /** The format's name in keys. */
  get storeFormat(): string {
    return STORE_FORMAT;
  }

  /** The namespace of its keys: `@store_tp:4@store_pp:1@store_format:tp_shared_lbnhc`. */
  static override sharedNamespace(storeTpSize: number, ppSize: number): string {
    return tpSharedNamespace(storeTpSize, ppSize, STORE_FORMAT);
  }

  protected isPacked({ head, token, content }: BlockStrides): boolean {
    return head === content && token === BigInt(this.localNumKvHeads) * content;
  }

  protected *shardParts(firstHead: bigint, { head, token, content }: BlockStrides): Iterable<BlockPart> {
    const size = BigInt(this.headsPerStoreShard) * content;
    for (let index = 0n; index < this.blockSize; index++)
      yield { offset: index * token + firstHead * head, size };
  }
}
