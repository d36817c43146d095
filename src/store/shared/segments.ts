import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { KeyList } from "./keys.js";
import type { RowColumns } from "./rows.js";

/**
 * The segments of a call, which must have one row a key. They are copied: whatever the caller does to its arrays, also from
 * another thread, the call works on what was checked.
 *
 * @throws MooncakeKvError `ERR_STORE` when they are no table, have another number of rows than there are keys, or columns
 * that do not fit together.
 */
export function checkedSegments(operation: string, keys: KeyList, segments: SegmentTable): RowColumns {
  const table = segments as Partial<SegmentTable> | null | undefined;
  // By shape, not by class: the table may come from another loaded copy of the package.
  if (
    !(table?.addresses instanceof BigUint64Array) ||
    !(table.sizes instanceof BigUint64Array) ||
    !(table.rowOffsets instanceof Uint32Array)
  )
    throw segmentsError(operation, `${describe(segments)} is no SegmentTable`);
  const rows = table.rowOffsets.length - 1;
  if (rows !== keys.length)
    throw segmentsError(
      operation,
      `${keys.length} keys but ${rows} rows of segments; every key needs one row`,
      { keys: keys.length, rows },
    );
  const addresses = table.addresses.slice();
  const sizes = table.sizes.slice();
  const rowOffsets = table.rowOffsets.slice();
  if (addresses.length !== sizes.length)
    throw segmentsError(operation, `${addresses.length} addresses but ${sizes.length} sizes of segments`);
  for (let row = 0; row < rows; row++)
    if (rowOffsets[row + 1]! < rowOffsets[row]!)
      throw segmentsError(operation, `row offset ${row + 1} is below the one before; offsets never fall`);
  if (rowOffsets[0] !== 0 || rowOffsets[rows] !== addresses.length)
    throw segmentsError(
      operation,
      `rows from ${rowOffsets[0]} to ${rowOffsets[rows]} do not fit ${addresses.length} segments`,
    );
  return { addresses, sizes, rowOffsets };
}

function segmentsError(
  operation: string,
  message: string,
  details: Record<string, unknown> = {},
): MooncakeKvError {
  return new MooncakeKvError("ERR_STORE", `${operation}: ${message}`, { operation, ...details });
}
