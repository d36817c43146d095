import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import type { CacheTensor } from "../../src/layout/cache-tensor.js";
import { LBHNCStoreLayout } from "../../src/layout/lbhnc-store-layout.js";
import { LBNHCStoreLayout } from "../../src/layout/lbnhc-store-layout.js";
import { RankLocalStoreLayout } from "../../src/layout/rank-local-store-layout.js";
import { StoreLayout } from "../../src/layout/store-layout.js";
import { rankLocalNamespace, tpSharedMqaNamespace } from "../../src/layout/store-namespace.js";
import { TPShardedStoreLayout } from "../../src/layout/tp-sharded-store-layout.js";
import { fullChunks } from "../../src/testing/arbitraries/layout-arbitraries.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_LAYOUT") && pattern.test(error.message);

const metadata = { modelName: "m", storeNamespace: LBHNCStoreLayout.sharedNamespace(4, 1) };
const sizes = { metadata, blockSize: 16, storeTpSize: 4, numKvHeads: 8 };

/** 8 heads of 2 fp16 numbers for K and V each, 16 tokens: the caches of TP 2 and TP 4. */
function cache(order: "LBHNC" | "LBNHC", heads: number): CacheTensor {
  const strides = order === "LBHNC" ? [heads * 64, 64, 4, 1] : [heads * 64, 4, heads * 4, 1];
  return {
    address: 1024n,
    storageAddress: 1024n,
    storageBytes: BigInt(10 * heads * 64 * 2),
    shape: [10, heads, 16, 4],
    strides,
    elementSize: 2,
  };
}

test("head-major: one segment a shard and layer", () => {
  const four = new LBHNCStoreLayout({ ...sizes, tpSize: 4, tpRank: 3 });
  four.registerKvCaches([cache("LBHNC", 2)], 10);
  assert.equal(four.localShardIds, [3]);
  assert.equal(four.segmentTemplates, [[{ base: 1024n, stride: 256n, size: 256n }]]);
  const two = new LBHNCStoreLayout({ ...sizes, tpSize: 2, tpRank: 1 });
  two.registerKvCaches([cache("LBHNC", 4)], 10);
  assert.equal(two.localShardIds, [2, 3]);
  assert.equal(
    two.segmentTemplates.map(([first]) => first),
    [
      { base: 1024n, stride: 512n, size: 256n },
      { base: 1280n, stride: 512n, size: 256n },
    ],
  );
});

test("token-major: one segment a token, shard and layer", () => {
  const two = new LBNHCStoreLayout({ ...sizes, tpSize: 2, tpRank: 0 });
  two.registerKvCaches([cache("LBNHC", 4)], 10);
  const [first, second] = two.segmentTemplates;
  assert.equal(
    first!.map(({ base }) => base),
    Array.from({ length: 16 }, (_, token) => 1024n + BigInt(token) * 32n),
  );
  assert.equal(second![3], { base: 1024n + 3n * 32n + 16n, stride: 512n, size: 16n });
});

test("without shard ids every chunk gets all local shards; with them one each", () => {
  const two = new LBHNCStoreLayout({ ...sizes, tpSize: 2, tpRank: 1 });
  two.registerKvCaches([cache("LBHNC", 4)], 10);
  const chunks = fullChunks([1, 0], 16);
  const all = two.prepareValues(chunks, [5, 6]);
  assert.equal([...all.addresses], [4096n, 4352n, 3584n, 3840n]);
  assert.equal([...all.blockIds], [6, 6, 5, 5]);
  const named = two.prepareValues(chunks, [5, 6], [3, 2]);
  assert.equal([...named.addresses], [4352n, 3584n]);
  assert.equal(
    two
      .keys(chunks, [3, 2])
      .toArray()
      .map((key) => key.slice(key.indexOf("@tp_rank"), key.indexOf("@pcp"))),
    ["@tp_rank:3", "@tp_rank:2"],
  );
});

test("a block is reusable when all shards of all PP ranks have it", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, storeTpSize: 2, tpSize: 1, tpRank: 0 });
  const namespaces = [
    [0, 0, 0, 10],
    [1, 0, 0, 2],
    [0, 0, 0, 2],
  ] as const;
  assert.equal(
    layout.lookupKeyPrefixes(namespaces).map((prefix) => prefix.slice(prefix.indexOf("@tp_rank"))),
    [
      "@tp_rank:0@pcp0@dcp0@pp_rank:2@group:0",
      "@tp_rank:0@pcp0@dcp0@pp_rank:10@group:0",
      "@tp_rank:1@pcp0@dcp0@pp_rank:2@group:0",
      "@tp_rank:1@pcp0@dcp0@pp_rank:10@group:0",
    ],
  );
});

test("tensors in another shape or order are refused with both shapes, and nothing changes", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 2, tpRank: 0 });
  const good = cache("LBHNC", 4);
  layout.registerKvCaches([good], 10);
  const before = layout.segmentTemplates;
  const bad: [CacheTensor, RegExp][] = [
    [cache("LBHNC", 2), /\[10,2,16,4\].*\(10, 4, 16, any\)/],
    [cache("LBNHC", 4), /not packed as tp_shared_lbhnc/],
    [{ ...good, shape: [10, 4, 16, 2] }, /not packed/],
    [{ ...good, shape: [10, 4, 64], strides: [256, 64, 1] }, /blocks, local KV heads/],
  ];
  for (const [tensor, pattern] of bad)
    assert.throws(() => layout.registerKvCaches([good, tensor], 10), ours(pattern));
  assert.throws(() => layout.registerKvCaches([good], 11), ours(/\(11, 4, 16, any\)/));
  assert.equal(layout.segmentTemplates, before);
});

test("chunks are checked in vLLM's order: count, length, owner, block", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 2, tpRank: 1 });
  const partial = { length: 1, starts: [0], ends: [8] };
  const full = fullChunks([0], 16);
  const bad: [() => unknown, RegExp][] = [
    [() => layout.prepareValues(partial, [], [9, 9]), /2 shard ids for 1 chunks/],
    [() => layout.prepareValues(partial, [], [9]), /8 tokens.*full blocks of 16/],
    [() => layout.prepareValues(full, [], [9]), /shard 9 .* owns 2, 3/],
    [() => layout.prepareValues(full, [], [Number.NaN]), /shard NaN/],
    [() => layout.prepareValues(full, [], [2]), /block table has 0 blocks/],
    [() => layout.keyFor(0, new Uint8Array(1)), /shard 0 .* owns 2, 3/],
  ];
  for (const [call, pattern] of bad) assert.throws(call, ours(pattern));
});

test("addresses may pass 2^63 but not 2^64", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 4, tpRank: 0, checkBlockIds: false });
  const address = (1n << 64n) - 65536n;
  layout.registerKvCaches([{ ...cache("LBHNC", 2), address, storageAddress: address }], 10);
  assert.is(layout.prepareValues(fullChunks([0], 16), [9]).addresses[0], address + 9n * 256n);
  assert.throws(() => layout.prepareValues(fullChunks([0], 16), [256]), ours(/block 256 would lie at/));
});

test("a block beyond the registered caches is refused, with its id and their number", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 4, tpRank: 0 });
  const first = fullChunks([0], 16);
  assert.throws(() => layout.prepareValues(first, [0]), ours(/no KV caches are registered/));
  layout.registerKvCaches([cache("LBHNC", 2)], 10);
  assert.is(layout.prepareValues(first, [9]).length, 1);
  assert.throws(
    () => layout.prepareValues(fullChunks([0, 1, 2], 16), [9, 0, 10]),
    ours(/chunk 2 lies in block 10: the registered caches have 10 blocks, 0 to 9/),
  );
  assert.throws(() => layout.prepareValues(first, [10], [0]), ours(/chunk 0 lies in block 10/));
});

test("without checkBlockIds, a block is computed wherever it lies, as in vLLM", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 4, tpRank: 0, checkBlockIds: false });
  assert.is(layout.prepareValues(fullChunks([0], 16), [0]).addresses.length, 0);
  layout.registerKvCaches([cache("LBHNC", 2)], 10);
  assert.is(layout.prepareValues(fullChunks([0], 16), [10]).addresses[0], 1024n + 10n * 256n);
});

test("a rank without shards says so instead of storing nothing", () => {
  const layout = new LBHNCStoreLayout({ ...sizes, tpSize: 8, tpRank: 1 });
  assert.equal(layout.localShardIds, []);
  layout.registerKvCaches([], 10);
  assert.throws(() => layout.prepareValues(fullChunks([0], 16), [0]), ours(/owns no shard/));
  assert.throws(() => layout.keys(fullChunks([0], 16)), ours(/owns no shard/));
  assert.throws(() => layout.prepareValues(fullChunks([0], 16), [0], [0]), ours(/owns none/));
});

test("sizes that give nothing to divide are refused", () => {
  for (const [changes, pattern] of [
    [{ tpSize: 0 }, /tpSize is 0/],
    [{ storeTpSize: 0 }, /storeTpSize is 0/],
    [{ storeTpSize: -4 }, /one sign/],
    [{ storeTpSize: 2 ** 40 }, /storeTpSize is 1099511627776/],
    [{ tpRank: 0.5 }, /tpRank is 0.5/],
    [{ numKvHeads: Number.NaN }, /numKvHeads is NaN/],
  ] as const)
    assert.throws(() => new LBHNCStoreLayout({ ...sizes, tpSize: 2, tpRank: 0, ...changes }), ours(pattern));
});

test("the abstract classes can't be used, even without types", () => {
  assert.throws(() => Reflect.construct(StoreLayout, [sizes]), ours(/StoreLayout is abstract/));
  const options = [{ ...sizes, tpSize: 2, tpRank: 0 }];
  assert.throws(() => Reflect.construct(TPShardedStoreLayout, options), ours(/no store format/));
  assert.throws(() => TPShardedStoreLayout.sharedNamespace(1, 1), ours(/no store format/));
});

test("namespaces are vLLM's", () => {
  assert.is(LBHNCStoreLayout.sharedNamespace(4, 2), "@store_tp:4@store_pp:2@store_format:tp_shared_lbhnc");
  assert.is(LBNHCStoreLayout.sharedNamespace(8, 1), "@store_tp:8@store_pp:1@store_format:tp_shared_lbnhc");
  assert.is(tpSharedMqaNamespace(3), "@store_pp:3@store_format:tp_shared_mqa");
  const wish = { tpSize: 4, ppSize: 2, cacheLayout: "BLHNC" } as const;
  assert.is(rankLocalNamespace(wish), "@store_pp:2@store_format:rank_local_tp4_layout_BLHNC");
  assert.throws(
    () => rankLocalNamespace({ ...wish, cacheLayout: "NHD" as "LBHNC" }),
    ours(/"NHD" is unknown/),
  );
  assert.throws(() => rankLocalNamespace({ ...wish, tpSize: 0 }), ours(/tpSize is 0/));
  assert.throws(() => tpSharedMqaNamespace(0), ours(/ppSize is 0/));
  assert.throws(() => LBHNCStoreLayout.sharedNamespace(1.5, 1), ours(/storeTpSize is 1.5/));
});

test("a layout is one of the two kinds", () => {
  assert.ok(new LBNHCStoreLayout({ ...sizes, tpSize: 2, tpRank: 0 }) instanceof TPShardedStoreLayout);
  assert.ok(new RankLocalStoreLayout({ metadata, blockSize: 1 }) instanceof StoreLayout);
});

test.run();
