import { describe } from "../errors.js";
import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import type { Release } from "../release.js";
import { configError, lookupError } from "./errors.js";
import { messageOf, type ParsedRequest, parseRequest } from "./lookup-frames.js";
import {
  encodeLookupResponse,
  MISS,
  type MooncakeLookupResult,
  RESP_ERR,
  RESP_OK,
} from "./lookup-protocol.js";
import { checkNames, releaseOption, wholeOption } from "./options.js";
import { tell } from "./tell.js";
import { TIMEOUT, TimeLimits } from "./time-limits.js";

/** What a handler found. `LookupResult` and `LookupAnswer` are such outcomes. */
export interface LookupOutcome extends MooncakeLookupResult {
  /**
   * Why nothing is known. vLLM's wire has no word for it, so that the engine is told a miss; the lookup counts as failed
   * and is reported.
   */
  readonly failure?: { readonly error: unknown } | undefined;
}

/** What the handlers of a reset are told. */
export interface ResetCall {
  /** Aborted when the time of the reset is over, and the engine has been told that it failed. */
  readonly signal: AbortSignal;
}

/** What answers the questions of an engine's scheduler. */
export interface LookupHandlers {
  /**
   * How much of a prompt is stored. What it throws, and a result with a `failure`, is answered as a miss.
   *
   * @param numTokens tokens of the prompt, as the scheduler sent them.
   * @param blockHashes a view of the message: copy what has to outlive the call.
   */
  lookup(numTokens: number, blockHashes: BlockHashSequence): LookupOutcome | PromiseLike<LookupOutcome>;
  /** Waits until every save under way is finished: a later one would fill the emptied store again. */
  drainSends?(call: ResetCall): void | PromiseLike<void>;
  /**
   * Removes every object of the store, also those under a lease. Without it a reset is refused.
   *
   * @returns nothing, `true`, or how many objects there were, as `KvStore.removeAll`. Whatever else it gives, a negative
   * code or `false` above all, says that the store was not emptied.
   */
  removeAll?(call: ResetCall): unknown;
}

/** How a responder answers. */
export interface LookupResponderOptions {
  /** Release of the engine that asks. The question does not tell it, but the answer depends on it. */
  readonly release?: Release | undefined;
  /** Milliseconds that a handler may take; then the question is answered as a miss. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds that a reset may take, the wait for saves included; then it has failed. Default: 30,000. */
  readonly resetTimeoutMs?: number | undefined;
  /** Told of everything that was answered as a miss or refused, with the reason. */
  readonly onProblem?: ((problem: LookupProblem) => void) | undefined;
}

/** The names of the options of a responder. */
export const RESPONDER_OPTIONS: readonly (keyof LookupResponderOptions)[] = [
  "release",
  "timeoutMs",
  "resetTimeoutMs",
  "onProblem",
];

/** Why a request was answered as a miss or refused. */
export interface LookupProblem {
  readonly reason:
    | "malformed"
    | "unknown"
    | "lookup-failed"
    | "lookup-timeout"
    | "reset-failed"
    | "reset-timeout";
  readonly message: string;
}

/** How many requests there were, by what became of them. */
export interface LookupCounters {
  /** Questions that a handler answered. */
  lookups: number;
  /** Of these, the ones that found something. */
  hits: number;
  /** Questions that could not be read. */
  malformed: number;
  /** Requests of an unknown kind. */
  unknown: number;
  /** Questions whose handler threw, gave a failure or nonsense, or took too long. */
  failedLookups: number;
  resets: number;
  failedResets: number;
}

/**
 * Answers lookup requests: frames in, one reply frame out. It has no socket. Whatever comes in and whatever the handlers
 * do, there is an answer, because an engine that gets none waits for ever; vLLM's own server ends in these cases.
 */
export class LookupResponder {
  readonly counters: LookupCounters = {
    lookups: 0,
    hits: 0,
    malformed: 0,
    unknown: 0,
    failedLookups: 0,
    resets: 0,
    failedResets: 0,
  };
  readonly #handlers: LookupHandlers;
  readonly #release: Release;
  readonly #timeoutMs: number;
  readonly #resetTimeoutMs: number;
  readonly #onProblem: ((problem: LookupProblem) => void) | undefined;
  readonly #limits = new TimeLimits();
  #resetting = false;
  #closed = false;

  /** @throws MooncakeKvError `ERR_CONFIG` for handlers without a lookup, and for options that can't be. */
  constructor(handlers: LookupHandlers, options: LookupResponderOptions = {}) {
    if (typeof handlers?.lookup !== "function")
      throw configError(`${describe(handlers)} has no function "lookup", which answers the questions`);
    checkNames("a lookup responder", options, RESPONDER_OPTIONS);
    const { onProblem } = options;
    if (onProblem !== undefined && typeof onProblem !== "function")
      throw configError(`onProblem is ${describe(onProblem)}; it is a function that takes a problem`);
    this.#handlers = handlers;
    this.#release = releaseOption(options.release);
    this.#timeoutMs = wholeOption("timeoutMs", options.timeoutMs, 10_000);
    this.#resetTimeoutMs = wholeOption("resetTimeoutMs", options.resetTimeoutMs, 30_000);
    this.#onProblem = onProblem;
  }

  /** Waits for no handler any more: what is under way is answered as if its time were over. */
  close(): void {
    this.#closed = true;
    this.#limits.end();
  }

  /** The reply to the frames of one request. Never rejects. */
  async respond(frames: readonly Uint8Array[]): Promise<Uint8Array> {
    const request = parseRequest(frames);
    switch (request.kind) {
      case "lookup":
        return this.#lookup(request);
      case "reset":
        return this.#reset();
      case "malformed":
        this.counters.malformed++;
        this.#report("malformed", request.problem);
        return encodeLookupResponse(MISS, this.#release);
      case "unknown":
        this.counters.unknown++;
        this.#report("unknown", `the first frame of ${frames.length} is no known request`);
        return RESP_ERR;
    }
  }

  async #lookup(request: ParsedRequest & { readonly kind: "lookup" }): Promise<Uint8Array> {
    try {
      const answer = this.#handlers.lookup(request.numTokens, request.blockHashes);
      const result = await this.#limits.inTime(Promise.resolve(answer), this.#timeoutMs);
      if (result === TIMEOUT) {
        this.counters.failedLookups++;
        this.#report("lookup-timeout", this.#tooLate("the answer", this.#timeoutMs));
        return encodeLookupResponse(MISS, this.#release);
      }
      if (result.failure) throw result.failure.error;
      // The older forms were answered with the length alone.
      const reply = encodeLookupResponse(result, request.form === "current" ? this.#release : "vllm-0.27");
      this.counters.lookups++;
      if (result.hitLength > 0) this.counters.hits++;
      return reply;
    } catch (error) {
      this.counters.failedLookups++;
      this.#report("lookup-failed", messageOf(error));
      return encodeLookupResponse(MISS, this.#release);
    }
  }

  async #reset(): Promise<Uint8Array> {
    this.counters.resets++;
    let reason: LookupProblem["reason"] = "reset-failed";
    try {
      if (this.#handlers.removeAll === undefined) throw lookupError("this server does not empty its store");
      // Two at a time would be no wrong, but whoever asks again and again would pile them up.
      if (this.#resetting) throw lookupError("an earlier reset is still under way");
      const removed = await this.#removed();
      if (removed === TIMEOUT) {
        reason = "reset-timeout";
        throw lookupError(this.#tooLate("the reset", this.#resetTimeoutMs));
      }
      if (!isSuccess(removed))
        throw lookupError(
          `removeAll gave ${describe(removed)}; where the store is empty it gives nothing, true or a number of objects`,
          { removed },
        );
      return RESP_OK;
    } catch (error) {
      this.counters.failedResets++;
      this.#report(reason, messageOf(error));
      return RESP_ERR;
    }
  }

  /** What the handlers of a reset give. When its time is over none of them is begun any more. */
  async #removed(): Promise<unknown> {
    const end = new AbortController();
    const { signal } = end;
    const work = async (): Promise<unknown> => {
      await this.#handlers.drainSends?.({ signal });
      signal.throwIfAborted();
      return this.#handlers.removeAll!({ signal });
    };
    this.#resetting = true;
    try {
      const removed = await this.#limits.inTime(work(), this.#resetTimeoutMs);
      if (removed === TIMEOUT) end.abort(lookupError("the time of the reset is over"));
      return removed;
    } finally {
      this.#resetting = false;
    }
  }

  #tooLate(what: string, ms: number): string {
    return this.#closed ? `the server was closed before ${what}` : `${what} took longer than ${ms} ms`;
  }

  #report(reason: LookupProblem["reason"], message: string): void {
    tell(this.#onProblem, { reason, message });
  }
}

/** Whether `removeAll` says that the store is empty now. */
function isSuccess(removed: unknown): boolean {
  if (typeof removed === "bigint") return removed >= 0n;
  if (typeof removed === "number") return Number.isSafeInteger(removed) && removed >= 0;
  return removed === undefined || removed === true;
}
