import { SegmentTable } from "../../layout/segment-table.js";

/** The rows of several tables, one after the other. */
export function concatSegments(tables: readonly SegmentTable[]): SegmentTable {
  if (tables.length === 1) return tables[0]!;
  const rows = tables.reduce((sum, table) => sum + table.length, 0);
  const segments = tables.reduce((sum, table) => sum + table.addresses.length, 0);
  const addresses = new BigUint64Array(segments);
  const sizes = new BigUint64Array(segments);
  const rowOffsets = new Uint32Array(rows + 1);
  const blockIds = tables.some((table) => table.blockIds instanceof Float64Array)
    ? new Float64Array(rows)
    : new Int32Array(rows);
  let row = 0;
  let segment = 0;
  for (const table of tables) {
    addresses.set(table.addresses, segment);
    sizes.set(table.sizes, segment);
    blockIds.set(table.blockIds, row);
    for (let i = 1; i <= table.length; i++) rowOffsets[row + i] = segment + table.rowOffsets[i]!;
    row += table.length;
    segment += table.addresses.length;
  }
  return new SegmentTable(addresses, sizes, rowOffsets, blockIds);
}

/** Rows `[start, end)`. */
export function sliceSegments(table: SegmentTable, start: number, end: number): SegmentTable {
  const from = table.rowOffsets[start]!;
  const to = table.rowOffsets[end]!;
  return new SegmentTable(
    table.addresses.subarray(from, to),
    table.sizes.subarray(from, to),
    table.rowOffsets.slice(start, end + 1).map((offset) => offset - from),
    table.blockIds.subarray(start, end),
  );
}

/** The bytes of each row. */
export function rowSizes(table: SegmentTable): number[] {
  return Array.from({ length: table.length }, (_, row) => Number(table.rowBytes(row)));
}

/** `values[offset:] + values[:offset]`. */
export function rotated<T>(values: readonly T[], offset: number): T[] {
  return [...values.slice(offset), ...values.slice(0, offset)];
}
