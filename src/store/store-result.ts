import type { FailureReasons } from "./shared/failure-reasons.js";
import type { KeyList } from "./shared/keys.js";
import type { ReplicaDescriptor } from "./shared/replica.js";
import { StoreError, type StoreFailure } from "./store-error.js";

/** The calls that give a result a key. */
export type StoreOperation =
  | "putFrom"
  | "put"
  | "upsertFrom"
  | "upsert"
  | "getInto"
  | "get"
  | "exists"
  | "size"
  | "replicas"
  | "remove";

/** What a result of an operation says about its key. */
type Verdict = "ok" | "absent" | "failed";

/**
 * The results of a batch call: Mooncake's own number for every key, in the order of the keys.
 *
 * | operation | `codes` | counts as ok |
 * |---|---|---|
 * | putFrom, put, upsertFrom, upsert, remove | `Int32Array` | 0 |
 * | exists | `Int32Array` | exactly 1; 0 (absent) is neither ok nor a failure |
 * | getInto, get | `BigInt64Array`: bytes read | 0 and more |
 * | size | `BigInt64Array`: bytes | 0 and more |
 * | replicas | `Int32Array`: number of replicas | 0 and more |
 */
export class StoreResult<Codes extends Int32Array | BigInt64Array = Int32Array | BigInt64Array> {
  readonly operation: StoreOperation;
  readonly codes: Codes;
  /** Number of keys whose result is ok. */
  readonly ok: number;
  readonly #keys: KeyList;
  readonly #reasons: FailureReasons | undefined;

  constructor(operation: StoreOperation, keys: KeyList, codes: Codes, reasons?: FailureReasons) {
    this.operation = operation;
    this.codes = codes;
    this.#keys = keys;
    this.#reasons = reasons;
    let ok = 0;
    for (let i = 0; i < codes.length; i++) if (verdict(operation, codes[i]!) === "ok") ok++;
    this.ok = ok;
  }

  /** Number of keys. */
  get length(): number {
    return this.codes.length;
  }

  /** Whether the result of key `index` is ok; false outside the batch. */
  isOk(index: number): boolean {
    const code = this.codes[index];
    return code !== undefined && verdict(this.operation, code) === "ok";
  }

  /** The keys that failed, in order, each with its code. */
  failures(): StoreFailure[] {
    const failures: StoreFailure[] = [];
    for (let index = 0; index < this.codes.length; index++) {
      const code = this.codes[index]!;
      if (verdict(this.operation, code) !== "failed") continue;
      const reason = this.#reasons?.get(index);
      const failure = { index, key: this.#keys.at(index), code: Number(code) };
      failures.push(reason === undefined ? failure : { ...failure, reason });
    }
    return failures;
  }

  /**
   * Returns itself when no key failed.
   *
   * @throws StoreError that names the codes, their meaning and the first keys.
   */
  throwIfFailed(): this {
    const failures = this.failures();
    if (failures.length > 0) throw new StoreError(this.operation, this.length, failures);
    return this;
  }
}

/** The result of `KvStore.get`: codes and values. */
export class ReadResult extends StoreResult<BigInt64Array> {
  /** The value of each key, in memory of its own; undefined where the code is negative. */
  readonly values: readonly (Uint8Array | undefined)[];

  constructor(
    keys: KeyList,
    codes: BigInt64Array,
    values: readonly (Uint8Array | undefined)[],
    reasons?: FailureReasons,
  ) {
    super("get", keys, codes, reasons);
    this.values = values;
  }
}

/** The result of `KvStore.replicas`: codes and descriptors. */
export class ReplicaResult extends StoreResult<Int32Array> {
  /** The replicas of each key; empty where the code is negative. */
  readonly replicas: readonly (readonly ReplicaDescriptor[])[];

  constructor(
    keys: KeyList,
    codes: Int32Array,
    replicas: readonly (readonly ReplicaDescriptor[])[],
    reasons?: FailureReasons,
  ) {
    super("replicas", keys, codes, reasons);
    this.replicas = replicas;
  }
}

const WRITES: ReadonlySet<StoreOperation> = new Set(["putFrom", "put", "upsertFrom", "upsert", "remove"]);

function verdict(operation: StoreOperation, code: number | bigint): Verdict {
  if (operation === "exists") return code === 1 ? "ok" : code === 0 ? "absent" : "failed";
  if (WRITES.has(operation)) return code === 0 ? "ok" : "failed";
  return code >= 0 ? "ok" : "failed";
}
