import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import type { CacheTensor } from "../../src/layout/cache-tensor.js";
import { RankLocalStoreLayout } from "../../src/layout/rank-local-store-layout.js";
import { fullChunks } from "../../src/testing/arbitraries/layout-arbitraries.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_LAYOUT") && pattern.test(error.message);

const metadata = { modelName: "m", tpRank: 3 };

function layoutWith(baseAddresses: bigint[], blockLengths: number[]): RankLocalStoreLayout {
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16, hashBlockSize: 4 });
  layout.setKvCachesBaseAddr(baseAddresses);
  layout.setBlockLen(blockLengths);
  return layout;
}

function bf16(shape: number[], strides: number[], storageElements: number, address = 1n << 40n): CacheTensor {
  return {
    address,
    storageAddress: address,
    storageBytes: BigInt(storageElements * 2),
    shape,
    strides,
    elementSize: 2,
  };
}

test("a K/V-first cache is one region per half, a blocks-first one is one region", () => {
  const half = 1000 * 16384;
  const kvFirst = bf16([1000, 2, 16, 8, 128], [16384, half, 1024, 128, 1], 2 * half);
  const blocksFirst = bf16([1000, 2, 16, 8, 128], [32768, 16384, 1024, 128, 1], 2 * half, 1n << 41n);
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16 });
  layout.registerKvCaches([kvFirst], 1000);
  assert.equal(layout.prepareValueForBlock(5), [
    { address: (1n << 40n) + 163840n, size: 32768n },
    { address: (1n << 40n) + 32931840n, size: 32768n },
  ]);
  layout.registerKvCaches([blocksFirst], 1000);
  assert.equal(layout.prepareValueForBlock(5), [{ address: (1n << 41n) + 327680n, size: 65536n }]);
});

test("regions that were seen are not listed again", () => {
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16 });
  const cache = bf16([9, 16, 8], [128, 8, 1], 1152);
  layout.registerKvCaches([cache, { ...cache, shape: [9, 128], strides: [128, 1] }], 9);
  assert.equal([layout.kvCachesBaseAddr, layout.blockLen], [[1n << 40n], [256]]);
});

test("a tensor whose axis 1 is empty has no regions, whatever its other strides", () => {
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16 });
  layout.registerKvCaches([{ ...bf16([7, 0, 4, 2], [16, 8, 1, 8], 112), address: 0n }], 7);
  assert.equal([layout.kvCachesBaseAddr, layout.blockLen], [[], []]);
});

test("block lengths are used in turn", () => {
  const layout = layoutWith([1000n, 2000n, 3000n, 4000n], [10, 20, 30]);
  assert.equal(layout.prepareValueForBlock(3), [
    { address: 1030n, size: 10n },
    { address: 2060n, size: 20n },
    { address: 3090n, size: 30n },
    { address: 4030n, size: 10n },
  ]);
});

test("whole blocks are stored: a tail counts as one, a long chunk as several", () => {
  const layout = layoutWith([1000n], [100]);
  const chunks = { length: 4, starts: [0, 16, 32, 0], ends: [16, 20, 32, 68] };
  const table = layout.prepareValues(chunks, [7, 8, 9]);
  assert.equal([...table.addresses], [1700n, 1800n, 1900n, 1700n]);
  assert.equal([...table.sizes], [100n, 100n, 0n, 500n]);
  assert.equal([...table.blockIds], [7, 8, 9, 7]);
});

test("a block beyond the registered caches is refused, also as the end of a long chunk", () => {
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16 });
  const first = fullChunks([0], 16);
  assert.throws(() => layout.prepareValues(first, [0]), ours(/no KV caches are registered/));
  assert.throws(() => layout.prepareValueForBlock(0), ours(/no KV caches are registered/));
  layout.registerKvCaches([bf16([8, 16, 8], [128, 8, 1], 1024)], 8);
  const long = { length: 2, starts: [0, 16], ends: [16, 64] };
  assert.equal([...layout.prepareValues(long, [0, 5, 6, 7]).sizes], [256n, 768n]);
  assert.throws(() => layout.prepareValues(long, [0, 6, 7, 8]), ours(/chunk 1 lies in block 8.* 8 blocks/));
  assert.throws(() => layout.prepareValues(first, [8]), ours(/chunk 0 lies in block 8.*0 to 7/));
  for (const id of [-1, 8]) assert.throws(() => layout.prepareValueForBlock(id), ours(/8 blocks, 0 to 7/));
});

test("without checkBlockIds, a block is computed wherever it lies, as in vLLM", () => {
  const layout = new RankLocalStoreLayout({ metadata, blockSize: 16, checkBlockIds: false });
  assert.equal([...layout.prepareValues(fullChunks([0], 16), [0]).sizes], []);
  layout.registerKvCaches([bf16([8, 16, 8], [128, 8, 1], 1024)], 8);
  assert.equal([...layout.prepareValues(fullChunks([0], 16), [8]).addresses], [(1n << 40n) + 8n * 256n]);
  assert.equal(layout.prepareValueForBlock(-1), [{ address: (1n << 40n) - 256n, size: 256n }]);
});

test("a negative start counts blocks from the end of the table", () => {
  const value = layoutWith([1000n], [100]).prepareValue(-16, 0, [7, 8, 9]);
  assert.equal(value, { segments: [{ address: 1900n, size: 100n }], blockId: 9 });
});

test("block ids above 2^31 and addresses above 2^53 are exact", () => {
  const layout = layoutWith([(1n << 53n) + 1n], [1048577]);
  const table = layout.prepareValues(fullChunks([0], 16), [2 ** 31 + 5]);
  assert.is(table.addresses[0], (1n << 53n) + 1n + (2n ** 31n + 5n) * 1048577n);
  assert.equal([...table.blockIds], [2 ** 31 + 5]);
});

test("bad calls say what is wrong and with which numbers", () => {
  const layout = layoutWith([1000n], [100]);
  const full = fullChunks([0], 16);
  const bad: [() => unknown, RegExp][] = [
    [() => layout.keyFor(1, new Uint8Array(2)), /shard 1 .* owns 0/],
    [() => layout.prepareValues(full, [1], []), /0 shard ids for 1 chunks/],
    [() => layout.prepareValues(full, [1], [2]), /shard 2/],
    [() => layout.keys(full, [0, 0]), /2 shard ids for 1 chunks/],
    [() => layout.prepareValues(full, []), /starts at token 0.*has 0 blocks/],
    [() => layout.prepareValues(full, [-1]), /id -1/],
    [() => layout.prepareValues(full, [1.5]), /id 1.5/],
    [() => layout.prepareValue(0, 17, [1, 2]), /17 tokens.*hashBlockSize 4/],
    [() => layout.prepareValue(16, 0, [1, 2]), /-16 tokens/],
    [() => layout.prepareValue(Number.NaN, 16, [1]), /NaN tokens/],
    [() => layoutWith([1n], []).prepareValues(full, [1]), /1 base addresses but no block length/],
    [() => layoutWith([1n << 63n], [1]).prepareValues(full, [0]), /not below 9223372036854775808/],
    [() => layoutWith([5n], [100]).prepareValueForBlock(-1), /address of block -1 is -95n/],
    [() => layout.setBlockLen([-1]), /block length 0 is -1/],
    [() => layout.setKvCachesBaseAddr([-1n]), /base address 0 is -1n/],
    [() => new RankLocalStoreLayout({ metadata, blockSize: 16, hashBlockSize: 5 }), /16 .* 5/],
    [() => new RankLocalStoreLayout({ metadata, blockSize: 0 }), /blockSize is 0/],
  ];
  for (const [call, pattern] of bad) assert.throws(call, ours(pattern));
});

test("a tensor that can't be described is refused by its index, and what was registered stays", () => {
  const layout = layoutWith([1000n], [100]);
  const good = bf16([9, 16, 8], [128, 8, 1], 1152);
  const sparse = bf16([9, 8, 8], [128, 16, 2], 9 * 128);
  assert.throws(() => layout.registerKvCaches([good, sparse], 9), ours(/tensor 1 .*\[9,8,8\].*dense/));
  assert.throws(
    () => layout.registerKvCaches([bf16([0, 8], [8, 1], 8)], 0),
    ours(/axis 0 must be the block/),
  );
  assert.throws(() => layout.registerKvCaches([good], -1), ours(/numBlocks is -1/));
  assert.equal([layout.kvCachesBaseAddr, layout.blockLen], [[1000n], [100]]);
});

test("no chunks give an empty table and no keys, whatever else is wrong", () => {
  const layout = layoutWith([1000n], []);
  const none = fullChunks([], 16);
  assert.is(layout.prepareValues(none, [], [0, 1]).length, 0);
  assert.is(layout.keys(none, [9]).length, 0);
});

test("keys carry the ranks of the metadata, lookups those that are asked for", () => {
  const layout = layoutWith([], []);
  assert.is(layout.keyFor(0, Uint8Array.of(0xa0)), "m@tp_rank:3@pcp0@dcp0@pp_rank:0@group:0@a0");
  assert.equal(
    layout.lookupKeyPrefixes([
      [1, 2, 3, 4],
      [0, 0, 0, 0],
    ]),
    ["m@tp_rank:1@pcp2@dcp3@pp_rank:4@group:0", "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0"],
  );
});

test.run();
