import { isMooncakeKvError, type MooncakeKvError } from "../errors.js";
import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import type { Release } from "../release.js";
import { configError, lookupError } from "./errors.js";
import {
  encodeLookupRequest,
  encodeResetRequest,
  LOOKUP_FRAME_FORMS,
  type LookupFrameForm,
  messageOf,
} from "./lookup-frames.js";
import { decodeLookupResponse, MISS, type MooncakeLookupResult, RESP_OK } from "./lookup-protocol.js";
import { type LookupTransport, ZeroMqLookupTransport } from "./lookup-transport.js";
import { checkNames, releaseOption, wholeOption, wordOption } from "./options.js";

/** Whom a lookup client asks, and how. */
export interface LookupKeyClientOptions {
  /** What `lookupSocketPath` gives, or any other ZeroMQ address to connect to. */
  readonly socketPath?: string | undefined;
  /** In place of `socketPath`: what carries the requests. */
  readonly transport?: LookupTransport | undefined;
  /** Release of the engine. Default: the newest. */
  readonly release?: Release | undefined;
  /** Form of the question. Default: `current`, which every release of `RELEASES` takes. */
  readonly form?: LookupFrameForm | undefined;
  /** Milliseconds from the call to the reply, the wait for earlier requests included. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** Why nothing is known although something was asked. */
export interface LookupChannelFailure {
  /**
   * `request`: the question can't be put into frames. `no-reply`: it could not be sent, or nobody answered in time.
   * `reply`: the reply can't be read. `closed` and `discarded`: the caller ended it.
   */
  readonly reason: "request" | "no-reply" | "reply" | "closed" | "discarded";
  readonly error: MooncakeKvError;
}

/** What a lookup found, or why that is unknown: with a `failure` the hit of 0 says nothing about the store. */
export interface LookupAnswer extends MooncakeLookupResult {
  readonly failure?: LookupChannelFailure | undefined;
}

interface Pending {
  readonly answer: Promise<LookupAnswer>;
  settled: LookupAnswer | undefined;
  discarded: boolean;
}

/**
 * Asks worker rank 0 of a running engine how much of a prompt the store holds. Mirrors vLLM's `LookupKeyClient`:
 * requests go out one by one, in the order of the calls, and answers are kept by request id until they are fetched.
 *
 * @example
 * ```ts
 * import { BlockHasher } from "mooncake-kv";
 * import { LookupKeyClient } from "mooncake-kv/lookup";
 *
 * const client = new LookupKeyClient({ socketPath: "ipc:///tmp/lookup_rpc_port_0_host_gpu01_dp_rank0" });
 * const tokens = Uint32Array.from({ length: 64 }, (_, token) => token);
 * const { hitLength, failure } = await client.lookup("request-1", 64, new BlockHasher({ blockSize: 16 }).hash(tokens));
 * console.log(failure ? `unknown: ${failure.error.message}` : hitLength);
 * await client.close();
 * ```
 */
export class LookupKeyClient {
  readonly #transport: LookupTransport;
  readonly #release: Release;
  readonly #form: LookupFrameForm;
  readonly #timeoutMs: number;
  readonly #pending = new Map<string, Pending>();
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** Requests that were sent, and what became of those without a usable reply. */
  readonly counters: { requests: number; unanswered: number; badReplies: number } = {
    requests: 0,
    unanswered: 0,
    badReplies: 0,
  };

  /**
   * @throws MooncakeKvError `ERR_CONFIG` for an option that can't be, when the address is none, or its path is longer than a
   * Unix socket's may be.
   */
  constructor(options: LookupKeyClientOptions) {
    checkNames("a lookup client", options, ["socketPath", "transport", "release", "form", "timeoutMs"]);
    if (options.transport === undefined && options.socketPath === undefined)
      throw configError("a lookup client needs a socketPath; lookupSocketPath makes one");
    this.#release = releaseOption(options.release);
    this.#form = wordOption("form", options.form ?? "current", LOOKUP_FRAME_FORMS);
    this.#timeoutMs = wholeOption("timeoutMs", options.timeoutMs, 5_000);
    this.#transport = options.transport ?? new ZeroMqLookupTransport(options.socketPath!);
  }

  /** Ids of the requests whose answers have not been fetched. */
  get pending(): readonly string[] {
    return [...this.#pending.keys()];
  }

  /**
   * Asks, or waits for what was asked under this id before. Never rejects: what goes wrong is a miss with a `failure`.
   * The hashes must not be changed before the answer is there.
   */
  async lookup(reqId: string, numTokens: number, blockHashes: BlockHashSequence): Promise<LookupAnswer> {
    const pending = this.#submit(reqId, numTokens, blockHashes);
    const answer = await pending.answer;
    if (this.#pending.get(reqId) === pending) this.#pending.delete(reqId);
    return answer;
  }

  /**
   * Asks without waiting: null while the answer is pending, so that the caller asks again later; then the answer, once.
   * An answer with a hit of 0 is final, null is not. vLLM's `lookup` with `non_block`.
   */
  lookupAsync(reqId: string, numTokens: number, blockHashes: BlockHashSequence): LookupAnswer | null {
    const pending = this.#submit(reqId, numTokens, blockHashes);
    if (pending.settled === undefined) return null;
    this.#pending.delete(reqId);
    return pending.settled;
  }

  /** Forgets a request, for example an aborted one. If its question was not sent yet, it never is. */
  discard(reqId: string): void {
    const pending = this.#pending.get(reqId);
    if (pending === undefined) return;
    pending.discarded = true;
    this.#pending.delete(reqId);
  }

  /**
   * Has the engine remove every object of the store, also those of other deployments. The caller has paused the engine.
   *
   * @returns whether it did; a reply that makes no sense counts as no.
   * @throws MooncakeKvError `ERR_LOOKUP` without a reply: what the engine did is unknown then.
   */
  async reset(): Promise<boolean> {
    const deadline = performance.now() + this.#timeoutMs;
    const reply = await this.#enqueue(() => this.#send(encodeResetRequest(), deadline));
    return reply.length === 1 && reply[0] === RESP_OK[0];
  }

  /** Ends the client. What is pending is answered as a miss with the failure `closed`. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#transport.close();
    await this.#queue.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #submit(reqId: string, numTokens: number, blockHashes: BlockHashSequence): Pending {
    const before = this.#pending.get(reqId);
    if (before !== undefined) return before;
    const deadline = performance.now() + this.#timeoutMs;
    const answer = this.#enqueue(async () => {
      const settled = pending.discarded ? discarded() : await this.#ask({ numTokens, blockHashes }, deadline);
      pending.settled = settled;
      return settled;
    });
    const pending: Pending = { answer, settled: undefined, discarded: false };
    this.#pending.set(reqId, pending);
    return pending;
  }

  async #ask(question: Parameters<typeof encodeLookupRequest>[0], deadline: number): Promise<LookupAnswer> {
    let reason: LookupChannelFailure["reason"] = "request";
    try {
      const frames = encodeLookupRequest(question, this.#form);
      reason = "no-reply";
      const reply = await this.#send(frames, deadline);
      reason = "reply";
      return decodeLookupResponse(reply, this.#form === "current" ? this.#release : "vllm-0.27");
    } catch (cause) {
      if (reason === "reply") this.counters.badReplies++;
      const error = isMooncakeKvError(cause) ? cause : lookupError(messageOf(cause), {}, { cause });
      return { ...MISS, failure: { reason: this.#closed ? "closed" : reason, error } };
    }
  }

  async #send(frames: readonly Uint8Array[], deadline: number): Promise<Uint8Array> {
    if (this.#closed) throw lookupError("the lookup client was closed");
    const left = deadline - performance.now();
    if (left <= 0) {
      this.counters.unanswered++;
      throw lookupError(`not sent: earlier requests took all of ${this.#timeoutMs} ms`, {
        timeoutMs: this.#timeoutMs,
      });
    }
    this.counters.requests++;
    try {
      return await this.#transport.request(frames, left);
    } catch (error) {
      if (!this.#closed) this.counters.unanswered++;
      throw error;
    }
  }

  /** Runs requests one after the other. */
  #enqueue<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(run);
    this.#queue = result.catch(() => {});
    return result;
  }
}

function discarded(): LookupAnswer {
  const error = lookupError("the lookup was discarded before it was sent");
  return { ...MISS, failure: { reason: "discarded", error } };
}
