import type { SegmentTable } from "../../layout/segment-table.js";
import type { KvStore } from "../../store/kv-store.js";
import type { CallOptions, PutOptions } from "../../store/shared/call-options.js";
import type { ReplicaDescriptor } from "../../store/shared/replica.js";
import type { CallLimit } from "../call-limit.js";
import type { OperationStatus, RecordOperation, StoreOperationName } from "../metrics/connector-stats.js";
import { answersOf, type StoreAnswers, unansweredKeys, unfilledRows, unstoredRows } from "./store-answers.js";

/**
 * What a worker needs of a store: any `KvStore` has it. With `remove`, objects of a put that ended after it was given up
 * are taken out of the store again.
 *
 * A store must be done with the memory of a call when its promise is settled, and settle it soon after `deadlineMs`.
 */
export type WorkerStore = Pick<
  KvStore,
  "registerBuffer" | "unregisterBuffer" | "exists" | "putFrom" | "getInto" | "replicas" | "removeAll"
> &
  Partial<Pick<KvStore, "remove">>;

/** What came of a put or a get. */
export interface TransferAnswer {
  readonly codes: StoreAnswers;
  /** Positions of the objects that were not stored, or not read in full. */
  readonly failed: ReadonlySet<number>;
}

type Keys = Parameters<KvStore["exists"]>[0] & { readonly length: number };

interface CountedCall {
  readonly operation: StoreOperationName;
  readonly numKeys: number;
  readonly numBytes: number;
  readonly limit: CallLimit;
}

/**
 * A store whose calls are timed, counted and limited, and whose answers are judged. A call that fails, is given up or has
 * not one answer a key is recorded as an error and rejects.
 */
export class CountedStore {
  readonly #store: WorkerStore;
  readonly #record: RecordOperation;

  constructor(store: WorkerStore, record: RecordOperation) {
    this.#store = store;
    this.#record = record;
  }

  /** Whether keys exist, to find out what is to be saved: only exactly 1 says so, whatever else stands there is put. */
  async savedKeys(keys: readonly string[], limit: CallLimit): Promise<StoreAnswers> {
    const call = { operation: "save_exists", numKeys: keys.length, numBytes: 0, limit } as const;
    const { codes } = await this.#call(
      call,
      (options) => this.#store.exists(keys, options),
      // As vLLM counts them: whatever the answer, it costs no more than a put of what exists.
      () => new Set(),
    );
    return codes;
  }

  /** Whether keys exist, for a lookup: one answer a key, which may be none. */
  async lookUp(keys: Keys, limit: CallLimit): Promise<ArrayLike<number>> {
    const call = { operation: "lookup_exists", numKeys: keys.length, numBytes: 0, limit } as const;
    const { codes } = await this.#call(call, (options) => this.#store.exists(keys, options), unansweredKeys);
    return codes as readonly number[];
  }

  /** Stores objects. A put that is given up, and then ends after all, is undone as far as that is possible. */
  put(
    keys: readonly string[],
    segments: SegmentTable,
    options: PutOptions,
    limit: CallLimit,
    late: (problem: string, error?: unknown) => void,
  ): Promise<TransferAnswer> {
    return this.#call(
      { operation: "save_put", numKeys: keys.length, numBytes: Number(segments.totalBytes()), limit },
      (callOptions) => this.#store.putFrom(keys, segments, { ...options, ...callOptions }),
      unstoredRows,
      () => this.#undo(keys, late),
    );
  }

  /** Reads objects into memory. */
  get(keys: readonly string[], segments: SegmentTable, limit: CallLimit): Promise<TransferAnswer> {
    return this.#call(
      { operation: "load_get", numKeys: keys.length, numBytes: Number(segments.totalBytes()), limit },
      (options) => this.#store.getInto(keys, segments, options),
      (codes) => unfilledRows(codes, segments),
    );
  }

  /** Where objects lie; not counted. */
  async replicas(
    keys: readonly string[],
    limit: CallLimit,
  ): Promise<readonly (readonly ReplicaDescriptor[])[]> {
    const { replicas } = await limit.run("replicas", (options) => this.#store.replicas(keys, options));
    return replicas;
  }

  async #call(
    { operation, numKeys, numBytes, limit }: CountedCall,
    call: (options: CallOptions) => PromiseLike<unknown>,
    failures: (codes: StoreAnswers) => Set<number>,
    late?: () => void,
  ): Promise<TransferAnswer> {
    const start = performance.now();
    const record = (status: OperationStatus, numFailedKeys: number) =>
      this.#record(operation, {
        durationSeconds: (performance.now() - start) / 1e3,
        numKeys,
        numBytes,
        status,
        numFailedKeys,
      });
    try {
      const codes = answersOf(await limit.run(operation, call, late), numKeys);
      const failed = failures(codes);
      record(failed.size > 0 ? "partial_failure" : "ok", failed.size);
      return { codes, failed };
    } catch (error) {
      record("error", numKeys);
      throw error;
    }
  }

  /**
   * The blocks of the put were given back before it ended, so what it stored may be of other tokens. Not by force: that
   * could pull the memory from under a reader of the right bytes.
   */
  #undo(keys: readonly string[], late: (problem: string, error?: unknown) => void): void {
    const remove = async (): Promise<void> => {
      if (this.#store.remove === undefined) {
        late(
          "a put ended after it was given up; what it stored may be wrong, and this store can't remove it",
        );
        return;
      }
      await this.#store.remove(keys);
      late(
        "a put ended after it was given up; the store was told to remove what it stored, which may be wrong",
      );
    };
    remove().catch((error: unknown) =>
      late("a put ended after it was given up; what it stored may be wrong, and was not removed", error),
    );
  }
}
