import type { Publisher } from "zeromq";
import { describe } from "../errors.js";
import { checkNames, wholeOption } from "../lookup/options.js";
import { tell } from "../lookup/tell.js";
import { loadZeroMq } from "../lookup/zeromq.js";
import { checkPublishEndpoint, isBindEndpoint, offsetEndpointPort } from "./endpoint.js";
import { configError } from "./errors.js";
import { EVENT_LOG_NAMES, EventLog, type EventLogOptions } from "./event-log.js";
import type { KVEventBatch } from "./kv-events.js";
import { ReplayServer } from "./replay-server.js";

/** Where and how a publisher publishes. */
export interface ZmqEventPublisherOptions extends EventLogOptions {
  /**
   * PUB endpoint of rank 0; that of other ranks follows. As vLLM's publisher it binds `tcp://*:5557`, `ipc://...` and
   * `inproc://...`, and connects to an endpoint that names a host, such as `tcp://127.0.0.1:5557` or `tcp://0.0.0.0:5557`:
   * there a subscriber must bind. See `isBindEndpoint`, and `bound`. Default: `tcp://*:5557`.
   */
  readonly endpoint?: string | undefined;
  /** ROUTER endpoint of rank 0 for replays, which is always bound; without it there are none. */
  readonly replayEndpoint?: string | undefined;
  /**
   * Messages that wait for a slow subscriber before the next ones are dropped, and batches that may wait to be sent. Default:
   * 100,000.
   */
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

/** Publishes events as an engine does, and replays the last ones to whoever missed some. Mirrors vLLM's class. */
export class ZmqEventPublisher {
  readonly #publisher: Publisher;
  readonly #replays: ReplayServer | undefined;
  readonly #log: EventLog;
  readonly #options: CheckedOptions;
  #sends: Promise<void> = Promise.resolve();
  #waiting = 0;
  #closed = false;
  /** Batches that could not be sent, or had no room. They are kept for replay all the same. */
  failedSends = 0;
  /** The endpoint of the PUB socket: where it was bound, with the port that the system chose, or where it connects to. */
  readonly endpoint: string;
  /** The endpoint of replays; null without any. */
  readonly replayEndpoint: string | null;

  private constructor(
    publisher: Publisher,
    replays: ReplayServer | undefined,
    log: EventLog,
    options: CheckedOptions,
  ) {
    this.#publisher = publisher;
    this.#replays = replays;
    this.#log = log;
    this.#options = options;
    this.endpoint = publisher.lastEndpoint ?? options.endpoint;
    this.replayEndpoint = replays?.endpoint ?? null;
  }

  /**
   * Opens the sockets.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for endpoints that can't be used, options that nobody knows, or when zeromq is
   * missing.
   */
  static async open(options: ZmqEventPublisherOptions = {}): Promise<ZmqEventPublisher> {
    const { logOptions, ...checked } = checkedOptions(options);
    const { endpoint, replayEndpoint, highWaterMark, onProblem } = checked;
    const log = new EventLog(logOptions);
    const { Publisher } = await loadZeroMq();
    const publisher = new Publisher({ linger: 0, sendHighWaterMark: highWaterMark });
    let at = endpoint;
    try {
      if (isBindEndpoint(endpoint)) await publisher.bind(endpoint);
      else publisher.connect(endpoint);
      if (replayEndpoint === undefined) return new ZmqEventPublisher(publisher, undefined, log, checked);
      at = replayEndpoint;
      const report = (message: string): void => tell(onProblem, { reason: "replay", message });
      const replays = await ReplayServer.bind(replayEndpoint, log, report);
      return new ZmqEventPublisher(publisher, replays, log, checked);
    } catch (cause) {
      publisher.close();
      throw configError(`can't publish at ${at}: ${(cause as Error).message}`, { endpoint: at }, { cause });
    }
  }

  /** Whether the PUB socket was bound, as against connected: see the option `endpoint`. */
  get bound(): boolean {
    return isBindEndpoint(this.#options.endpoint);
  }

  /** Replay requests that made no sense. */
  get malformedReplays(): number {
    return this.#replays?.counters.malformedReplays ?? 0;
  }

  /** Replay requests beyond the most that are answered at a time. */
  get refusedReplays(): number {
    return this.#replays?.counters.refusedReplays ?? 0;
  }

  /** Replays that ended early: whoever asked was gone, or read nothing for 5 seconds. */
  get abandonedReplays(): number {
    return this.#replays?.counters.abandonedReplays ?? 0;
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
    if (this.#waiting >= this.#options.highWaterMark) {
      this.#failed(sequence, `${this.#waiting} others wait to be sent`);
      return sequence;
    }
    this.#waiting++;
    this.#sends = this.#sends
      .then(() => this.#publisher.send(frames))
      .catch((error: Error) => this.#failed(sequence, error.message))
      .finally(() => this.#waiting--);
    await this.#sends;
    return sequence;
  }

  #failed(sequence: bigint, why: string): void {
    this.failedSends++;
    const message = `batch ${sequence} could not be sent: ${why}`;
    tell(this.#options.onProblem, { reason: "send", message });
  }

  /** Closes the sockets; replays under way end. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sends;
    this.#publisher.close();
    await this.#replays?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Options of a publisher, checked, with the endpoints of its own rank. */
interface CheckedOptions {
  readonly endpoint: string;
  readonly replayEndpoint: string | undefined;
  readonly highWaterMark: number;
  readonly onProblem: ((problem: PublisherProblem) => void) | undefined;
}

function checkedOptions(
  options: ZmqEventPublisherOptions,
): CheckedOptions & { readonly logOptions: EventLogOptions } {
  checkNames("ZmqEventPublisher", options, NAMES);
  const { endpoint = "tcp://*:5557", replayEndpoint, highWaterMark, onProblem, ...logOptions } = options;
  if (onProblem !== undefined && typeof onProblem !== "function")
    throw configError(`onProblem is ${describe(onProblem)}; it must be a function`, { onProblem });
  checkPublishEndpoint("endpoint", endpoint);
  if (replayEndpoint !== undefined) checkPublishEndpoint("replayEndpoint", replayEndpoint);
  const { dataParallelRank: rank = 0 } = logOptions;
  return {
    endpoint: offsetEndpointPort(endpoint, rank),
    replayEndpoint: replayEndpoint === undefined ? undefined : offsetEndpointPort(replayEndpoint, rank),
    highWaterMark: wholeOption("highWaterMark", highWaterMark, 100_000),
    onProblem,
    logOptions,
  };
}
