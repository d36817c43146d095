import type { Codes, ReplicaAnswer, Sizes, ValueAnswer } from "./shared/answers.js";
import type { PutOptions } from "./shared/call-options.js";
import type { Deadline } from "./shared/deadline.js";
import type { KeyList } from "./shared/keys.js";
import type { Region } from "./shared/region.js";
import type { CheckedRows } from "./shared/rows.js";
import type { StoreUsage } from "./shared/usage.js";
import type { Values } from "./shared/values.js";

/** How a backend finds itself and whom it speaks to. */
export interface BackendHealth {
  readonly code: 0 | 1 | 2;
  readonly message: string;
  readonly usage?: StoreUsage | undefined;
}

/** Runs a call that only one backend has, as those of `KvStore` run. */
export interface CallRunner {
  /**
   * Checks that the store is open and the options are `CallOptions`, and runs `work` under their deadline; `close` waits for
   * it. Rejects as a call of `KvStore` does.
   */
  run<T>(operation: string, options: unknown, work: (deadline: Deadline) => Promise<T>): Promise<T>;
  /** @throws MooncakeKvError `ERR_STORE` when the store is closed. */
  assertOpen(operation: string): void;
  /** Milliseconds of a call with these options. @throws MooncakeKvError `ERR_STORE` for bad ones. */
  deadlineMs(operation: string, options: unknown): number;
}

/** Calls of the port that a backend may lack. */
export type LackedCall =
  | "putFrom"
  | "put"
  | "upsertFrom"
  | "upsert"
  | "replicas"
  | "remove"
  | "removeByRegex"
  | "removeAll";

/**
 * What a store is made of besides `CheckedStore`: a backend does the work, and nothing of what is the same for all. It gets
 * checked keys, rows, values and options and a `Deadline`, and gives Mooncake's codes.
 *
 * - Nothing that a caller may do wrong arrives here; whatever is thrown rejects the call.
 * - The promise of a call settles when nobody reads or writes the memory of its rows any more, whichever way it ends: that
 *   is what `close` and `unregisterBuffer` wait for.
 * - A key without an answer when the deadline is over gets -901; when the caller has aborted, `CheckedStore` makes the
 *   rejection of that.
 * - Values are copied, or used up, before a call gives its promise back.
 * - A call that a backend does not have is left out: its keys get -1012, with the reason that `lacks` has for it.
 */
export interface StoreBackend<Extras extends object = object> {
  /** The scheme that opens it. */
  readonly name: string;
  /** Milliseconds that a call may take, unless it says so itself; Infinity where none hangs. */
  readonly deadlineMs: number;
  /** Whether arenas may be memory of JavaScript where there is no addon. */
  readonly heapArenas?: boolean | undefined;
  /** Why it has not all calls. */
  readonly lacks?: Partial<Record<LackedCall, string>> | undefined;

  /** Told of memory that calls may use from now on: 0, or -600 when it can't be used. */
  register?(region: Region): Promise<number>;
  /** Told of memory that no call uses any more, and none will. */
  unregister?(region: Region): Promise<void>;

  /** As `KvStore.putFrom`. Rows that are not usable get -600. */
  putFrom?(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.put`. */
  put?(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.upsertFrom`. */
  upsertFrom?(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.upsert`. */
  upsert?(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.getInto`. Rows that are not usable get -600, or the code of an object that can't be read. */
  getInto(keys: KeyList, rows: CheckedRows, deadline: Deadline): Promise<Sizes>;
  /** As `KvStore.get`. */
  get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer>;
  /** As `KvStore.exists`. */
  exists(keys: KeyList, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.size`. */
  size(keys: KeyList, deadline: Deadline): Promise<Sizes>;
  /** As `KvStore.replicas`. */
  replicas?(keys: KeyList, deadline: Deadline): Promise<ReplicaAnswer>;
  /** As `KvStore.remove`. */
  remove?(keys: KeyList, force: boolean, deadline: Deadline): Promise<Codes>;
  /** As `KvStore.removeByRegex`. */
  removeByRegex?(pattern: string, force: boolean, deadline: Deadline): Promise<number>;
  /** As `KvStore.removeAll`. */
  removeAll?(force: boolean, deadline: Deadline): Promise<number>;
  /** As `KvStore.usage`. */
  usage?(deadline: Deadline): Promise<StoreUsage | undefined>;
  /** How it is; what it throws is the message of code 2. */
  health(deadline: Deadline): Promise<BackendHealth>;
  /** Called once, when no call runs any more and none will. */
  close(): Promise<void>;
  /** What only this backend can: its members become members of the store. */
  extras?(calls: CallRunner): Extras;
}
