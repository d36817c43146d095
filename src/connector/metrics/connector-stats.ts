/** The calls on the store that are counted. */
export type StoreOperationName = "lookup_exists" | "save_exists" | "save_put" | "load_get";

/** How a call ended. */
export type OperationStatus = "ok" | "partial_failure" | "error";

/** One call on the store. */
export interface OperationRecord {
  readonly durationSeconds: number;
  readonly numKeys: number;
  readonly numBytes: number;
  readonly status: OperationStatus;
  readonly numFailedKeys: number;
}

/** Takes note of one call. */
export type RecordOperation = (operation: StoreOperationName, record: OperationRecord) => void;

/** Records that are kept of one operation while nobody asks for them. */
const MOST_RECORDS = 65_536;

/**
 * What a worker did since it was last asked, one record a call. Mirrors vLLM's `MooncakeStoreConnectorStats`.
 */
export class MooncakeStoreConnectorStats {
  /** Records by operation, in the order of their time. */
  readonly data: Map<string, OperationRecord[]> = new Map();

  isEmpty(): boolean {
    return this.data.size === 0;
  }

  /** Adds a record. Of very many only the latest are kept. */
  recordOperation(operation: string, record: OperationRecord): void {
    const records = this.data.get(operation);
    if (records === undefined) this.data.set(operation, [record]);
    else if (records.push(record) > MOST_RECORDS) records.splice(0, MOST_RECORDS / 2);
  }

  /** Adds the records of another one, which stays as it is. */
  aggregate(other: MooncakeStoreConnectorStats): this {
    for (const [operation, records] of other.data)
      for (const record of records) this.recordOperation(operation, record);
    return this;
  }

  /**
   * One line of numbers for a log: for every operation, by name, `_count`, `_avg_ms` and `_p90_ms` (nearest rank; both
   * with three digits), `_total_keys`, `_total_bytes`, `_failed_keys` and `_error_count`.
   */
  reduce(): Record<string, number> {
    const reduced: Record<string, number> = {};
    for (const operation of [...this.data.keys()].sort()) {
      const records = this.data.get(operation)!;
      if (records.length === 0) continue;
      const sum = (number: (record: OperationRecord) => number) =>
        records.reduce((total, record) => total + number(record), 0);
      const durations = records.map(({ durationSeconds }) => durationSeconds);
      reduced[`${operation}_count`] = records.length;
      reduced[`${operation}_avg_ms`] = milliseconds(exactSum(durations) / durations.length);
      reduced[`${operation}_p90_ms`] = milliseconds(nearestRank(durations, 0.9));
      reduced[`${operation}_total_keys`] = sum(({ numKeys }) => numKeys);
      reduced[`${operation}_total_bytes`] = sum(({ numBytes }) => numBytes);
      reduced[`${operation}_failed_keys`] = sum(({ numFailedKeys }) => numFailedKeys);
      reduced[`${operation}_error_count`] = sum(({ status }) => (status === "error" ? 1 : 0));
    }
    return reduced;
  }
}

/** The value below which `share` of all lie, as vLLM counts it. */
function nearestRank(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.max(0, Math.min(sorted.length - 1, Math.trunc(share * sorted.length - 1e-12)));
  return sorted[rank]!;
}

/**
 * The sum rounded once, to even, as Python's `fsum` gives it: partial sums that do not overlap keep every bit, and the
 * largest ones decide.
 */
function exactSum(values: readonly number[]): number {
  const partials: number[] = [];
  for (const value of values) {
    let high = value;
    let kept = 0;
    for (const partial of partials) {
      const sum = high + partial;
      const error = roundingError(high, partial, sum);
      if (error !== 0) partials[kept++] = error;
      high = sum;
    }
    partials.length = kept;
    partials.push(high);
  }
  let total = partials.pop() ?? 0;
  while (partials.length > 0) {
    const next = partials.pop()!;
    const sum = total + next;
    const error = roundingError(total, next, sum);
    total = sum;
    if (error === 0) continue;
    // What is left decides a tie that was rounded by the even digit.
    const rest = partials.at(-1) ?? 0;
    const doubled = total + error * 2;
    return rest * error > 0 && doubled - total === error * 2 ? doubled : total;
  }
  return total;
}

/** What `a + b = sum` lost. */
function roundingError(a: number, b: number, sum: number): number {
  return Math.abs(a) < Math.abs(b) ? a - (sum - b) : b - (sum - a);
}

/** Seconds as milliseconds with three digits; halves go to the even digit, as Python rounds. */
function milliseconds(seconds: number): number {
  const value = seconds * 1e3;
  // Only odd sixteenths lie exactly halfway between two thousandths; toFixed rounds these up.
  const halfway = Number.isInteger(value * 16) && !Number.isInteger(value * 8);
  if (!halfway) return Number(value.toFixed(3));
  const below = Math.floor(value * 1e3);
  return (below + (below % 2)) / 1e3;
}
