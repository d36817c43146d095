import type { ExternalBlockHash } from "../hash/external-block-hash.js";
import type { EventHashes } from "./event-hashes.js";

/** The names of vLLM's media. The Mooncake connector writes a lower-case `cpu`. */
export const MEDIUM_GPU = "GPU";
/** See `MEDIUM_GPU`. */
export const MEDIUM_CPU = "CPU";
/** See `MEDIUM_GPU`. */
export const MEDIUM_STORAGE = "STORAGE";

/** One value of the extra keys of a block: LoRA name, item and offset, cache salt, digest of embeddings. */
export type ExtraKey = null | boolean | number | bigint | string | Uint8Array | readonly ExtraKey[];

/** Blocks were stored. Mirrors vLLM's `BlockStored`. */
export interface BlockStored {
  readonly type: "BlockStored";
  /** The blocks that were stored; not always neighbours. */
  readonly blockHashes: EventHashes;
  /** The hash before the first of `blockHashes`; null for the first block of a prompt. */
  readonly parentBlockHash: ExternalBlockHash | null;
  /**
   * Tokens from the first of the blocks to the last, also of blocks between them that were not stored, so that they can't
   * be paired with `blockHashes`; empty where the publisher does not know them.
   */
  readonly tokenIds: Uint32Array;
  /** Tokens of one block of the group; 0 where the publisher does not say it. */
  readonly blockSize: number;
  readonly loraId: number | null;
  readonly medium: string | null;
  readonly loraName: string | null;
  /** One entry a block. */
  readonly extraKeys: readonly (readonly ExtraKey[] | null)[] | null;
  /** KV cache group. */
  readonly groupIdx: number | null;
  /** For example `full_attention`, `sliding_window`, `mamba`. */
  readonly kvCacheSpecKind: string | null;
  /** Tokens of the sliding window. */
  readonly kvCacheSpecSlidingWindow: number | null;
  /** `LOCAL` or `REMOTE` relative to the publisher. */
  readonly locality: string | null;
  /** The tier that made the event. */
  readonly ownership: string | null;
  readonly sessionId: string | null;
  /** Tokens beyond each block that its hash covers. */
  readonly lookaheadTokenIds: readonly (readonly number[])[] | null;
}

/** Blocks are gone. Mirrors vLLM's `BlockRemoved`. */
export interface BlockRemoved {
  readonly type: "BlockRemoved";
  readonly blockHashes: EventHashes;
  readonly medium: string | null;
  readonly groupIdx: number | null;
  readonly locality: string | null;
  readonly ownership: string | null;
}

/** Nothing is cached any more. Mirrors vLLM's `AllBlocksCleared`. */
export interface AllBlocksCleared {
  readonly type: "AllBlocksCleared";
}

/** An event of an engine's KV cache. */
export type KVCacheEvent = BlockStored | BlockRemoved | AllBlocksCleared;

/** Events that were published together. Mirrors vLLM's `KVEventBatch`. */
export interface KVEventBatch {
  /** Seconds since 1970. */
  readonly ts: number;
  readonly events: readonly KVCacheEvent[];
  /** Null until the publisher fills it in. */
  readonly dataParallelRank: number | null;
}

/** The members of a stored event that have to be given; the others are null or empty. */
export type BlockStoredInit = Partial<Omit<BlockStored, "type">> &
  Pick<BlockStored, "blockHashes" | "blockSize">;

/** A stored event; what is left out is null, and the list of tokens empty. */
export function blockStored(init: BlockStoredInit): BlockStored {
  return {
    type: "BlockStored",
    blockHashes: init.blockHashes,
    parentBlockHash: init.parentBlockHash ?? null,
    tokenIds: init.tokenIds ?? new Uint32Array(0),
    blockSize: init.blockSize,
    loraId: init.loraId ?? null,
    medium: init.medium ?? null,
    loraName: init.loraName ?? null,
    extraKeys: init.extraKeys ?? null,
    groupIdx: init.groupIdx ?? null,
    kvCacheSpecKind: init.kvCacheSpecKind ?? null,
    kvCacheSpecSlidingWindow: init.kvCacheSpecSlidingWindow ?? null,
    locality: init.locality ?? null,
    ownership: init.ownership ?? null,
    sessionId: init.sessionId ?? null,
    lookaheadTokenIds: init.lookaheadTokenIds ?? null,
  };
}

/** A removed event; what is left out is null. */
export function blockRemoved(
  init: Partial<Omit<BlockRemoved, "type">> & Pick<BlockRemoved, "blockHashes">,
): BlockRemoved {
  return {
    type: "BlockRemoved",
    blockHashes: init.blockHashes,
    medium: init.medium ?? null,
    groupIdx: init.groupIdx ?? null,
    locality: init.locality ?? null,
    ownership: init.ownership ?? null,
  };
}
