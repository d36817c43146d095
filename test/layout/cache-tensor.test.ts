import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  type CacheTensor,
  checkCacheTensor,
  groupKernelBlocks,
  isNonOverlappingAndDense,
} from "../../src/layout/cache-tensor.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_LAYOUT") && pattern.test(error.message);

function tensor(shape: number[], strides: number[], changes: Partial<CacheTensor> = {}): CacheTensor {
  return {
    address: 4096n,
    storageAddress: 4096n,
    storageBytes: 1n << 20n,
    shape,
    strides,
    elementSize: 2,
    ...changes,
  };
}

test("dense means one gapless range, in any order of axes", () => {
  const cases: [number[], number[], boolean][] = [
    [[], [], true],
    [[4, 3, 2], [6, 2, 1], true],
    [[4, 3, 2], [1, 8, 4], true],
    [[4, 1, 2], [2, 999, 1], true],
    [[4, 3], [4, 1], false],
    [[4, 3], [0, 1], false],
    [[4, 3], [3, 2], false],
    [[0, 4], [4, 1], true],
  ];
  for (const [shape, strides, expected] of cases)
    assert.is(isNonOverlappingAndDense(shape, strides), expected, `${shape} / ${strides}`);
});

test("kernel blocks are grouped by splitting axis 0", () => {
  const grouped = groupKernelBlocks(tensor([6, 4, 8], [32, 8, 1]), 3);
  assert.equal(
    [grouped.shape, grouped.strides],
    [
      [3, 2, 4, 8],
      [64, 32, 8, 1],
    ],
  );
  const permuted = groupKernelBlocks(tensor([4, 3, 5], [1, 4, 12]), 2);
  assert.equal(
    [permuted.shape, permuted.strides],
    [
      [2, 2, 3, 5],
      [2, 1, 4, 12],
    ],
  );
});

test("an axis of size 1 gets the stride it would have in a contiguous tensor", () => {
  const grouped = groupKernelBlocks(tensor([4, 1, 8], [8, 999, 1]), 2);
  assert.equal(grouped.strides, [16, 8, 8, 1]);
});

test("a tensor without elements is split into contiguous strides", () => {
  const grouped = groupKernelBlocks(tensor([4, 0, 8], [99, 8, 1]), 2);
  assert.equal(
    [grouped.shape, grouped.strides],
    [
      [2, 2, 0, 8],
      [16, 8, 8, 1],
    ],
  );
});

test("nothing changes where axis 0 is the blocks already", () => {
  const same = tensor([3, 8], [8, 1]);
  assert.is(groupKernelBlocks(same, 3), same);
});

test("kernel blocks that do not divide are refused with both numbers", () => {
  assert.throws(() => groupKernelBlocks(tensor([7, 8], [8, 1]), 3), ours(/7 kernel blocks.*3 blocks/));
  assert.throws(() => groupKernelBlocks(tensor([7, 8], [8, 1]), 0), ours(/7 kernel blocks.*0 blocks/));
  assert.throws(() => groupKernelBlocks(tensor([], []), 1), ours(/axis 0/));
});

test("impossible tensors are refused", () => {
  const bad: [CacheTensor, RegExp][] = [
    [tensor([2, 2], [2]), /needs one of each/],
    [tensor([2, -1], [2, 1]), /shape\[1\] is -1/],
    [tensor([2, 2], [2, 0.5]), /strides\[1\] is 0.5/],
    [tensor([2], [1], { elementSize: 0 }), /elementSize is 0/],
    [tensor([2], [1], { address: -1n }), /address is -1n/],
    [tensor([2], [1], { storageAddress: 5 as unknown as bigint }), /storageAddress is 5/],
    [tensor([2], [1], { storageBytes: 1n << 64n }), /storageBytes is/],
    [tensor([2], [1], { address: 4094n }), /covers \[4094, 4098\).*\[4096, /],
    [tensor([3, 4], [4, 1], { storageBytes: 22n }), /covers \[4096, 4120\).*4118\)/],
  ];
  for (const [each, pattern] of bad) assert.throws(() => checkCacheTensor(each), ours(pattern));
  checkCacheTensor(tensor([3, 4], [4, 1], { storageBytes: 24n }));
  checkCacheTensor(tensor([3, 0], [1000, 1], { address: 0n, storageBytes: 0n }));
});

test.run();
