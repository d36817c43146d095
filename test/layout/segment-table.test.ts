import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { SegmentTable } from "../../src/layout/segment-table.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_LAYOUT") && pattern.test(error.message);

const rows = [
  [
    { address: 1n, size: 2n },
    { address: (1n << 64n) - 1n, size: 3n },
  ],
  [],
  [{ address: 9n, size: 4n }],
];

test("rows come back as they went in", () => {
  const table = SegmentTable.fromRows(rows, [5, 6, 7]);
  assert.is(table.length, 3);
  assert.equal(
    [0, 1, 2].map((row) => table.row(row)),
    rows,
  );
  assert.equal(
    [0, 1, 2].map((row) => table.rowBytes(row)),
    [5n, 0n, 4n],
  );
  assert.is(table.totalBytes(), 9n);
  assert.equal(table.blockIds, Int32Array.of(5, 6, 7));
  assert.equal(SegmentTable.fromRows(rows).blockIds, Int32Array.of(-1, -1, -1));
});

test("block ids beyond 32 bits widen the column", () => {
  assert.equal(SegmentTable.fromRows([[]], [2 ** 40]).blockIds, Float64Array.of(2 ** 40));
  assert.equal(SegmentTable.fromRows([[]], [2 ** 31 - 1]).blockIds, Int32Array.of(2 ** 31 - 1));
});

test("arrays that do not fit together are refused", () => {
  const make = (addresses: number, sizes: number, offsets: number[], blockIds: number) => () =>
    new SegmentTable(
      new BigUint64Array(addresses),
      new BigUint64Array(sizes),
      Uint32Array.from(offsets),
      new Int32Array(blockIds),
    );
  assert.throws(make(2, 1, [0, 2], 1), ours(/2 addresses but 1 sizes/));
  assert.throws(make(2, 2, [0, 2], 2), ours(/2 row offsets for 2 block ids; 3/));
  assert.throws(make(2, 2, [1, 2], 1), ours(/row offset 0 is 1/));
  assert.throws(make(2, 2, [0, 2, 1], 2), ours(/row offset 2 is 1/));
  assert.throws(make(2, 2, [0, 1], 1), ours(/last row offset is 1, the number of segments 2/));
  assert.is(make(0, 0, [0], 0)().length, 0);
});

test("a row that does not exist is refused", () => {
  const table = SegmentTable.fromRows(rows);
  for (const index of [-1, 3, 0.5, Number.NaN])
    assert.throws(() => table.row(index), ours(/does not exist; the table has 3/));
});

test("a segment that is no unsigned 64-bit integer is refused", () => {
  for (const bad of [-1n, 1n << 64n, 1 as unknown as bigint]) {
    assert.throws(() => SegmentTable.fromRows([[{ address: bad, size: 1n }]]), ours(/segment address/));
    assert.throws(() => SegmentTable.fromRows([[{ address: 1n, size: bad }]]), ours(/segment size/));
  }
});

test.run();
