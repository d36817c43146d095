import type { CheckedRows } from "../shared/rows.js";
import type { SharedMemories, SharedMemory } from "./shared-memory.js";

/** Where row i's bytes start in a piece of memory; rows that are left out have no entry. */
export type Runs = ReadonlyMap<number, number>;

/** The bytes of the rows of a call, wherever they are. */
export interface RowBytes {
  /** Bytes of a row. */
  size(row: number): number;
  /** Copies rows into `memory`. */
  gather(rows: readonly number[], runs: Runs, memory: SharedMemory): Promise<void>;
  /** Copies rows out of `memory`. */
  scatter(rows: readonly number[], runs: Runs, memory: SharedMemory): Promise<void>;
}

/** Rows that lie in segments of registered memory. */
export class SegmentRows implements RowBytes {
  readonly rows: CheckedRows;
  readonly #memories: SharedMemories;

  constructor(memories: SharedMemories, rows: CheckedRows) {
    this.#memories = memories;
    this.rows = rows;
  }

  size(row: number): number {
    return Number(this.rows.bytes(row));
  }

  gather(rows: readonly number[], runs: Runs, memory: SharedMemory): Promise<void> {
    return this.#copy(rows, runs, memory, false);
  }

  scatter(rows: readonly number[], runs: Runs, memory: SharedMemory): Promise<void> {
    return this.#copy(rows, runs, memory, true);
  }

  /** One native call for the range of rows that holds all of them; rows in between are left out. */
  #copy(rows: readonly number[], runs: Runs, { memory }: SharedMemory, scatter: boolean): Promise<void> {
    if (rows.length === 0) return Promise.resolve();
    const { addon, copier } = this.#memories;
    const { addresses, sizes, rowOffsets, arenas } = this.rows;
    const first = rows[0]!;
    const last = rows.at(-1)!;
    const from = rowOffsets[first]!;
    const to = rowOffsets[last + 1]!;
    const starts = new BigUint64Array(last + 1 - first);
    for (const row of rows) starts[row - first] = memory.baseAddress + BigInt(runs.get(row)!);
    return addon.copyRows(
      copier,
      [...arenas, memory.handle!],
      scatter,
      addresses.subarray(from, to),
      sizes.subarray(from, to),
      rowOffsets.subarray(first, last + 2).map((offset) => offset - from),
      starts,
    );
  }
}

/** Rows that are values in JavaScript's memory. */
export class ValueRows implements RowBytes {
  readonly #values: readonly Uint8Array[];

  constructor(values: readonly Uint8Array[]) {
    this.#values = values;
  }

  size(row: number): number {
    return this.#values[row]!.length;
  }

  async gather(rows: readonly number[], runs: Runs, { memory }: SharedMemory): Promise<void> {
    for (const row of rows) memory.bytes.set(this.#values[row]!, runs.get(row)!);
  }

  async scatter(rows: readonly number[], runs: Runs, { memory }: SharedMemory): Promise<void> {
    for (const row of rows) {
      const start = runs.get(row)!;
      this.#values[row]!.set(memory.bytes.subarray(start, start + this.#values[row]!.length));
    }
  }
}
