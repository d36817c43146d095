import { configError } from "./errors.js";
import { EventConnection } from "./event-connection.js";
import { EventFollower } from "./event-follower.js";
import type { SubscribedMessage } from "./subscribed-message.js";
import {
  type CheckedSubscriberOptions,
  checkedSubscriberOptions,
  type EventSubscriberOptions,
} from "./subscriber-options.js";
import type { SubscriberCounters } from "./subscriber-problems.js";

export type { SubscribedMessage } from "./subscribed-message.js";

/** Milliseconds before the next connection: at first, and at most while nothing comes. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1_000;

/**
 * Follows the events of one publisher: `for await (const message of subscriber)`. Messages are taken from the socket only
 * as fast as they are read. Missed batches are replayed, in order, or reported as lost. A connection that breaks is made
 * anew, as long as it takes; then what was missed is replayed at once, together with the last batch that was seen, which
 * tells whether the engine is still the same.
 *
 * @example
 * ```ts
 * import { BlockIndex, EventSubscriber } from "mooncake-kv/events";
 *
 * const index = new BlockIndex({ blockSize: 16 });
 * const subscriber = new EventSubscriber({ endpoint: "tcp://gpu01:5557", replayEndpoint: "tcp://gpu01:5558" });
 * for await (const message of subscriber) index.applyMessage("engine-1", message);
 * ```
 */
export class EventSubscriber implements AsyncIterable<SubscribedMessage> {
  readonly #options: CheckedSubscriberOptions;
  readonly #end = new AbortController();
  readonly #follower: EventFollower;
  #iterating = false;
  #unreachable = false;

  /** @throws MooncakeKvError `ERR_CONFIG` for options that make no sense, that nobody knows, or an endpoint that is none. */
  constructor(options: EventSubscriberOptions) {
    this.#options = checkedSubscriberOptions(options);
    this.#follower = new EventFollower(this.#options, this.#end.signal);
  }

  /** How many messages there were, by what became of them, and how often what went wrong. */
  get counters(): SubscriberCounters {
    return this.#follower.counters;
  }

  /** Number of the batch that is due; undefined before the first one. */
  get due(): bigint | undefined {
    return this.#follower.due;
  }

  /** Ends the iteration, at once. Closing twice is fine. */
  close(): void {
    this.#end.abort();
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
      yield* this.#follow();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.close();
    }
    return undefined;
  }

  async *#follow(): AsyncGenerator<SubscribedMessage> {
    const ended = this.#end.signal;
    let pause = FIRST_PAUSE;
    while (!ended.aborted) {
      const connection = await EventConnection.open(this.#options);
      const stop = (): void => connection.close();
      ended.addEventListener("abort", stop, { once: true });
      if (ended.aborted) stop();
      try {
        if (await this.#isOpen(connection)) {
          yield* this.#follower.connected();
          while (!ended.aborted) {
            const frames = await this.#receive(connection);
            if (frames === undefined) break;
            pause = FIRST_PAUSE;
            yield* this.#follower.received(frames);
            if (this.#follower.distrusted) break;
          }
        }
      } finally {
        ended.removeEventListener("abort", stop);
        connection.close();
      }
      await wait(pause, ended);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  async #isOpen(connection: EventConnection): Promise<boolean> {
    const opened = await connection.opened;
    if (this.#end.signal.aborted) return false;
    if (opened) {
      this.counters.connections++;
    } else if (!this.#unreachable) {
      // Told once, however often it is tried.
      const { endpoint } = this.#options;
      this.#follower.report(
        "connection",
        `nobody answers at ${endpoint}; it is tried again until somebody does`,
      );
    }
    this.#unreachable = !opened;
    return opened;
  }

  async #receive(connection: EventConnection): Promise<Uint8Array[] | undefined> {
    try {
      const frames = await connection.receive();
      if (frames === undefined && !this.#end.signal.aborted)
        this.#follower.report("connection", `the connection to ${this.#options.endpoint} broke`);
      return frames;
    } catch (error) {
      this.counters.receiveErrors++;
      this.#follower.report("receive", `the socket can't receive: ${(error as Error).message}`);
      return undefined;
    }
  }
}

/** Waits, but not beyond a signal. */
async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
