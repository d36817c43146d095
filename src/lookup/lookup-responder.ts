import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { messageOf, type ParsedRequest, parseRequest } from "./lookup-frames.js";
import {
  encodeLookupResponse,
  MISS,
  type MooncakeLookupResult,
  RESP_ERR,
  RESP_OK,
} from "./lookup-protocol.js";

/** What answers the questions of an engine's scheduler. */
export interface LookupHandlers {
  /**
   * How much of a prompt is stored. What it throws is answered as a miss.
   *
   * @param numTokens tokens of the prompt, as the scheduler sent them.
   * @param blockHashes a view of the message: copy what has to outlive the call.
   */
  lookup(
    numTokens: number,
    blockHashes: BlockHashSequence,
  ): MooncakeLookupResult | PromiseLike<MooncakeLookupResult>;
  /** Waits until every save under way is finished: a later one would fill the emptied store again. */
  drainSends?(): void | PromiseLike<void>;
  /** Removes every object of the store, also those under a lease. Without it a reset is refused. */
  removeAll?(): unknown;
}

/** How a responder answers. */
export interface LookupResponderOptions {
  /** Release of the engine that asks. The question does not tell it, but the answer depends on it. */
  readonly release?: Release | undefined;
  /** Milliseconds that a handler may take; then the question is answered as a miss. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Told of everything that was answered as a miss or refused, with the reason. */
  readonly onProblem?: ((problem: LookupProblem) => void) | undefined;
}

/** Why a request was answered as a miss or refused. */
export interface LookupProblem {
  readonly reason: "malformed" | "unknown" | "lookup-failed" | "lookup-timeout" | "reset-failed";
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
  /** Questions whose handler threw, gave nonsense or took too long. */
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
  readonly #onProblem: (problem: LookupProblem) => void;

  constructor(handlers: LookupHandlers, options: LookupResponderOptions = {}) {
    this.#handlers = handlers;
    this.#release = options.release ?? DEFAULT_RELEASE;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#onProblem = options.onProblem ?? (() => {});
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
      const result = await this.#inTime(Promise.resolve(answer));
      if (result === TIMEOUT) {
        this.counters.failedLookups++;
        this.#report("lookup-timeout", `no answer within ${this.#timeoutMs} ms`);
        return encodeLookupResponse(MISS, this.#release);
      }
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
    try {
      if (this.#handlers.removeAll === undefined) throw new Error("this server does not empty its store");
      await this.#handlers.drainSends?.();
      await this.#handlers.removeAll();
      return RESP_OK;
    } catch (error) {
      this.counters.failedResets++;
      this.#report("reset-failed", messageOf(error));
      return RESP_ERR;
    }
  }

  async #inTime<T>(answer: Promise<T>): Promise<T | typeof TIMEOUT> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<typeof TIMEOUT>((resolve) => {
      timer = setTimeout(() => resolve(TIMEOUT), this.#timeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #report(reason: LookupProblem["reason"], message: string): void {
    try {
      this.#onProblem({ reason, message });
    } catch {
      // A listener that throws must not cost the engine its answer.
    }
  }
}

const TIMEOUT: unique symbol = Symbol("timeout");
