import { setTimeout as sleep } from "node:timers/promises";
import { type Checks, checksFor } from "../checks/checks-for.js";
import { describe, MooncakeKvError } from "../errors.js";
import type { FlatKeys } from "../key/key-table.js";
import { storeCode } from "./shared/codes.js";
import type { FailureReasons } from "./shared/failure-reasons.js";
import { KeyList, pickKeys, type StoreKeys } from "./shared/keys.js";
import { type StoreOperation, StoreResult } from "./store-result.js";

const STORE: Checks = checksFor("ERR_STORE");

/** How `retryKeys` tries again. */
export interface RetryOptions {
  /** Calls at most, the first included. Default: 5. */
  readonly attempts?: number | undefined;
  /** Milliseconds before the second call; each later pause is twice as long. Default: 20. */
  readonly delayMs?: number | undefined;
  /** The longest pause, in milliseconds. Default: 1,000. */
  readonly maxDelayMs?: number | undefined;
  /** Ends the waiting: rejects with the signal's reason. Hand it to the calls, too. */
  readonly signal?: AbortSignal | undefined;
}

/** Calls that write or ask and can be told apart key by key. */
type Retried = StoreResult<Int32Array> | StoreResult<BigInt64Array>;

/**
 * Calls a store, and calls it again for those keys whose code says that trying again may help (`StoreCode.retry`: no room
 * yet, a lease that runs, an outage, a deadline). `call` gets the keys of an attempt, and their positions in `keys`, by
 * which it picks segments (`SegmentTable.pick`) or values:
 *
 *     const saved = await retryKeys(keys, (some, at) => store.putFrom(some, segments.pick(at)));
 *
 * The result has the last code of each key. A put that is tried again after -901 or -900 may have happened the first time;
 * a key that exists keeps its bytes, so that this does no harm.
 *
 * @throws MooncakeKvError `ERR_STORE` for options that are none; whatever `call` throws; the reason of `signal`.
 */
export async function retryKeys<Result extends Retried>(
  keys: StoreKeys,
  call: (keys: FlatKeys, positions: readonly number[]) => Promise<Result>,
  options: RetryOptions = {},
): Promise<StoreResult<Result["codes"]>> {
  STORE.names("retryKeys", options, { attempts: 1, delayMs: 1, maxDelayMs: 1, signal: 1 });
  const attempts = whole("attempts", options.attempts ?? 5, 1);
  const maxDelayMs = whole("maxDelayMs", options.maxDelayMs ?? 1_000, 0);
  let delayMs = whole("delayMs", options.delayMs ?? 20, 0);
  const list = new KeyList(keys);
  let positions = Array.from({ length: list.length }, (_, position) => position);
  const first = await call(list.flat, positions);
  const codes = first.codes.slice() as Result["codes"];
  const reasons = new Map<number, string>();
  note(first, positions, codes, reasons);
  for (let attempt = 1; attempt < attempts; attempt++) {
    positions = positions.filter((position) => storeCode(Number(codes[position])).retry);
    if (positions.length === 0) break;
    const pause = Math.min(delayMs, maxDelayMs);
    await sleep(pause, undefined, options.signal && { signal: options.signal }).catch((error: unknown) => {
      throw options.signal?.aborted ? options.signal.reason : error;
    });
    delayMs *= 2;
    note(await call(pickKeys(list.flat, positions), positions), positions, codes, reasons);
  }
  return new StoreResult(first.operation as StoreOperation, list, codes, reasons as FailureReasons);
}

/** Takes over what an attempt says of its keys. */
function note(
  result: Retried,
  positions: readonly number[],
  codes: Int32Array | BigInt64Array,
  reasons: Map<number, string>,
): void {
  for (const [index, position] of positions.entries()) {
    codes[position] = result.codes[index]!;
    reasons.delete(position);
  }
  for (const { index, reason } of result.failures())
    if (reason !== undefined) reasons.set(positions[index]!, reason);
}

function whole(option: string, value: unknown, least: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw new MooncakeKvError(
    "ERR_STORE",
    `retryKeys: ${option} is ${describe(value)}; it is a whole number of at least ${least}`,
    { option, value },
  );
}
