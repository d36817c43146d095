import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { type DecodedEventBatch, decodeEventBatch } from "./decode-batch.js";
import { configError } from "./errors.js";
import { type EventMessage, parseEventFrames } from "./event-frames.js";
import { ReplayFailure, replayEvents } from "./event-replay.js";
import { SequenceTracker } from "./sequence-tracker.js";
import {
  type CheckedSubscriberOptions,
  checkedSubscriberOptions,
  type EventSubscriberOptions,
} from "./subscriber-options.js";
import {
  newSubscriberCounters,
  type SubscriberCounters,
  type SubscriberProblem,
} from "./subscriber-problems.js";

/** What a subscription gives, in order. */
export type SubscribedMessage =
  | {
      readonly kind: "batch";
      readonly sequence: bigint;
      readonly topic: string;
      readonly batch: DecodedEventBatch;
      /** Whether it comes from a replay. */
      readonly replayed: boolean;
    }
  /**
   * Batches are lost for good. `gap`: they could not be replayed. `restart`: the engine is another one, its cache empty.
   * `reconnect`: the connection was gone, and nobody can say whether the engine is the same. After these three, what was
   * known of the engine's cache may be wrong, and has to be forgotten. `malformed`: one payload is no batch.
   */
  | {
      readonly kind: "lost";
      readonly reason: "gap" | "malformed" | "restart" | "reconnect";
      /** First and last number that is lost; of a restart, the numbers of the new engine's batches before the next. */
      readonly from: bigint;
      readonly to: bigint;
      readonly message: string;
    };

type LostReason = (SubscribedMessage & { readonly kind: "lost" })["reason"];

/** Milliseconds before the socket is asked again after an error: at first, and at most. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 5_000;

/**
 * Follows the events of one publisher: `for await (const message of subscriber)`. Messages are taken from the socket only
 * as fast as they are read. Missed batches are replayed, in order, or reported as lost. The connection comes back by
 * itself; after it has, what was missed meanwhile is replayed at once, together with the last batch that was seen, which
 * tells whether the engine is still the same.
 */
export class EventSubscriber implements AsyncIterable<SubscribedMessage> {
  readonly #options: CheckedSubscriberOptions;
  readonly #tracker = new SequenceTracker();
  #iterating = false;
  #closed = false;
  #closeSocket: () => void = () => {};
  #wake: () => void = () => {};
  /** The batch before the due one, as it was received: another engine has another one there. */
  #last: EventMessage | undefined;
  readonly counters: SubscriberCounters = newSubscriberCounters();

  /** @throws MooncakeKvError `ERR_CONFIG` for options that make no sense, that nobody knows, or an endpoint that is none. */
  constructor(options: EventSubscriberOptions) {
    this.#options = checkedSubscriberOptions(options);
  }

  /** Number of the batch that is due; undefined before the first one. */
  get due(): bigint | undefined {
    return this.#tracker.due;
  }

  /** Ends the iteration. Closing twice is fine. */
  close(): void {
    this.#closed = true;
    this.#closeSocket();
    this.#wake();
  }

  /**
   * The messages, until `close` or the signal. There can be one iteration.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for a second iteration, an endpoint that is none, or when zeromq is missing.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<SubscribedMessage, undefined> {
    if (this.#iterating) throw configError("a subscriber can be iterated once");
    this.#iterating = true;
    const { signal } = this.#options;
    const stop = (): void => this.close();
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) this.close();
    try {
      if (!this.#closed) yield* this.#follow();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.close();
    }
    return undefined;
  }

  async *#follow(): AsyncGenerator<SubscribedMessage> {
    const { endpoint, topic, highWaterMark, maxMessageBytes, from } = this.#options;
    const { Subscriber } = await loadZeroMq();
    if (this.#closed) return;
    const socket = new Subscriber({
      linger: 0,
      receiveHighWaterMark: highWaterMark,
      maxMessageSize: maxMessageBytes,
    });
    let connections = 0;
    // Since the connection broke nobody has looked who is there now; nothing that comes is taken before.
    let broken = false;
    let reconnected = false;
    this.#closeSocket = () => socket.close();
    socket.events.on("disconnect", () => {
      broken = true;
    });
    socket.events.on("handshake", () => {
      if (++connections > 1) reconnected = true;
      if (reconnected) this.#wake();
    });
    try {
      socket.subscribe(topic);
      socket.connect(endpoint);
    } catch (cause) {
      throw configError(
        `can't subscribe to ${endpoint}: ${(cause as Error).message}`,
        { endpoint },
        { cause },
      );
    }
    if (from === "beginning") yield* this.#catchUp(0n, undefined);
    let received: Promise<Buffer[] | "error"> | undefined;
    let pause = 0;
    while (!this.#closed) {
      received ??= socket.receive().catch((error: Error) => this.#receiveFailed(error));
      const woken = new Promise<"woken">((resolve) => {
        this.#wake = () => resolve("woken");
      });
      const frames = reconnected || this.#closed ? "woken" : await Promise.race([received, woken]);
      if (this.#closed) return;
      if (frames === "woken" || (broken && frames !== "error")) {
        reconnected = false;
        broken = false;
        yield* this.#afterReconnection();
        continue;
      }
      received = undefined;
      if (frames === "error") {
        pause = Math.min(Math.max(FIRST_PAUSE, 2 * pause), LONGEST_PAUSE);
        await this.#pause(pause);
      } else {
        pause = 0;
        yield* this.#receive(plainFrames(frames));
      }
    }
  }

  #receiveFailed(error: Error): "error" {
    if (this.#closed) return "error";
    this.counters.receiveErrors++;
    this.#report("receive", `the socket can't receive: ${error.message}`);
    return "error";
  }

  /** Waits, but not beyond `close`. */
  async #pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
      this.#wake = resolve;
      if (this.#closed) resolve();
    });
    clearTimeout(timer);
  }

  /** The connection was gone: who is there now, and what was missed? */
  async *#afterReconnection(): AsyncGenerator<SubscribedMessage> {
    const { due } = this.#tracker;
    if (due === undefined) return;
    if (this.#options.replayEndpoint !== undefined) yield* this.#catchUp(due, undefined);
    else yield this.#unproven(due, "there is no replay endpoint to ask");
  }

  /** What was known is not to be trusted; the next number may be any. */
  #unproven(due: bigint, why: string): SubscribedMessage {
    this.counters.unprovenReconnects++;
    this.#tracker.forget();
    this.#last = undefined;
    return this.#lost(
      "reconnect",
      due,
      due - 1n,
      `whether the engine is still the same can't be told: ${why}`,
    );
  }

  async *#receive(frames: readonly Uint8Array[]): AsyncGenerator<SubscribedMessage> {
    const message = parseEventFrames(frames);
    if (message === undefined) {
      this.counters.malformed++;
      this.#report(
        "frames",
        `a message of ${frames.length} frames (${frames.map(({ length }) => length).join(", ")} bytes) is no batch of events; ` +
          `an engine sends three, topic, number of 8 bytes and payload: is ${this.#options.endpoint} the endpoint of its KV events?`,
      );
      return;
    }
    const { sequence } = message;
    const verdict = this.#tracker.live(sequence);
    if (verdict.kind === "duplicate") {
      this.counters.duplicates++;
      return;
    }
    if (verdict.kind === "gap") {
      this.counters.gaps++;
      yield* this.#catchUp(verdict.from, sequence);
    }
    if (verdict.kind === "restart") {
      yield* this.#restarted(sequence, "the numbers of the batches have begun anew");
    }
    this.#tracker.passed(sequence + 1n);
    yield this.#batch(message, false);
  }

  /** Another engine is there: what the old one had is gone, and the new one may have kept what it has published so far. */
  async *#restarted(until: bigint | undefined, message: string): AsyncGenerator<SubscribedMessage> {
    this.counters.restarts++;
    this.#tracker.restart(until);
    this.#last = undefined;
    yield this.#lost("restart", 0n, (until ?? 0n) - 1n, message);
    if (until === undefined || until > 0n) yield* this.#catchUp(0n, until);
  }

  /**
   * Replays from a number on, up to `until`; what is missing there is lost. Where the batch before it is known, it is asked
   * for too, and compared: another one means another engine.
   */
  async *#catchUp(from: bigint, until: bigint | undefined): AsyncGenerator<SubscribedMessage> {
    const { replayEndpoint, replayLimits } = this.#options;
    const last = from > 0n && this.#last?.sequence === from - 1n ? this.#last : undefined;
    let proven = last === undefined;
    let next = from;
    let problem = "there is no replay endpoint";
    if (replayEndpoint !== undefined) {
      problem = "the publisher has not kept them";
      try {
        const start = last === undefined ? from : from - 1n;
        for await (const message of replayEvents(replayEndpoint, start, replayLimits)) {
          if (this.#closed) return;
          const { sequence } = message;
          if (!proven) {
            proven = true;
            if (!isSame(message, last!)) {
              const why =
                sequence === last!.sequence
                  ? `batch ${sequence} is another than before`
                  : `batch ${last!.sequence} is not kept any more, so that nobody can say whether the engine is the same`;
              yield* this.#restarted(until, why);
              return;
            }
            continue;
          }
          if (until !== undefined && sequence >= until) break;
          if (sequence > next) yield this.#lost("gap", next, sequence - 1n, problem);
          next = sequence + 1n;
          this.#tracker.passed(next);
          yield this.#batch(message, true);
        }
      } catch (error) {
        problem = this.#replayFailed(error, from);
      }
    }
    if (this.#closed) return;
    if (until === undefined) {
      // After a reconnection: the last batch was neither seen again nor another one in its place.
      if (!proven) yield this.#unproven(from, problem);
      return;
    }
    if (next >= until) return;
    this.#tracker.passed(until);
    yield this.#lost("gap", next, until - 1n, problem);
  }

  #replayFailed(error: unknown, from: bigint): string {
    if (!(error instanceof ReplayFailure)) throw error;
    this.counters.failedReplays++;
    this.counters.replayFailures[error.reason]++;
    this.#report("replay", error.message, from);
    return error.message;
  }

  #batch(message: EventMessage, replayed: boolean): SubscribedMessage {
    const { topic, sequence, payload } = message;
    // A payload is memory of one message, which nobody else writes to.
    this.#last = message;
    let batch: DecodedEventBatch;
    try {
      batch = decodeEventBatch(payload);
    } catch (error) {
      this.counters.malformed++;
      this.#report("batch", (error as Error).message, sequence);
      return this.#lost("malformed", sequence, sequence, (error as Error).message);
    }
    this.counters[replayed ? "replayed" : "batches"]++;
    this.counters.malformedEvents += batch.malformedEvents;
    this.counters.unknownEvents += batch.unknownEvents;
    this.counters.unknownFields += batch.unknownFields;
    for (const problem of batch.problems) this.#report("event", problem.message, sequence);
    return { kind: "batch", sequence, topic: Buffer.from(topic).toString(), batch, replayed };
  }

  #lost(reason: LostReason, from: bigint, to: bigint, message: string): SubscribedMessage {
    if (reason === "gap" || reason === "malformed") this.counters.lost += Number(to - from + 1n);
    return { kind: "lost", reason, from, to, message };
  }

  #report(reason: SubscriberProblem["reason"], message: string, sequence?: bigint): void {
    try {
      this.#options.onProblem?.({ reason, message, ...(sequence !== undefined && { sequence }) });
    } catch {
      // A listener that throws must not end the subscription.
    }
  }
}

/** Whether two messages are the same batch of the same engine: a batch holds the time at which it was made. */
function isSame(a: EventMessage, b: EventMessage): boolean {
  return a.sequence === b.sequence && Buffer.compare(a.payload, b.payload) === 0;
}
