import type { MooncakeLookupResult } from "../../generated/typescript/index.js";
import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import type { LookupClient } from "./lookup-client.js";

/** What answers lookups: a `MooncakeStoreWorker` of the same process, for one. */
export interface LookupSource {
  /** How much of a prompt is stored. */
  lookup(numTokens: number, blockHashes: BlockHashSequence): Promise<MooncakeLookupResult>;
  /** Empties the store. */
  reset(): Promise<boolean>;
}

interface PendingLookup {
  readonly done: Promise<void>;
  result: MooncakeLookupResult | undefined;
}

/**
 * Lookups whose answers the scheduler fetches in a later step. An answer is kept until it is fetched or its request
 * discarded; one that fails is a miss.
 */
export class PendingLookups implements LookupClient {
  readonly #source: LookupSource;
  readonly #pending = new Map<string, PendingLookup>();

  constructor(source: LookupSource) {
    this.#source = source;
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
  ): MooncakeLookupResult | null {
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
    const answer = async () => {
      try {
        lookup.result = await this.#source.lookup(numTokens, blockHashes);
      } catch {
        lookup.result = { hitLength: 0, tailKeyBoundaries: [] };
      }
    };
    const lookup: { done: Promise<void>; result: MooncakeLookupResult | undefined } = {
      done: Promise.resolve(),
      result: undefined,
    };
    this.#pending.set(reqId, lookup);
    lookup.done = answer();
    return lookup;
  }
}
