import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { type EventMessage, parseReplayFrames } from "./event-frames.js";
import { sequenceFrame } from "./event-log.js";

/** Why a replay came to no end. */
export type ReplayFailureReason =
  /** The publisher fell silent. */
  | "timeout"
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
  /** Milliseconds in all. */
  readonly totalMs: number;
  /** Batches in all. */
  readonly batches: number;
  /** Bytes of one batch. */
  readonly messageBytes: number;
}

/**
 * Asks a publisher for its kept batches from a number on, in their order. Each replay has a socket of its own, so that
 * what a broken-off one still sends can't get into the next.
 *
 * @throws ReplayFailure when the publisher does not come to the end marker, in time and in order.
 */
export async function* replayEvents(
  endpoint: string,
  from: bigint,
  limits: ReplayLimits,
): AsyncGenerator<EventMessage> {
  const { Dealer } = await loadZeroMq();
  const socket = new Dealer({
    linger: 0,
    sendTimeout: limits.silenceMs,
    receiveTimeout: limits.silenceMs,
    receiveHighWaterMark: 1000,
    maxMessageSize: limits.messageBytes,
  });
  const end = performance.now() + limits.totalMs;
  const fail = (reason: ReplayFailureReason, message: string, options?: ErrorOptions): never => {
    throw new ReplayFailure(reason, `the replay from ${endpoint} ${message}`, options);
  };
  let due = from;
  let batches = 0;
  let lastWait = false;
  try {
    socket.connect(endpoint);
    await socket.send([new Uint8Array(0), sequenceFrame(from)]);
    for (;;) {
      const left = end - performance.now();
      if (left <= 0) fail("too-long", `took longer than ${limits.totalMs} ms`);
      lastWait = left < limits.silenceMs;
      socket.receiveTimeout = Math.ceil(Math.min(limits.silenceMs, left));
      const message = parseReplayFrames(plainFrames(await socket.receive()));
      if (message === "end") return;
      if (message === undefined) fail("misbehaved", "sent what is no batch");
      else if (message.sequence < due)
        fail("misbehaved", `sent batch ${message.sequence} where ${due} or a later one was due`);
      else if (++batches > limits.batches) fail("too-many", `sent more than ${limits.batches} batches`);
      else {
        due = message.sequence + 1n;
        yield message;
      }
    }
  } catch (cause) {
    if (cause instanceof ReplayFailure) throw cause;
    if ((cause as NodeJS.ErrnoException).code !== "EAGAIN")
      fail("socket", `failed: ${(cause as Error).message}`, { cause });
    if (lastWait) fail("too-long", `took longer than ${limits.totalMs} ms`, { cause });
    fail("timeout", `was silent for ${limits.silenceMs} ms before its end`, { cause });
  } finally {
    socket.close();
  }
}
