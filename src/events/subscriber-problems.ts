import type { ReplayFailureReason } from "./event-replay.js";

/** Something that went wrong in a subscription. */
export interface SubscriberProblem {
  /**
   * `frames`: a message was no batch by its frames. `batch`: the payload of a batch could not be read. `event`: one event
   * of a batch could not, and is left out. `replay`: a replay came to no end. `connection`: it broke, or nobody answers.
   * `receive`: the socket could not receive.
   */
  readonly reason: "frames" | "batch" | "event" | "replay" | "connection" | "receive";
  readonly message: string;
  /** Number of the batch that it is about; undefined where it is about none. */
  readonly sequence?: bigint | undefined;
}

/** How many messages there were, by what became of them. */
export interface SubscriberCounters {
  /** Connections that the publisher has answered; all but the first are reconnections. */
  connections: number;
  batches: number;
  replayed: number;
  duplicates: number;
  gaps: number;
  /** Batches that were lost for good. */
  lost: number;
  /** Messages that were no batch: by their frames, or because their payload could not be read. */
  malformed: number;
  restarts: number;
  /** Connections that came back without anybody who could say whether the engine is the same. */
  unprovenReconnects: number;
  /** Replays that came to no end. */
  failedReplays: number;
  /** The same, by reason. */
  readonly replayFailures: Record<ReplayFailureReason, number>;
  /** Times that the socket could not receive. */
  receiveErrors: number;
  /** Events that could not be read. */
  malformedEvents: number;
  unknownEvents: number;
  unknownFields: number;
}

/** Counters that stand at 0. */
export function newSubscriberCounters(): SubscriberCounters {
  return {
    connections: 0,
    batches: 0,
    replayed: 0,
    duplicates: 0,
    gaps: 0,
    lost: 0,
    malformed: 0,
    restarts: 0,
    unprovenReconnects: 0,
    failedReplays: 0,
    replayFailures: {
      refused: 0,
      timeout: 0,
      disconnected: 0,
      "too-long": 0,
      "too-many": 0,
      misbehaved: 0,
      socket: 0,
    },
    receiveErrors: 0,
    malformedEvents: 0,
    unknownEvents: 0,
    unknownFields: 0,
  };
}
