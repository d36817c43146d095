import { describe, MooncakeKvError } from "../errors.js";

/** One memory range: an absolute address and a length in bytes. */
export interface Segment {
  /** Where the segment begins. */
  readonly address: bigint;
  /** Bytes. */
  readonly size: bigint;
}

/** Block ids of rows: 32 bits wide, except in a table that has an id beyond 2^31 - 1. */
export type BlockIdColumn = Int32Array | Float64Array;

/**
 * Memory descriptors of many objects as compressed rows: row i lists, in order, the segments whose bytes, joined
 * without a header, are object i. Mirrors the address, size and block id lists that vLLM's `prepare_values` returns
 * and hands to Mooncake's multi-buffer calls, but flat.
 *
 * Shapes: `addresses` and `sizes` have one element a segment, `rowOffsets` one a row plus one (row i is
 * `[rowOffsets[i], rowOffsets[i + 1])`), `blockIds` one a row (-1 where a row belongs to no block). Addresses are
 * absolute, sizes are bytes.
 */
export class SegmentTable {
  /** Where each segment begins. */
  readonly addresses: BigUint64Array;
  /** Bytes of each segment. */
  readonly sizes: BigUint64Array;
  /** Where the segments of each row begin, and the end of the last one: one more than rows. */
  readonly rowOffsets: Uint32Array;
  /** The block of each row. */
  readonly blockIds: BlockIdColumn;

  /**
   * Wraps the four arrays without a copy.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` when their shapes do not fit together.
   */
  constructor(
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    blockIds: BlockIdColumn,
  ) {
    if (addresses.length !== sizes.length)
      throw shapeError(
        `${addresses.length} addresses but ${sizes.length} sizes; a segment needs one of each`,
      );
    if (rowOffsets.length !== blockIds.length + 1)
      throw shapeError(
        `${rowOffsets.length} row offsets for ${blockIds.length} block ids; ${blockIds.length + 1} are needed`,
      );
    let previous = 0;
    for (let row = 0; row < rowOffsets.length; row++) {
      const offset = rowOffsets[row]!;
      if (row === 0 ? offset !== 0 : offset < previous)
        throw shapeError(`row offset ${row} is ${offset}; offsets start at 0 and never fall`);
      previous = offset;
    }
    if (previous !== addresses.length)
      throw shapeError(`the last row offset is ${previous}, the number of segments ${addresses.length}`);
    this.addresses = addresses;
    this.sizes = sizes;
    this.rowOffsets = rowOffsets;
    this.blockIds = blockIds;
  }

  /** A table of the given rows, for tests and small jobs. Block ids default to -1. */
  static fromRows(rows: readonly (readonly Segment[])[], blockIds?: readonly number[]): SegmentTable {
    const segments = rows.flat();
    const rowOffsets = new Uint32Array(rows.length + 1);
    for (const [row, list] of rows.entries()) rowOffsets[row + 1] = rowOffsets[row]! + list.length;
    return new SegmentTable(
      BigUint64Array.from(segments, (segment) => unsigned(segment.address, "address")),
      BigUint64Array.from(segments, (segment) => unsigned(segment.size, "size")),
      rowOffsets,
      blockIds ? blockIdColumn(blockIds) : new Int32Array(rows.length).fill(-1),
    );
  }

  /** Number of rows, that is of objects. */
  get length(): number {
    return this.blockIds.length;
  }

  /** The segments of row `index`, in order. */
  row(index: number): Segment[] {
    const [start, end] = this.#bounds(index);
    const segments: Segment[] = [];
    for (let i = start; i < end; i++) segments.push({ address: this.addresses[i]!, size: this.sizes[i]! });
    return segments;
  }

  /** Bytes of object `index`: the sum of its segment sizes. */
  rowBytes(index: number): bigint {
    const [start, end] = this.#bounds(index);
    let total = 0n;
    for (let i = start; i < end; i++) total += this.sizes[i]!;
    return total;
  }

  /** Bytes of all objects together. */
  totalBytes(): bigint {
    let total = 0n;
    for (const size of this.sizes) total += size;
    return total;
  }

  /**
   * The given rows, in that order, as a table of their own: for the keys of a batch that are tried again.
   *
   * @throws MooncakeKvError `ERR_LAYOUT` for a row that does not exist.
   */
  pick(rows: readonly number[]): SegmentTable {
    const bounds = rows.map((row) => this.#bounds(row));
    const rowOffsets = new Uint32Array(rows.length + 1);
    for (const [index, [start, end]] of bounds.entries())
      rowOffsets[index + 1] = rowOffsets[index]! + end - start;
    const addresses = new BigUint64Array(rowOffsets[rows.length]!);
    const sizes = new BigUint64Array(rowOffsets[rows.length]!);
    for (const [index, [start, end]] of bounds.entries()) {
      addresses.set(this.addresses.subarray(start, end), rowOffsets[index]);
      sizes.set(this.sizes.subarray(start, end), rowOffsets[index]);
    }
    const blockIds = blockIdColumn(rows.map((row) => this.blockIds[row]!));
    return new SegmentTable(addresses, sizes, rowOffsets, blockIds);
  }

  #bounds(index: number): [number, number] {
    if (!Number.isInteger(index) || index < 0 || index >= this.length)
      throw new MooncakeKvError(
        "ERR_LAYOUT",
        `row ${describe(index)} does not exist; the table has ${this.length}`,
        {
          index,
          length: this.length,
        },
      );
    return [this.rowOffsets[index]!, this.rowOffsets[index + 1]!];
  }
}

/** Block ids in the narrowest column that holds them exactly. */
function blockIdColumn(blockIds: ArrayLike<number>): BlockIdColumn {
  const column = new Int32Array(blockIds);
  for (let row = 0; row < column.length; row++)
    if (column[row] !== blockIds[row]) return Float64Array.from(blockIds);
  return column;
}

function unsigned(value: bigint, name: string): bigint {
  if (typeof value !== "bigint" || value < 0n || value >= 1n << 64n)
    throw new MooncakeKvError(
      "ERR_LAYOUT",
      `segment ${name} ${describe(value)} is not a bigint in [0, 2^64)`,
      { value },
    );
  return value;
}

function shapeError(message: string): MooncakeKvError {
  return new MooncakeKvError("ERR_LAYOUT", `segment table: ${message}`);
}
