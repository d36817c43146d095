import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";
import { describe } from "../../errors.js";
import { createLookupResult } from "../../request/tail-key-boundary.js";
import { limited } from "../call-limit.js";
import type { ConnectorSettings } from "../connector-config.js";
import type { SchedulerTimeLimits } from "../time-limits.js";
import { type ConnectorLogger, callUser } from "../user-callbacks.js";
import { checkedHit } from "./checked-hit.js";
import type { LookupClient } from "./lookup-client.js";
import type { StoreRequest } from "./store-request.js";

/** What became of the lookups of a scheduler side. */
export interface LookupCounts {
  /** Lookups that found something. */
  hits: number;
  /** Lookups that found nothing. */
  misses: number;
  /** Lookups that said that they failed, or threw: nothing is known of the store. */
  failed: number;
  /** Answers that can't be so. */
  refused: number;
  /** Lookups that said nothing in time. */
  unanswered: number;
}

/** Told of a lookup that was given up: its request is not asked about again. */
const GIVEN_UP = Symbol("given up");

/**
 * The lookups of the scheduler side. Whatever its client does, a request gets an answer in bounded time, and one that can
 * be so: what fails, lies or says nothing is counted and logged, and the request goes on without a hit.
 */
export class SchedulerLookups {
  readonly counts: LookupCounts = { hits: 0, misses: 0, failed: 0, refused: 0, unanswered: 0 };
  readonly #client: LookupClient;
  readonly #settings: ConnectorSettings;
  readonly #limits: SchedulerTimeLimits;
  readonly #logger: Required<ConnectorLogger>;
  /** When requests were first asked about that have no answer yet, by `performance.now`. */
  readonly #asked = new Map<string, number | typeof GIVEN_UP>();

  /** @param logger must never throw. */
  constructor(
    client: LookupClient,
    settings: ConnectorSettings,
    limits: SchedulerTimeLimits,
    logger: Required<ConnectorLogger>,
  ) {
    this.#client = client;
    this.#settings = settings;
    this.#limits = limits;
    this.#logger = logger;
  }

  /** What the store holds of a request; null while that is not known, but no longer than `lookupMs`. */
  ask(request: StoreRequest): MooncakeLookupResult | null {
    const { requestId, numTokens, blockHashes } = request;
    if (this.#asked.get(requestId) === GIVEN_UP) return createLookupResult(0);
    let problem: keyof LookupCounts = "failed";
    try {
      const { lookupAsync } = this.#settings;
      const answer = this.#client.lookupAsync(requestId, numTokens, blockHashes, lookupAsync);
      if (answer === null) return this.#wait(requestId);
      this.#asked.delete(requestId);
      if (answer?.failure) throw answer.failure.error;
      problem = "refused";
      // A promise is no answer, and its rejection would be nobody's.
      callUser(() => answer);
      const found = checkedHit(this.#settings, request, answer);
      this.counts[found.hitLength > 0 ? "hits" : "misses"]++;
      return found;
    } catch (error) {
      this.#asked.delete(requestId);
      return this.#none(requestId, problem, error);
    }
  }

  /** A request was given blocks, has lost them or has ended: what was asked about it is no longer of interest. */
  forget(reqId: string): void {
    this.#asked.delete(reqId);
  }

  /** Tells the client that a request has ended. */
  discard(reqId: string): void {
    callUser(
      () => this.#client.discard(reqId),
      (error) => this.#logger.warn("a lookup could not be discarded", { reqId, error }),
    );
  }

  /** Empties the store. False also when the client fails or takes too long. */
  async reset(): Promise<boolean> {
    try {
      const done: unknown = await limited({ ms: this.#limits.resetMs }, "the reset", () =>
        this.#client.reset(),
      );
      if (done === true) return true;
      this.#logger.warn("the store was not emptied", { answer: describe(done) });
    } catch (error) {
      this.#logger.warn("the store was not emptied", { error });
    }
    return false;
  }

  #wait(reqId: string): MooncakeLookupResult | null {
    const now = performance.now();
    const since = this.#asked.get(reqId);
    if (typeof since !== "number") {
      this.#asked.set(reqId, now);
      return null;
    }
    if (now - since < this.#limits.lookupMs) return null;
    this.#asked.set(reqId, GIVEN_UP);
    this.discard(reqId);
    return this.#none(reqId, "unanswered", `no answer after ${this.#limits.lookupMs} ms`);
  }

  #none(reqId: string, problem: keyof LookupCounts, error: unknown): MooncakeLookupResult {
    this.counts[problem]++;
    this.#logger.warn("it is not known what the store holds of a request, which goes on without a hit", {
      reqId,
      problem,
      error,
    });
    return createLookupResult(0);
  }
}
