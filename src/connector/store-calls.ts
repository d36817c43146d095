import { describe, MooncakeKvError } from "../errors.js";
import type { SegmentTable } from "../layout/segment-table.js";
import type { KvStore } from "../store/kv-store.js";
import type { PutOptions } from "../store/shared/call-options.js";
import type { StoreKeys } from "../store/shared/keys.js";
import type { RecordOperation, StoreOperationName } from "./connector-stats.js";

/** What a worker needs of a store: any `KvStore` has it. */
export type WorkerStore = Pick<
  KvStore,
  "registerBuffer" | "unregisterBuffer" | "exists" | "putFrom" | "getInto" | "replicas" | "removeAll"
>;

/** What is said about a worker's troubles. */
export interface ConnectorLogger {
  warn(message: string, details: Readonly<Record<string, unknown>>): void;
  info?(message: string, details: Readonly<Record<string, unknown>>): void;
}

/** A store whose calls are timed and counted. A failed call is recorded as an error and rejects. */
export class CountedStore {
  readonly store: WorkerStore;
  readonly #record: RecordOperation;

  constructor(store: WorkerStore, record: RecordOperation) {
    this.store = store;
    this.#record = record;
  }

  /** One answer a key; exactly 1 means that the object exists. */
  exists(
    operation: "save_exists" | "lookup_exists",
    keys: StoreKeys & { readonly length: number },
  ): Promise<ArrayLike<number>> {
    return this.#call(
      operation,
      keys.length,
      0,
      () => this.store.exists(keys),
      () => 0,
    );
  }

  /** One code a key; a negative one is a failure. */
  put(keys: readonly string[], segments: SegmentTable, options: PutOptions): Promise<ArrayLike<number>> {
    const bytes = Number(segments.totalBytes());
    return this.#call(
      "save_put",
      keys.length,
      bytes,
      () => this.store.putFrom(keys, segments, options),
      failures,
    );
  }

  /** One code a key; a negative one is a failure. */
  async get(keys: readonly string[], segments: SegmentTable): Promise<ArrayLike<number | bigint>> {
    const bytes = Number(segments.totalBytes());
    return this.#call("load_get", keys.length, bytes, () => this.store.getInto(keys, segments), failures);
  }

  async #call<Codes extends ArrayLike<number | bigint>>(
    operation: StoreOperationName,
    numKeys: number,
    numBytes: number,
    call: () => Promise<{ readonly codes: Codes }>,
    failed: (codes: Codes) => number,
  ): Promise<Codes> {
    const start = performance.now();
    const record = (status: "ok" | "partial_failure" | "error", numFailedKeys: number) =>
      this.#record(operation, {
        durationSeconds: (performance.now() - start) / 1e3,
        numKeys,
        numBytes,
        status,
        numFailedKeys,
      });
    try {
      const { codes } = await call();
      if (codes.length !== numKeys)
        throw new MooncakeKvError(
          "ERR_STORE",
          `the store gave ${describe(codes.length)} results for ${numKeys} keys`,
          { results: codes.length, keys: numKeys },
        );
      const numFailedKeys = failed(codes);
      record(numFailedKeys > 0 ? "partial_failure" : "ok", numFailedKeys);
      return codes;
    } catch (error) {
      record("error", numKeys);
      throw error;
    }
  }
}

/** Positions of the negative codes. */
export function failedPositions(codes: ArrayLike<number | bigint>): Set<number> {
  const positions = new Set<number>();
  for (let i = 0; i < codes.length; i++) if (codes[i]! < 0) positions.add(i);
  return positions;
}

function failures(codes: ArrayLike<number | bigint>): number {
  return failedPositions(codes).size;
}
