import type { LayerSpec } from "../../coordinator/spec/kv-cache-spec.js";
import type { BlockStored } from "../kv-events.js";

/** What events have told of a KV cache group. */
export interface LearnedGroup {
  /** As vLLM's `KVCacheSpecKind` names it; null where no event said it. */
  readonly kind: string | null;
  /** Tokens of its sliding window. */
  readonly slidingWindow: number | null;
  /** Tokens of one of its blocks; 0 while only events without a size have come. */
  readonly blockSize: number;
}

/** What is known of a group after one more event; the same object where the event says nothing new. */
export function learned(
  known: LearnedGroup | undefined,
  event: BlockStored,
  blockSize: number,
): LearnedGroup {
  const kind = event.kvCacheSpecKind ?? known?.kind ?? null;
  const slidingWindow =
    event.kvCacheSpecKind === null ? (known?.slidingWindow ?? null) : event.kvCacheSpecSlidingWindow;
  if (
    known !== undefined &&
    known.kind === kind &&
    known.slidingWindow === slidingWindow &&
    known.blockSize === blockSize
  )
    return known;
  return { kind, slidingWindow, blockSize };
}

/** Whether a kind is that of recurrent states. */
export function isMambaKind(kind: string | null): boolean {
  return kind === "mamba";
}

/**
 * How a learned group is searched. What can't be known is taken as full attention, which needs every block: an index may
 * say less than an engine has, never more.
 *
 * @param chunkSize tokens of an attention chunk, which no event tells.
 */
export function learnedSpec(
  { kind, slidingWindow, blockSize }: LearnedGroup,
  chunkSize: number | undefined,
): LayerSpec {
  switch (kind) {
    case "mla_attention":
      return { kind: "mla", blockSize };
    case "sliding_window":
    case "sliding_window_mla":
      if (slidingWindow === null || slidingWindow < 1) break;
      return { kind: kind === "sliding_window" ? "swa" : "swa_mla", blockSize, slidingWindow };
    case "mamba":
      return { kind: "mamba", blockSize, mambaCacheMode: "align" };
    case "chunked_local_attention":
      if (chunkSize === undefined) break;
      return { kind: "chunked_local", blockSize, attentionChunkSize: chunkSize };
  }
  return { kind: "full", blockSize };
}
