import type { Dealer } from "zeromq";
import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { type EventMessage, parseReplayFrames } from "./event-frames.js";
import { sequenceFrame } from "./event-log.js";

/** Why a replay came to no end. */
export type ReplayFailureReason =
  /** Nobody answers at the endpoint. */
  | "refused"
  /** The publisher fell silent. */
  | "timeout"
  /** The connection broke before the end. */
  | "disconnected"
  /** It took longer than a replay may. */
  | "too-long"
  /** There were more batches than a replay may have. */
  | "too-many"
  /** The numbers did not grow, or were none that was asked for. */
  | "misbehaved"
  /** The socket could not be used. */
  | "socket";

/** Ends a replay that has not come to its end. */
export class ReplayFailure extends Error {
  override readonly name = "ReplayFailure";
  readonly reason: ReplayFailureReason;

  constructor(reason: ReplayFailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** How much a replay may take. */
export interface ReplayLimits {
  /** Milliseconds that may pass between two messages. */
  readonly silenceMs: number;
  /** Milliseconds of waiting in all. What the reader takes for itself does not count. */
  readonly totalMs: number;
  /** Batches in all. */
  readonly batches: number;
  /** Bytes of one batch. */
  readonly messageBytes: number;
}

/** Milliseconds in which what has been received must come out of the socket of a broken connection. */
const DRAIN_MS = 100;

/**
 * Asks a publisher for its kept batches from a number on, in their order. Each replay has a socket of its own, so that
 * what a broken-off one still sends can't get into the next.
 *
 * @param signal ends it at once, without a failure.
 * @throws ReplayFailure when the publisher does not come to the end marker, in time and in order.
 */
export async function* replayEvents(
  endpoint: string,
  from: bigint,
  limits: ReplayLimits,
  signal: AbortSignal,
): AsyncGenerator<EventMessage> {
  const { Dealer } = await loadZeroMq();
  if (signal.aborted) return;
  const socket = new Dealer({
    linger: 0,
    sendTimeout: limits.silenceMs,
    // A publisher sends all at once, and what finds no room on the way is dropped, the end marker too.
    receiveHighWaterMark: limits.batches + 1,
    maxMessageSize: limits.messageBytes,
  });
  const stop = (): void => socket.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    yield* new Replay(socket, endpoint, limits).batches(from);
  } catch (cause) {
    if (signal.aborted) return;
    if (cause instanceof ReplayFailure) throw cause;
    throw new ReplayFailure("socket", `the replay from ${endpoint} failed: ${(cause as Error).message}`, {
      cause,
    });
  } finally {
    signal.removeEventListener("abort", stop);
    socket.close();
  }
}

/** One replay on its socket. */
class Replay {
  readonly #socket: Dealer;
  readonly #endpoint: string;
  readonly #limits: ReplayLimits;
  /** Milliseconds that are left to wait. */
  #left: number;
  /** Within one process there is no connection that could fail. */
  #connected: boolean;
  #broken = false;
  #onBroken: (() => void) | undefined;

  constructor(socket: Dealer, endpoint: string, limits: ReplayLimits) {
    this.#socket = socket;
    this.#endpoint = endpoint;
    this.#limits = limits;
    this.#left = limits.totalMs;
    this.#connected = endpoint.startsWith("inproc:");
    socket.events.on("handshake", () => {
      this.#connected = true;
    });
    socket.events.on("disconnect", () => {
      this.#broken = true;
      this.#onBroken?.();
    });
    // Without a listener the end of a socket that failed is an error that nobody catches.
    socket.events.on("end", () => {});
  }

  async *batches(from: bigint): AsyncGenerator<EventMessage> {
    this.#socket.connect(this.#endpoint);
    await this.#socket.send([new Uint8Array(0), sequenceFrame(from)]);
    const { batches } = this.#limits;
    let due = from;
    for (let count = 0; ; count++) {
      const message = parseReplayFrames(await this.#receive());
      if (message === "end") return;
      if (message === undefined) throw this.#failure("misbehaved", "sent what is no batch");
      const { sequence } = message;
      if (sequence < due)
        throw this.#failure("misbehaved", `sent batch ${sequence} where ${due} or a later one was due`);
      if (count === batches) throw this.#failure("too-many", `sent more than ${batches} batches`);
      due = sequence + 1n;
      yield message;
    }
  }

  async #receive(): Promise<Uint8Array[]> {
    const { silenceMs } = this.#limits;
    if (this.#left <= 0) throw this.#tooLong();
    const wait = this.#broken ? DRAIN_MS : Math.ceil(Math.min(silenceMs, this.#left));
    this.#socket.receiveTimeout = wait;
    let timer: NodeJS.Timeout | undefined;
    this.#onBroken = () => {
      timer = setTimeout(() => this.#socket.close(), DRAIN_MS);
    };
    const began = performance.now();
    try {
      return plainFrames(await this.#socket.receive());
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      if (!this.#connected) throw this.#failure("refused", "was not to be had: nobody answers there");
      if (this.#broken) throw this.#failure("disconnected", "ended with its connection");
      if (wait < silenceMs) throw this.#tooLong();
      throw this.#failure("timeout", `was silent for ${silenceMs} ms before its end`);
    } finally {
      this.#left -= performance.now() - began;
      this.#onBroken = undefined;
      clearTimeout(timer);
    }
  }

  #tooLong(): ReplayFailure {
    return this.#failure("too-long", `took longer than ${this.#limits.totalMs} ms`);
  }

  #failure(reason: ReplayFailureReason, message: string): ReplayFailure {
    return new ReplayFailure(reason, `the replay from ${this.#endpoint} ${message}`);
  }
}
