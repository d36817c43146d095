import { setImmediate } from "node:timers/promises";
import type { Publisher, Router } from "zeromq";
import { describe } from "../errors.js";
import { checkNames, wholeOption } from "../lookup/options.js";
import { loadZeroMq } from "../lookup/zeromq.js";
import { isBindEndpoint, offsetEndpointPort } from "./endpoint.js";
import { configError } from "./errors.js";
import { EVENT_LOG_NAMES, EventLog, type EventLogOptions, isReplayRequest } from "./event-log.js";
import type { KVEventBatch } from "./kv-events.js";

/** Where and how a publisher publishes. */
export interface ZmqEventPublisherOptions extends EventLogOptions {
  /**
   * PUB endpoint of rank 0; that of other ranks follows. As vLLM's publisher it binds `tcp://*:5557`, `ipc://...` and
   * `inproc://...`, and connects to an endpoint that names a host, such as `tcp://127.0.0.1:5557`: there a subscriber
   * must bind. See `isBindEndpoint`. Default: `tcp://*:5557`.
   */
  readonly endpoint?: string | undefined;
  /** ROUTER endpoint of rank 0 for replays, which is always bound; without it there are none. */
  readonly replayEndpoint?: string | undefined;
  /** Messages that wait for a slow subscriber before the next ones are dropped. Default: 100,000. */
  readonly highWaterMark?: number | undefined;
  /** Told of sends that failed, and of replay requests that made no sense. What it throws is ignored. */
  readonly onProblem?: ((problem: PublisherProblem) => void) | undefined;
}

/** Something that went wrong in a publisher. */
export interface PublisherProblem {
  /** `send`: a batch could not be sent; it is kept for replay all the same. `replay`: a replay could not be answered. */
  readonly reason: "send" | "replay";
  readonly message: string;
}

const NAMES: readonly (keyof ZmqEventPublisherOptions)[] = [
  ...EVENT_LOG_NAMES,
  "endpoint",
  "replayEndpoint",
  "highWaterMark",
  "onProblem",
];

/** Bytes of a frame of a replay request: there is an identity, an empty one, and a number. */
const LONGEST_REQUEST_FRAME = 1024;

/** Batches of a replay between which others get their turn. */
const REPLAY_STRIDE = 64;

/** Milliseconds before the socket of replays is asked again after an error. */
const PAUSE_AFTER_ERROR = 100;

/** Publishes events as an engine does, and replays the last ones to whoever missed some. Mirrors vLLM's class. */
export class ZmqEventPublisher {
  readonly #publisher: Publisher;
  readonly #router: Router | undefined;
  readonly #log: EventLog;
  readonly #onProblem: ((problem: PublisherProblem) => void) | undefined;
  readonly #replays: Promise<void>;
  #sends: Promise<void> = Promise.resolve();
  #closed = false;
  #wake: () => void = () => {};
  /** Replay requests that made no sense. */
  malformedReplays = 0;
  /** Batches that could not be sent. */
  failedSends = 0;
  /** Whether the PUB socket was bound, as against connected: see the option `endpoint`. */
  readonly bound: boolean;

  private constructor(
    publisher: Publisher,
    router: Router | undefined,
    log: EventLog,
    bound: boolean,
    onProblem: ((problem: PublisherProblem) => void) | undefined,
  ) {
    this.#publisher = publisher;
    this.#router = router;
    this.#log = log;
    this.bound = bound;
    this.#onProblem = onProblem;
    this.#replays = router === undefined ? Promise.resolve() : this.#serveReplays(router);
  }

  /**
   * Opens the sockets.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for endpoints that can't be used, options that nobody knows, or when zeromq is
   * missing.
   */
  static async open(options: ZmqEventPublisherOptions = {}): Promise<ZmqEventPublisher> {
    checkNames("ZmqEventPublisher", options, NAMES);
    const { endpoint = "tcp://*:5557", replayEndpoint, highWaterMark, onProblem, ...logOptions } = options;
    const mark = wholeOption("highWaterMark", highWaterMark, 100_000);
    if (onProblem !== undefined && typeof onProblem !== "function")
      throw configError(`onProblem is ${describe(onProblem)}; it must be a function`, { onProblem });
    const log = new EventLog(logOptions);
    const { dataParallelRank = 0 } = logOptions;
    const address = offsetEndpointPort(endpoint, dataParallelRank);
    const replayAddress =
      replayEndpoint === undefined ? undefined : offsetEndpointPort(replayEndpoint, dataParallelRank);
    const bound = isBindEndpoint(address);
    const { Publisher, Router } = await loadZeroMq();
    const publisher = new Publisher({ linger: 0, sendHighWaterMark: mark });
    let router: Router | undefined;
    try {
      if (bound) await publisher.bind(address);
      else publisher.connect(address);
      if (replayAddress !== undefined) {
        // Room for a whole replay and its end marker, also while a slow subscriber has not acknowledged half of it.
        router = new Router({
          linger: 0,
          sendHighWaterMark: 2 * (log.bufferSteps + 1),
          maxMessageSize: LONGEST_REQUEST_FRAME,
        });
        await router.bind(replayAddress);
      }
    } catch (cause) {
      publisher.close();
      router?.close();
      throw configError(`can't publish at ${endpoint}: ${(cause as Error).message}`, { endpoint }, { cause });
    }
    return new ZmqEventPublisher(publisher, router, log, bound, onProblem);
  }

  /** The endpoint that the PUB socket was bound to; null where it connects. */
  get endpoint(): string | null {
    return this.#publisher.lastEndpoint;
  }

  /** The endpoint of replays; null without any. */
  get replayEndpoint(): string | null {
    return this.#router?.lastEndpoint ?? null;
  }

  /**
   * Publishes a batch. One that can't be sent is counted and reported; it is kept for replay like others.
   *
   * @returns its number.
   * @throws MooncakeKvError `ERR_SCHEMA` for a batch that can't be encoded, `ERR_CONFIG` once the publisher is closed.
   */
  async publish(batch: KVEventBatch): Promise<bigint> {
    if (this.#closed) throw configError("the publisher is closed; nothing can be published any more");
    const sequence = this.#log.nextSequence;
    const frames = this.#log.publish(batch);
    this.#sends = this.#sends
      .then(() => this.#publisher.send(frames))
      .catch((error: Error) => {
        this.failedSends++;
        this.#report("send", `batch ${sequence} could not be sent: ${error.message}`);
      });
    await this.#sends;
    return sequence;
  }

  /** Closes the sockets. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sends;
    this.#publisher.close();
    this.#router?.close();
    this.#wake();
    await this.#replays;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serveReplays(router: Router): Promise<void> {
    while (!this.#closed) {
      let request: Buffer[];
      try {
        request = await router.receive();
      } catch (error) {
        if (this.#closed) return;
        this.#report("replay", `requests can't be received: ${(error as Error).message}`);
        await this.#pause(PAUSE_AFTER_ERROR);
        continue;
      }
      await this.#answer(router, request);
    }
  }

  async #answer(router: Router, request: readonly Uint8Array[]): Promise<void> {
    const [identity, , start] = request;
    if (request.length !== 3 || !isReplayRequest(start!)) {
      this.malformedReplays++;
      this.#report(
        "replay",
        `a replay request of ${request.length} frames (${request.map(({ length }) => length).join(", ")} bytes) makes no sense; ` +
          "an empty frame and a number of 8 bytes are right",
      );
      return;
    }
    let sent = 0;
    for (const frames of this.#log.replay(start!)) {
      if (this.#closed) return;
      try {
        await router.send([identity!, ...frames]);
      } catch (error) {
        // Whoever asked is gone.
        this.#report("replay", `a replay ended early: ${(error as Error).message}`);
        return;
      }
      if (++sent % REPLAY_STRIDE === 0) await setImmediate();
    }
  }

  /** Waits, but not beyond `close`. */
  async #pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
      this.#wake = resolve;
    });
    clearTimeout(timer);
  }

  #report(reason: PublisherProblem["reason"], message: string): void {
    try {
      this.#onProblem?.({ reason, message });
    } catch {
      // A listener that throws must not end the publisher.
    }
  }
}
