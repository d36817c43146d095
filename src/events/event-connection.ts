import type { Subscriber } from "zeromq";
import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { configError } from "./errors.js";

/** To whom a connection goes, and what it takes. */
export interface EventConnectionOptions {
  readonly endpoint: string;
  readonly topic: string;
  readonly highWaterMark: number;
  readonly maxMessageBytes: number;
}

/** Milliseconds in which a publisher has to answer a connection. */
const ATTEMPT_MS = 5_000;

/** Milliseconds in which what has been received must come out of the socket of a broken connection. */
const DRAIN_MS = 50;

/**
 * Milliseconds that are never over: the socket must not reconnect. Told to never do it, it would drop what has been received
 * when its connection breaks.
 */
const NEVER_MS = 2 ** 30;

/** Seconds after which the system asks whether a silent peer is still there, between two asks, and how many there are. */
const KEEPALIVE = { tcpKeepalive: 1, tcpKeepaliveIdle: 10, tcpKeepaliveInterval: 5, tcpKeepaliveCount: 3 };

/**
 * One connection to a publisher, on a socket of its own that never reconnects. So all that it gives comes from one
 * process: messages of the one that was there before can't be taken for those of the one that is there now.
 */
export class EventConnection {
  readonly #socket: Subscriber;
  /** Whether the publisher has answered; false once it can't any more. */
  readonly opened: Promise<boolean>;
  #broken = false;
  #onBroken: (() => void) | undefined;

  private constructor(socket: Subscriber, options: EventConnectionOptions) {
    this.#socket = socket;
    this.opened = this.#open(options);
  }

  /**
   * Begins to connect.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for an endpoint that is none, or when zeromq is missing.
   */
  static async open(options: EventConnectionOptions): Promise<EventConnection> {
    const { Subscriber } = await loadZeroMq();
    const socket = new Subscriber({
      ...KEEPALIVE,
      linger: 0,
      reconnectInterval: NEVER_MS,
      receiveHighWaterMark: options.highWaterMark,
      maxMessageSize: options.maxMessageBytes,
    });
    return new EventConnection(socket, options);
  }

  #open({ endpoint, topic }: EventConnectionOptions): Promise<boolean> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(false), ATTEMPT_MS);
      const settle = (answered: boolean): void => {
        clearTimeout(timer);
        resolve(answered);
      };
      const end = (): void => {
        settle(false);
        this.#broken = true;
        this.#onBroken?.();
      };
      socket.events.on("handshake", () => settle(true));
      for (const type of ["close", "disconnect", "end"] as const) socket.events.on(type, end);
      try {
        socket.subscribe(topic);
        socket.connect(endpoint);
      } catch (cause) {
        clearTimeout(timer);
        const why = `can't subscribe to ${endpoint}: ${(cause as Error).message}`;
        reject(configError(why, { endpoint }, { cause }));
        return;
      }
      // Within one process there is nothing to wait for, and nothing that could break.
      if (endpoint.startsWith("inproc:")) settle(true);
    });
  }

  /**
   * The frames of the next message; undefined once the connection is broken and all that it brought was read.
   *
   * @throws Error when the socket can't receive.
   */
  receive(): Promise<Uint8Array[] | undefined> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const drain = (): void => {
        timer ??= setTimeout(() => resolve(undefined), DRAIN_MS);
      };
      const done = (): void => {
        clearTimeout(timer);
        this.#onBroken = undefined;
      };
      this.#onBroken = drain;
      if (this.#broken) drain();
      this.#socket.receive().then(
        (frames) => {
          done();
          resolve(plainFrames(frames));
        },
        (error: Error) => {
          done();
          if (this.#socket.closed) resolve(undefined);
          else reject(error);
        },
      );
    });
  }

  /** Ends the connection; whoever waits for a message gets none. Closing twice is fine. */
  close(): void {
    this.#socket.close();
  }
}
