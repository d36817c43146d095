import type { SegmentTable } from "../../layout/segment-table.js";
import type { NativeRowPlan } from "../../native/copy-addon.js";
import type { StoreMemory } from "./memory.js";
import type { Region } from "./regions.js";

/** Where row i's bytes start in a run of memory; rows that are left out have no entry. */
export type Runs = ReadonlyMap<number, number>;

/** A piece of shared memory in which rows are put together. */
export interface RunMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array;
}

/** The bytes of the rows of a call, wherever they are. */
export interface RowBytes {
  /** Bytes of a row. */
  size(row: number): number;
  /** Copies rows into `memory`. */
  gather(rows: readonly number[], runs: Runs, memory: RunMemory): Promise<void>;
  /** Copies rows out of `memory`. */
  scatter(rows: readonly number[], runs: Runs, memory: RunMemory): Promise<void>;
}

/** Bytes that lie together. */
export interface Piece {
  readonly region: Region;
  readonly address: bigint;
  readonly size: bigint;
}

/** Rows that lie in segments of registered memory. */
export class SegmentRows implements RowBytes {
  readonly plan: NativeRowPlan;
  /** The registered regions when the call began. */
  readonly regions: readonly Region[];
  readonly #memory: StoreMemory;
  readonly #addresses: BigUint64Array;
  readonly #sizes: BigUint64Array;
  readonly #rowOffsets: Uint32Array;

  /** The table is copied: the caller may reuse it at once. */
  constructor(memory: StoreMemory, { addresses, sizes, rowOffsets }: SegmentTable) {
    this.#memory = memory;
    this.#addresses = addresses.slice();
    this.#sizes = sizes.slice();
    this.#rowOffsets = rowOffsets.slice();
    this.regions = memory.table.all;
    const ranges = memory.table.ranges;
    this.plan = memory.addon.planRows(
      ranges.addresses,
      ranges.sizes,
      this.#addresses,
      this.#sizes,
      this.#rowOffsets,
    );
  }

  size(row: number): number {
    return Number(this.plan.bytes[row]!);
  }

  /**
   * Where a row lies: one piece when its bytes are one run, else its segments. The row has a code of 0, so that every
   * piece is in a region.
   */
  pieces(row: number): Piece[] {
    const pieces: Piece[] = [];
    const start = this.plan.starts[row]!;
    const end = this.#rowOffsets[row + 1]!;
    for (let i = this.#rowOffsets[row]!; i < end; i++) {
      if (this.#sizes[i] === 0n) continue;
      const region = this.regions[this.plan.segmentRanges[i]!]!;
      if (start !== 0n) return [{ region, address: start, size: this.plan.bytes[row]! }];
      pieces.push({ region, address: this.#addresses[i]!, size: this.#sizes[i]! });
    }
    return pieces;
  }

  gather(rows: readonly number[], runs: Runs, memory: RunMemory): Promise<void> {
    return this.#copy(rows, runs, memory, false);
  }

  scatter(rows: readonly number[], runs: Runs, memory: RunMemory): Promise<void> {
    return this.#copy(rows, runs, memory, true);
  }

  /** One native call for the range of rows that holds all of them; rows in between are left out. */
  #copy(rows: readonly number[], runs: Runs, memory: RunMemory, scatter: boolean): Promise<void> {
    if (rows.length === 0) return Promise.resolve();
    const first = rows[0]!;
    const last = rows.at(-1)!;
    const from = this.#rowOffsets[first]!;
    const to = this.#rowOffsets[last + 1]!;
    const starts = new BigUint64Array(last + 1 - first);
    for (const row of rows) starts[row - first] = memory.address + BigInt(runs.get(row)!);
    return this.#memory.addon.copyRows(
      this.#memory.copier,
      [],
      scatter,
      this.#addresses.subarray(from, to),
      this.#sizes.subarray(from, to),
      this.#rowOffsets.subarray(first, last + 2).map((offset) => offset - from),
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

  async gather(rows: readonly number[], runs: Runs, { bytes }: RunMemory): Promise<void> {
    for (const row of rows) bytes.set(this.#values[row]!, runs.get(row)!);
  }

  async scatter(rows: readonly number[], runs: Runs, { bytes }: RunMemory): Promise<void> {
    for (const row of rows) {
      const start = runs.get(row)!;
      this.#values[row]!.set(bytes.subarray(start, start + this.#values[row]!.length));
    }
  }
}
