import { describe } from "../errors.js";
import { checkNames, wholeOption } from "../lookup/options.js";
import { checkConnectEndpoint } from "./endpoint.js";
import { configError } from "./errors.js";
import type { ReplayLimits } from "./event-replay.js";
import type { SubscriberProblem } from "./subscriber-problems.js";

/** Whose events to follow, and from where. */
export interface EventSubscriberOptions {
  /** PUB endpoint of the engine (`tcp://host:5557`); with data parallelism, of one rank: see `offsetEndpointPort`. */
  readonly endpoint: string;
  /**
   * ROUTER endpoint of the same rank, for batches that were missed. Without one, nothing can tell after a broken
   * connection whether the engine is the same, so that every reconnection loses what was known.
   */
  readonly replayEndpoint?: string | undefined;
  /** Only topics that begin so. Default: all. */
  readonly topic?: string | undefined;
  /** Whether to replay what the engine has kept, at the start. Default: `beginning` with a `replayEndpoint`, else `now`. */
  readonly from?: "beginning" | "now" | undefined;
  /** Messages that wait in memory for a slow reader; beyond it the publisher drops, and a gap follows. Default: 100,000. */
  readonly highWaterMark?: number | undefined;
  /** Bytes of one message; the connection to a publisher that sends a larger one ends. Default: 64 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Milliseconds that a replay may be silent. Default: 5,000. */
  readonly replayTimeoutMs?: number | undefined;
  /** Milliseconds that a replay may be waited for in all; live batches wait meanwhile. Default: 30,000. */
  readonly replayTotalMs?: number | undefined;
  /** Batches that a replay may have. Default: 100,000, ten times what vLLM keeps by default. */
  readonly replayMaxBatches?: number | undefined;
  /** Ends the subscription. */
  readonly signal?: AbortSignal | undefined;
  /** Told of everything that went wrong on the way. What it throws is ignored. */
  readonly onProblem?: ((problem: SubscriberProblem) => void) | undefined;
}

/** Options of a subscription, checked and filled in. */
export interface CheckedSubscriberOptions {
  readonly endpoint: string;
  readonly replayEndpoint: string | undefined;
  readonly topic: string;
  readonly from: "beginning" | "now";
  readonly highWaterMark: number;
  readonly maxMessageBytes: number;
  readonly replayLimits: ReplayLimits;
  readonly signal: AbortSignal | undefined;
  readonly onProblem: ((problem: SubscriberProblem) => void) | undefined;
}

const NAMES: readonly (keyof EventSubscriberOptions)[] = [
  "endpoint",
  "replayEndpoint",
  "topic",
  "from",
  "highWaterMark",
  "maxMessageBytes",
  "replayTimeoutMs",
  "replayTotalMs",
  "replayMaxBatches",
  "signal",
  "onProblem",
];

/**
 * Checks the options of a subscription.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option, its value and what would be right.
 */
export function checkedSubscriberOptions(options: EventSubscriberOptions): CheckedSubscriberOptions {
  checkNames("EventSubscriber", options, NAMES);
  const { endpoint, replayEndpoint, topic = "", signal, onProblem } = options;
  checkConnectEndpoint("endpoint", endpoint);
  if (replayEndpoint !== undefined) checkConnectEndpoint("replayEndpoint", replayEndpoint);
  if (typeof topic !== "string")
    throw configError(`topic is ${describe(topic)}; it must be a text`, { topic });
  const from = options.from ?? (replayEndpoint === undefined ? "now" : "beginning");
  if (from !== "beginning" && from !== "now")
    throw configError(`from is ${describe(from)}; it is beginning or now`, { from });
  if (from === "beginning" && replayEndpoint === undefined)
    throw configError("to start from the beginning, events need a replayEndpoint");
  if (onProblem !== undefined && typeof onProblem !== "function")
    throw configError(`onProblem is ${describe(onProblem)}; it must be a function`, { onProblem });
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw configError(`signal is ${describe(signal)}; it must be an AbortSignal`, { signal });
  return {
    endpoint,
    replayEndpoint,
    topic,
    from,
    highWaterMark: wholeOption("highWaterMark", options.highWaterMark, 100_000),
    maxMessageBytes: wholeOption("maxMessageBytes", options.maxMessageBytes, 64 << 20),
    replayLimits: {
      silenceMs: wholeOption("replayTimeoutMs", options.replayTimeoutMs, 5_000),
      totalMs: wholeOption("replayTotalMs", options.replayTotalMs, 30_000),
      batches: wholeOption("replayMaxBatches", options.replayMaxBatches, 100_000),
      messageBytes: wholeOption("maxMessageBytes", options.maxMessageBytes, 64 << 20),
    },
    signal,
    onProblem,
  };
}
