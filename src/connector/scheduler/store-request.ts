/**
 * A request of the engine, as the scheduler side reads it. It is read anew in every step, so the engine may hand in a
 * live object whose members change. Mirrors what the connector uses of vLLM's `Request`.
 */
export interface StoreRequest {
  readonly requestId: string;
  readonly numPromptTokens: number;
  /** Tokens of the prompt and those generated so far. */
  readonly numTokens: number;
  /** Tokens whose KV is computed. */
  readonly numComputedTokens: number;
  /** One hash a full hash block, in token order. */
  readonly blockHashes: readonly Uint8Array[];
  /** All `numTokens` tokens. Read only where KV events are on. */
  readonly allTokenIds: ArrayLike<number>;
}

/** Tokens `[start, end)`, or as many of them as there are. */
export function sliceTokens(tokenIds: ArrayLike<number>, start: number, end: number): number[] {
  const count = Math.max(0, Math.min(end, tokenIds.length) - start);
  return Array.from({ length: count }, (_, index) => tokenIds[start + index]!);
}
