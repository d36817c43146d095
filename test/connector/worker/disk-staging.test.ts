import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  estimateDiskOffloadStagingBytes,
  splitDiskOffloadLoadBatches,
  usableDiskOffloadBufferBudgetBytes,
} from "../../../src/connector/worker/disk-staging.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { check } from "../../helpers/property.js";

test("an object takes its pages and two more", () => {
  assert.equal([0, 1, 4096, 4097].map(estimateDiskOffloadStagingBytes), [8192, 12288, 12288, 16384]);
});

test("nine tenths of the buffer are used, at least a byte", () => {
  assert.is(usableDiskOffloadBufferBudgetBytes(1280 * 2 ** 20), 1207959552);
  assert.is(usableDiskOffloadBufferBudgetBytes(100, 0), 1);
  assert.throws(
    () => usableDiskOffloadBufferBudgetBytes(100, Number.NaN),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
  );
});

test("a large object travels alone; one that is too large stops the load", () => {
  assert.equal(splitDiskOffloadLoadBatches([256, 20000, 256], 24576, 40000).batches, [
    { start: 0, end: 1 },
    { start: 1, end: 2 },
    { start: 2, end: 3 },
  ]);
  assert.is(splitDiskOffloadLoadBatches([256, 40000], 24576, 40000).oversize, 1);
  assert.equal(splitDiskOffloadLoadBatches([], 24576, 40000).batches, []);
});

test("batches tile the load, and none of several objects is above what may be used", () => {
  check(
    fc.property(fc.array(fc.nat(60_000)), fc.integer({ min: 1, max: 90_000 }), (sizes, usable) => {
      const { batches } = splitDiskOffloadLoadBatches(sizes, usable, Number.POSITIVE_INFINITY);
      let next = 0;
      for (const { start, end } of batches!) {
        assert.is(start, next);
        assert.ok(end > start);
        next = end;
        const needed = sizes
          .slice(start, end)
          .reduce((sum, size) => sum + estimateDiskOffloadStagingBytes(size), 0);
        assert.ok(end - start === 1 || needed <= usable);
      }
      assert.is(next, sizes.length);
    }),
  );
});

test.run();
