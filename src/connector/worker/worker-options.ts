import type { OptionNames } from "../../checks/checks-for.js";
import type { LookupSessionOptions } from "../../coordinator/lookup/lookup-session.js";
import type { TimeLimitOptions, WorkerTimeLimits } from "../time-limits.js";
import type { ConnectorLogger } from "../user-callbacks.js";
import type { WorkerStore } from "./store-calls.js";
import type { WorkerConfig } from "./worker-config.js";

/** What a worker works with. */
export interface MooncakeStoreWorkerOptions {
  readonly config: WorkerConfig;
  /** The store. It stays the caller's: `close` does not close it. */
  readonly store: WorkerStore;
  /** Whether `registerKvCaches` registers memory with the store. Off for memory of an arena of the store. Default: true. */
  readonly registerMemory?: boolean | undefined;
  /** Segment to prefer for new objects. Default: none. */
  readonly preferredSegment?: string | undefined;
  /** Whether the store knows groups of objects; without, `enable_group_semantics` does nothing. Default: true. */
  readonly supportsGroupIds?: boolean | undefined;
  /** Bytes of the buffer that loads from disk pass through; they are split to fit it. Default: no splitting. */
  readonly diskOffloadBufferBudgetBytes?: number | undefined;
  /** The share of it that one load may fill. Default: 0.9. */
  readonly diskStagingUsableRatio?: number | undefined;
  /** Loads that run at the same time. Default: 1. */
  readonly recvThreads?: number | undefined;
  /** Whether the logger is told where loaded objects lay. It renews their leases. Default: false. */
  readonly tierLog?: boolean | undefined;
  /** Whether events carry hashes as 64-bit integers. Default: true. */
  readonly useIntBlockHashes?: boolean | undefined;
  /** Store jobs that may wait; one more is reported at once, and stores nothing. Default: 4096. */
  readonly maxQueuedSaves?: number | undefined;
  /** Loads that may wait; one more fails at once, so that the engine computes. Default: 4096. */
  readonly maxQueuedLoads?: number | undefined;
  /** How lookups ask. */
  readonly lookupWindows?: LookupSessionOptions["windows"] | undefined;
  /** How long the worker waits for the store. Default: `DEFAULT_WORKER_TIME_LIMITS`. */
  readonly timeLimits?: TimeLimitOptions<WorkerTimeLimits> | undefined;
  /** Told of troubles. It may throw: that costs nothing but what it would have said. */
  readonly logger?: ConnectorLogger | undefined;
}

/** The names of `MooncakeStoreWorkerOptions`. */
export const WORKER_OPTIONS: OptionNames<MooncakeStoreWorkerOptions> = {
  config: 1,
  store: 1,
  registerMemory: 1,
  preferredSegment: 1,
  supportsGroupIds: 1,
  diskOffloadBufferBudgetBytes: 1,
  diskStagingUsableRatio: 1,
  recvThreads: 1,
  tierLog: 1,
  useIntBlockHashes: 1,
  maxQueuedSaves: 1,
  maxQueuedLoads: 1,
  lookupWindows: 1,
  timeLimits: 1,
  logger: 1,
};

/** What became of requests since the last step. */
export interface TransferResults {
  /** Always empty: blocks of a job are given back when it is reported, not when its request ends. */
  readonly finishedSending: ReadonlySet<string>;
  /** Requests all of whose loads have ended. */
  readonly finishedRecving: ReadonlySet<string>;
  /** Those among them of which a block was not filled, in an engine with several cache groups. */
  readonly failedRecving: ReadonlySet<string>;
}

/** What a worker remembers of the requests that it saves. */
export interface WorkerSnapshot {
  /** Tokens up to which each request is stored. */
  readonly savedOffsets: ReadonlyMap<string, number>;
  /** Jobs of each request that wait or run. */
  readonly liveJobs: ReadonlyMap<string, readonly number[]>;
  /** Whether the store had no room at the last put. */
  readonly pressure: boolean;
  /** Requests that pause until a put succeeds. */
  readonly pausedRequests: readonly string[];
  /** Requests that have ended while jobs of theirs wait or run. */
  readonly awaitingRetire: readonly string[];
}
