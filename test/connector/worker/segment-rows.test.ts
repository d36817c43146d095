import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  concatSegments,
  rotated,
  rowSizes,
  sliceSegments,
} from "../../../src/connector/worker/segment-rows.js";
import { SegmentTable } from "../../../src/layout/segment-table.js";

const table = (first: number, ...counts: number[]) =>
  SegmentTable.fromRows(
    counts.map((count, row) =>
      Array.from({ length: count }, (_, i) => ({
        address: BigInt(first + row * 100 + i),
        size: BigInt(i + 1),
      })),
    ),
    counts.map((_, row) => first + row),
  );

test("rows of several tables, and parts of them", () => {
  const joined = concatSegments([table(1, 2, 0, 3), table(1000, 1)]);
  assert.equal(rowSizes(joined), [3, 0, 6, 1]);
  assert.equal([...joined.blockIds], [1, 2, 3, 1000]);
  const part = sliceSegments(joined, 2, 4);
  assert.equal(part.row(0), joined.row(2));
  assert.equal(part.row(1), joined.row(3));
  assert.equal([...part.blockIds], [3, 1000]);
  assert.is(sliceSegments(joined, 1, 1).length, 0);
  assert.is(concatSegments([]).length, 0);
});

test("block ids beyond 32 bits stay exact", () => {
  const wide = SegmentTable.fromRows([[{ address: 1n, size: 1n }]], [2 ** 40]);
  assert.equal([...concatSegments([table(1, 1), wide]).blockIds], [1, 2 ** 40]);
});

test("rotation keeps every element", () => {
  assert.equal(rotated([1, 2, 3], 1), [2, 3, 1]);
  assert.equal(rotated([1, 2, 3], 0), [1, 2, 3]);
});

test.run();
