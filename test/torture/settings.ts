/** What a worker of a torture is told. */
export interface WorkerOrder {
  /** What to open. */
  readonly store: Readonly<Record<string, unknown>> & { readonly backend: "embedded" | "mooncake" };
  /** Tells the keys of the workers apart. */
  readonly name: string;
  readonly seed: number;
  readonly milliseconds: number;
}

/** What a worker says while it works: the process of its sidecar, whenever that is another. */
export interface WorkerNews {
  readonly sidecarPid: number;
}

/** What a worker has found out. */
export interface WorkerReport {
  readonly calls: number;
  /** Calls that gave what was asked for. */
  readonly good: number;
  /** Bytes that were compared. */
  readonly compared: number;
  /** Calls that rejected because the backend broke down under them. */
  readonly brokenDown: number;
  /** Keys that had no answer in time. */
  readonly inVain: number;
  readonly restarts: number;
  /** One line for each of: wrong bytes, a value that was acknowledged and is gone, a call that was late, an odd answer. */
  readonly wrong: readonly string[];
  readonly lost: readonly string[];
  readonly late: readonly string[];
  readonly odd: readonly string[];
  /** The longest that a call took beyond its deadline, in milliseconds. */
  readonly latest: number;
}

/** Milliseconds that a call may take beyond its deadline. */
export const TOLERANCE_MS = 100;

/** In shared memory: how often the master was started, and whether it is gone at this moment. */
export const EPOCH = 0;
export const MASTER_IS_GONE = 1;
