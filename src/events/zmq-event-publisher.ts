import type { Publisher, Router } from "zeromq";
import { loadZeroMq } from "../lookup/zeromq.js";
import { isBindEndpoint, offsetEndpointPort } from "./endpoint.js";
import { configError } from "./errors.js";
import { EventLog, type EventLogOptions } from "./event-log.js";
import type { KVEventBatch } from "./kv-events.js";

/** Where and how a publisher publishes. */
export interface ZmqEventPublisherOptions extends EventLogOptions {
  /** PUB endpoint of rank 0; that of other ranks follows. Default: `tcp://*:5557`. */
  readonly endpoint?: string | undefined;
  /** ROUTER endpoint of rank 0 for replays; without it there are none. */
  readonly replayEndpoint?: string | undefined;
  /** Messages that wait for a slow subscriber before the next ones are dropped. Default: 100,000. */
  readonly highWaterMark?: number | undefined;
}

/** Publishes events as an engine does, and replays the last ones to whoever missed some. Mirrors vLLM's class. */
export class ZmqEventPublisher {
  readonly #publisher: Publisher;
  readonly #router: Router | undefined;
  readonly #log: EventLog;
  readonly #replays: Promise<void>;
  #sends: Promise<void> = Promise.resolve();
  #closed = false;
  /** Replay requests that made no sense. */
  malformedReplays = 0;

  private constructor(publisher: Publisher, router: Router | undefined, log: EventLog) {
    this.#publisher = publisher;
    this.#router = router;
    this.#log = log;
    this.#replays = router === undefined ? Promise.resolve() : this.#serveReplays(router);
  }

  /**
   * Opens the sockets.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for endpoints that can't be used, or when zeromq is missing.
   */
  static async open(options: ZmqEventPublisherOptions = {}): Promise<ZmqEventPublisher> {
    const {
      endpoint = "tcp://*:5557",
      replayEndpoint,
      dataParallelRank = 0,
      highWaterMark = 100_000,
    } = options;
    const log = new EventLog(options);
    const { Publisher, Router } = await loadZeroMq();
    const publisher = new Publisher({ linger: 0, sendHighWaterMark: highWaterMark });
    let router: Router | undefined;
    try {
      const address = offsetEndpointPort(endpoint, dataParallelRank);
      if (isBindEndpoint(address)) await publisher.bind(address);
      else publisher.connect(address);
      if (replayEndpoint !== undefined) {
        // Room for a whole replay and its end marker, also while a slow subscriber has not acknowledged half of it.
        router = new Router({ linger: 0, sendHighWaterMark: 2 * (log.bufferSteps + 1) });
        await router.bind(offsetEndpointPort(replayEndpoint, dataParallelRank));
      }
    } catch (cause) {
      publisher.close();
      router?.close();
      throw configError(`can't publish at ${endpoint}: ${(cause as Error).message}`, { endpoint }, { cause });
    }
    return new ZmqEventPublisher(publisher, router, log);
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
   * Publishes a batch.
   *
   * @returns its number.
   * @throws MooncakeKvError `ERR_SCHEMA` for a batch that can't be encoded.
   */
  async publish(batch: KVEventBatch): Promise<bigint> {
    const sequence = this.#log.nextSequence;
    const frames = this.#log.publish(batch);
    this.#sends = this.#sends.then(() => this.#publisher.send(frames)).catch(() => {});
    await this.#sends;
    return sequence;
  }

  /** Closes the sockets. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sends;
    this.#publisher.close();
    this.#router?.close();
    await this.#replays;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serveReplays(router: Router): Promise<void> {
    while (!this.#closed) {
      const request = await router.receive().catch(() => undefined);
      if (request === undefined) continue;
      const [identity, , start] = request;
      if (request.length !== 3) {
        this.malformedReplays++;
        continue;
      }
      for (const frames of this.#log.replay(start!)) {
        if (this.#closed) return;
        await router.send([identity!, ...frames]).catch(() => {});
      }
    }
  }
}
