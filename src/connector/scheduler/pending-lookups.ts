import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";
import { configChecks, configError } from "../../coordinator/checks.js";
import { describe } from "../../errors.js";
import type { BlockHashSequence } from "../../hash/blob-block-hashes.js";
import { LONGEST_MS } from "../../store/shared/deadline.js";
import { limited } from "../call-limit.js";
import type { LookupClient, LookupClientAnswer } from "./lookup-client.js";

/** What answers lookups: a `MooncakeStoreWorker` of the same process, for one. */
export interface LookupSource {
  /** How much of a prompt is stored; with a `failure` nothing is known of it. */
  lookup(numTokens: number, blockHashes: BlockHashSequence): Promise<LookupClientAnswer>;
  /** Empties the store. */
  reset(): Promise<boolean>;
}

/** How lookups are waited for. */
export interface PendingLookupsOptions {
  /** Milliseconds that the source may take for one; then it has failed. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
}

interface PendingLookup {
  done: Promise<void>;
  result: LookupClientAnswer | undefined;
}

/**
 * Lookups whose answers the scheduler fetches in a later step. An answer is kept until it is fetched or its request
 * discarded. A source that rejects, gives nothing or takes too long is a `failure`, and never a miss.
 */
export class PendingLookups implements LookupClient {
  readonly #source: LookupSource;
  readonly #timeoutMs: number;
  readonly #pending = new Map<string, PendingLookup>();

  /** @throws MooncakeKvError `ERR_CONFIG` for a time that is no whole number of milliseconds. */
  constructor(source: LookupSource, options: PendingLookupsOptions = {}) {
    const { timeoutMs = 5_000 } = configChecks.names("PendingLookups", options, { timeoutMs: 1 });
    if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > LONGEST_MS)
      throw configError(`timeoutMs is ${describe(timeoutMs)}; it is a whole number of 1 to ${LONGEST_MS}`, {
        timeoutMs,
      });
    this.#source = source;
    this.#timeoutMs = timeoutMs;
  }

  /** Requests whose answer has not been fetched. */
  get pending(): readonly string[] {
    return [...this.#pending.keys()];
  }

  /** Null until the answer is there; then the answer, once. */
  lookupAsync(
    reqId: string,
    numTokens: number,
    blockHashes: readonly Uint8Array[],
  ): LookupClientAnswer | null {
    const lookup = this.#pending.get(reqId) ?? this.#begin(reqId, numTokens, [...blockHashes]);
    if (lookup.result === undefined) return null;
    this.#pending.delete(reqId);
    return lookup.result;
  }

  /** Resolves once every lookup that is pending now has its answer. */
  async settled(): Promise<void> {
    await Promise.all(Array.from(this.#pending.values(), ({ done }) => done));
  }

  discard(reqId: string): void {
    this.#pending.delete(reqId);
  }

  reset(): Promise<boolean> {
    return this.#source.reset();
  }

  #begin(reqId: string, numTokens: number, blockHashes: readonly Uint8Array[]): PendingLookup {
    const lookup: PendingLookup = { done: Promise.resolve(), result: undefined };
    this.#pending.set(reqId, lookup);
    lookup.done = this.#answer(numTokens, blockHashes).then((result) => {
      lookup.result = result;
    });
    return lookup;
  }

  async #answer(numTokens: number, blockHashes: readonly Uint8Array[]): Promise<LookupClientAnswer> {
    const none: MooncakeLookupResult = { hitLength: 0, tailKeyBoundaries: [] };
    try {
      const result: LookupClientAnswer | null | undefined = await limited(
        { ms: this.#timeoutMs },
        "the lookup",
        () => this.#source.lookup(numTokens, blockHashes),
      );
      return result ?? { ...none, failure: { error: configError(`the lookup gave ${describe(result)}`) } };
    } catch (error) {
      return { ...none, failure: { error } };
    }
  }
}
