import { describe, MooncakeKvError } from "../errors.js";
import type { SegmentTable } from "../layout/segment-table.js";
import type { KeyList } from "./keys.js";

/**
 * The segments of a call, which must have one row a key.
 *
 * @throws MooncakeKvError `ERR_STORE` when they are no table, or have another number of rows than there are keys.
 */
export function checkedSegments(operation: string, keys: KeyList, segments: SegmentTable): SegmentTable {
  const table = segments as Partial<SegmentTable> | null | undefined;
  // By shape, not by class: the table may come from another loaded copy of the package.
  if (
    !(table?.addresses instanceof BigUint64Array) ||
    !(table.sizes instanceof BigUint64Array) ||
    !(table.rowOffsets instanceof Uint32Array)
  )
    throw new MooncakeKvError("ERR_STORE", `${operation}: ${describe(segments)} is no SegmentTable`, {
      operation,
    });
  const rows = table.rowOffsets.length - 1;
  if (rows !== keys.length)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: ${keys.length} keys but ${rows} rows of segments; every key needs one row`,
      { operation, keys: keys.length, rows },
    );
  return segments;
}
