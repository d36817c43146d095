import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";

/** What a lookup client says. */
export interface LookupClientAnswer extends MooncakeLookupResult {
  /** Why nothing is known: the hit says nothing then, and the request goes on without one. */
  readonly failure?: { readonly error: unknown } | undefined;
}

/**
 * How the scheduler side asks how much of a request the store holds. `LookupKeyClient` asks a running engine so;
 * `PendingLookups` anything that answers with a promise, a worker of this process above all. A client may fail, lie, throw
 * or say nothing: that costs a hit and no more.
 */
export interface LookupClient {
  /**
   * What the store holds of a prompt, or null while that is not known: the scheduler asks again in a later step.
   *
   * @param nonBlock the option `lookup_async`: whether the caller would rather ask again than wait. A client that can't
   * wait ignores it.
   */
  lookupAsync(
    reqId: string,
    numTokens: number,
    blockHashes: readonly Uint8Array[],
    nonBlock: boolean,
  ): LookupClientAnswer | null;

  /** Forgets what was asked for a request that has ended, or whose answer nobody waits for any more. */
  discard(reqId: string): void;

  /** Empties the store. True when that was done. */
  reset(): boolean | Promise<boolean>;
}
