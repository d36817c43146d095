import * as assert from "uvu/assert";
import { type ErrorCode, isMooncakeKvError } from "../../src/errors.js";
import { SegmentTable } from "../../src/layout/segment-table.js";
import type { Arena } from "../../src/store/index.js";

/** Rows of [offset in the arena, size]. */
export function segmentsIn(
  arena: Arena,
  rows: readonly (readonly (readonly [offset: number, size: number])[])[],
): SegmentTable {
  return SegmentTable.fromRows(
    rows.map((row) =>
      row.map(([offset, size]) => ({ address: arena.baseAddress + BigInt(offset), size: BigInt(size) })),
    ),
  );
}

/** Rows of absolute [address, size], which the table's own checks may not like. */
export function rawSegments(
  rows: readonly (readonly (readonly [address: bigint, size: bigint])[])[],
): SegmentTable {
  return SegmentTable.fromRows(rows.map((row) => row.map(([address, size]) => ({ address, size }))));
}

/** Awaits the rejection of a call, and checks code and text of the error. */
export async function rejects(call: () => Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  let error: unknown;
  try {
    await call();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(isMooncakeKvError(error, code), `expected ${code}, got ${String(error)}`);
  assert.match(error.message, message);
}

/** Fills a range with bytes that depend on `seed` and position. */
export function fillPattern(bytes: Uint8Array, seed: number): void {
  let word = (seed * 0x9e3779b1 + 1) >>> 0;
  for (let i = 0; i < bytes.length; i++) {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
    bytes[i] = word >>> 24;
  }
}
