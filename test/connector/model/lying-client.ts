import type { LookupClient, LookupClientAnswer } from "../../../src/connector/scheduler/lookup-client.js";
import type { PendingLookups } from "../../../src/connector/scheduler/pending-lookups.js";
import type { Random } from "./random.js";
import { BLOCK_TOKENS } from "./truth.js";

type Lie = "throw" | "silent" | "hit" | "tail" | "failure" | "promise";

const LIES: Readonly<Record<Lie, number>> = { throw: 2, silent: 1, hit: 8, tail: 12, failure: 3, promise: 1 };

/** A lookup client that breaks every promise of one: it throws, never answers, and says what can't be so. */
export class LyingClient implements LookupClient {
  /** The share of questions that it does not answer honestly. */
  dishonesty: number = 0;
  /** Whether it may leave questions without an answer. */
  maySayNothing: boolean = true;
  /** Answers that can't be so, and failures, throws included. */
  readonly said: { impossible: number; failures: number } = { impossible: 0, failures: 0 };
  readonly #lookups: PendingLookups;
  readonly #random: Random;
  readonly #silent = new Set<string>();

  constructor(lookups: PendingLookups, random: Random) {
    this.#lookups = lookups;
    this.#random = random;
  }

  lookupAsync(
    reqId: string,
    numTokens: number,
    blockHashes: readonly Uint8Array[],
  ): LookupClientAnswer | null {
    if (this.#silent.has(reqId)) return null;
    const lie = this.#random.chance(this.dishonesty) ? this.#random.weighted(LIES) : undefined;
    if (lie === "throw") {
      this.said.failures++;
      throw new Error("thrown by the client");
    }
    if (lie === "silent" && this.maySayNothing) {
      this.#silent.add(reqId);
      return null;
    }
    const honest = this.#lookups.lookupAsync(reqId, numTokens, blockHashes);
    if (honest === null) return null;
    if (lie === undefined || lie === "silent") {
      if (honest.failure) this.said.failures++;
      return honest;
    }
    if (lie === "failure") {
      this.said.failures++;
      return { hitLength: BLOCK_TOKENS, tailKeyBoundaries: [], failure: { error: new Error("an outage") } };
    }
    if (honest.failure) {
      this.said.failures++;
      return honest;
    }
    if (lie === "tail" && honest.hitLength === 0) return honest;
    this.said.impossible++;
    if (lie === "promise") return Promise.reject(new Error("a promise")) as never;
    return lie === "hit" ? this.#impossibleHit(numTokens) : this.#impossibleTail(honest);
  }

  discard(reqId: string): void {
    this.#silent.delete(reqId);
    this.#lookups.discard(reqId);
    if (this.#random.chance(this.dishonesty)) throw new Error("thrown by discard");
  }

  reset(): Promise<boolean> {
    return this.#lookups.reset();
  }

  #impossibleHit(numTokens: number): LookupClientAnswer {
    const beyond = (Math.floor(numTokens / BLOCK_TOKENS) + 1) * BLOCK_TOKENS;
    const hits = [Number.NaN, -16, beyond, beyond + 160, 7, 16.5, undefined, null, "16", 16n, Infinity];
    return { hitLength: this.#random.pick(hits) as number, tailKeyBoundaries: [] };
  }

  #impossibleTail({ hitLength, tailKeyBoundaries }: LookupClientAnswer): LookupClientAnswer {
    const tails = this.#random.pick([
      [{ groupId: 9, numTokens: hitLength }],
      [{ groupId: -1, numTokens: hitLength }],
      [{ groupId: 0, numTokens: hitLength - BLOCK_TOKENS }],
      [{ groupId: 0, numTokens: hitLength + BLOCK_TOKENS }],
      [{ groupId: 0, numTokens: hitLength + 1 }],
      [{ groupId: 0, numTokens: Number.NaN }],
      [...tailKeyBoundaries, ...tailKeyBoundaries],
      [null],
      7,
    ]);
    return { hitLength, tailKeyBoundaries: tails as never };
  }
}
