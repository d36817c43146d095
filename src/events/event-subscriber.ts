import { describe } from "../errors.js";
import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { type DecodedEventBatch, decodeEventBatch } from "./decode-batch.js";
import { configError } from "./errors.js";
import { type EventMessage, parseEventFrames } from "./event-frames.js";
import { replayEvents } from "./event-replay.js";
import { SequenceTracker } from "./sequence-tracker.js";

/** Whose events to follow, and from where. */
export interface EventSubscriberOptions {
  /** PUB endpoint of the engine (`tcp://host:5557`); with data parallelism, of one rank: see `offsetEndpointPort`. */
  readonly endpoint: string;
  /** ROUTER endpoint of the same rank, for batches that were missed. */
  readonly replayEndpoint?: string | undefined;
  /** Only topics that begin so. Default: all. */
  readonly topic?: string | undefined;
  /** Whether to replay what the engine has kept, at the start. Default: `beginning` with a `replayEndpoint`, else `now`. */
  readonly from?: "beginning" | "now" | undefined;
  /** Messages that wait in memory for a slow reader; beyond it the publisher drops, and a gap follows. Default: 100,000. */
  readonly highWaterMark?: number | undefined;
  /** Milliseconds that a replay may be silent. Default: 5,000. */
  readonly replayTimeoutMs?: number | undefined;
  /** Ends the subscription. */
  readonly signal?: AbortSignal | undefined;
}

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
   * Batches are lost for good: what was known of the engine's cache may be wrong, and has to be forgotten. `gap`: they
   * could not be replayed. `malformed`: the payload is no batch. `restart`: the engine is another one, its cache empty.
   */
  | {
      readonly kind: "lost";
      readonly reason: "gap" | "malformed" | "restart";
      /** First and last number that is lost; of a restart, the numbers of the new engine's batches before the next. */
      readonly from: bigint;
      readonly to: bigint;
      readonly message: string;
    };

/** How many messages there were, by what became of them. */
export interface SubscriberCounters {
  batches: number;
  replayed: number;
  duplicates: number;
  gaps: number;
  /** Batches that were lost for good. */
  lost: number;
  malformed: number;
  restarts: number;
  failedReplays: number;
  unknownEvents: number;
  unknownFields: number;
}

/**
 * Follows the events of one publisher: `for await (const message of subscriber)`. Messages are taken from the socket only
 * as fast as they are read. Missed batches are replayed, in order, or reported as lost. The connection comes back by
 * itself; after it has, what was missed meanwhile is replayed at once.
 */
export class EventSubscriber implements AsyncIterable<SubscribedMessage> {
  readonly #options: EventSubscriberOptions;
  readonly #tracker = new SequenceTracker();
  #iterating = false;
  #closed = false;
  #closeSocket: () => void = () => {};
  #wake: () => void = () => {};
  readonly counters: SubscriberCounters = {
    batches: 0,
    replayed: 0,
    duplicates: 0,
    gaps: 0,
    lost: 0,
    malformed: 0,
    restarts: 0,
    failedReplays: 0,
    unknownEvents: 0,
    unknownFields: 0,
  };

  /** @throws MooncakeKvError `ERR_CONFIG` when `from` needs a replay endpoint that is not given. */
  constructor(options: EventSubscriberOptions) {
    if (options.from === "beginning" && options.replayEndpoint === undefined)
      throw configError("to start from the beginning, events need a replayEndpoint");
    this.#options = options;
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
    const { endpoint, replayEndpoint, topic = "", highWaterMark = 100_000 } = this.#options;
    const { Subscriber } = await loadZeroMq();
    const socket = new Subscriber({ linger: 0, receiveHighWaterMark: highWaterMark });
    let connections = 0;
    let reconnected = false;
    this.#closeSocket = () => socket.close();
    socket.events.on("handshake", () => {
      if (++connections > 1) reconnected = true;
      if (reconnected) this.#wake();
    });
    try {
      socket.subscribe(topic);
      socket.connect(endpoint);
    } catch (cause) {
      throw configError(
        `can't subscribe to ${describe(endpoint)}: ${(cause as Error).message}`,
        {},
        { cause },
      );
    }
    const from = this.#options.from ?? (replayEndpoint === undefined ? "now" : "beginning");
    if (from === "beginning") yield* this.#catchUp(0n, undefined);
    let received: Promise<Buffer[] | undefined> | undefined;
    while (!this.#closed) {
      received ??= socket.receive().catch(() => undefined);
      const woken = new Promise<"woken">((resolve) => {
        this.#wake = () => resolve("woken");
      });
      const frames = reconnected || this.#closed ? "woken" : await Promise.race([received, woken]);
      if (this.#closed) return;
      if (frames === "woken") {
        reconnected = false;
        if (this.#tracker.due !== undefined) yield* this.#catchUp(this.#tracker.due, undefined);
        continue;
      }
      received = undefined;
      if (frames !== undefined) yield* this.#receive(plainFrames(frames));
    }
  }

  async *#receive(frames: readonly Uint8Array[]): AsyncGenerator<SubscribedMessage> {
    const message = parseEventFrames(frames);
    if (message === undefined) {
      this.counters.malformed++;
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
      this.counters.restarts++;
      yield this.#lost("restart", 0n, sequence - 1n, "the numbers of the batches have begun anew");
      if (sequence > 0n) yield* this.#catchUp(0n, sequence);
    }
    this.#tracker.passed(sequence + 1n);
    yield this.#batch(message, false);
  }

  /** Replays from a number on, up to `until`; what is missing there is lost. */
  async *#catchUp(from: bigint, until: bigint | undefined): AsyncGenerator<SubscribedMessage> {
    const { replayEndpoint, replayTimeoutMs = 5_000 } = this.#options;
    let next = from;
    let problem = "there is no replay endpoint";
    if (replayEndpoint !== undefined) {
      problem = "the publisher has not kept them";
      try {
        for await (const message of replayEvents(replayEndpoint, from, replayTimeoutMs)) {
          if (this.#closed) return;
          const { sequence } = message;
          if (until !== undefined && sequence >= until) break;
          if (sequence < next) continue;
          if (sequence > next) yield this.#lost("gap", next, sequence - 1n, problem);
          next = sequence + 1n;
          this.#tracker.passed(next);
          yield this.#batch(message, true);
        }
      } catch (error) {
        this.counters.failedReplays++;
        problem = (error as Error).message;
      }
    }
    if (until === undefined || next >= until) return;
    this.#tracker.passed(until);
    yield this.#lost("gap", next, until - 1n, problem);
  }

  #batch({ topic, sequence, payload }: EventMessage, replayed: boolean): SubscribedMessage {
    let batch: DecodedEventBatch;
    try {
      batch = decodeEventBatch(payload);
    } catch (error) {
      this.counters.malformed++;
      return this.#lost("malformed", sequence, sequence, (error as Error).message);
    }
    this.counters[replayed ? "replayed" : "batches"]++;
    this.counters.unknownEvents += batch.unknownEvents;
    this.counters.unknownFields += batch.unknownFields;
    return { kind: "batch", sequence, topic: Buffer.from(topic).toString(), batch, replayed };
  }

  #lost(
    reason: "gap" | "malformed" | "restart",
    from: bigint,
    to: bigint,
    message: string,
  ): SubscribedMessage {
    if (reason !== "restart") this.counters.lost += Number(to - from + 1n);
    return { kind: "lost", reason, from, to, message };
  }
}
