import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type BlockSizeOptions,
  eagleProofMargin,
  type KvCacheGroupSpec,
  partialHashHitsEnabled,
  resolveCacheHitAlignmentTokens,
  resolveDcpKvCacheSpec,
  resolveKvCacheBlockSizes,
} from "../../../src/coordinator/index.js";
import { C, F, M, ours, W } from "../cases.js";

function sizes(kvCacheGroups: KvCacheGroupSpec[], options: Partial<BlockSizeOptions> = {}): number[] {
  const all = { kvCacheGroups, blockSize: kvCacheGroups[0]?.kvCacheSpec.blockSize ?? 16, ...options };
  const { schedulerBlockSize, hashBlockSize } = resolveKvCacheBlockSizes(all);
  return [schedulerBlockSize, hashBlockSize, resolveCacheHitAlignmentTokens(all)];
}

test("one group has one size", () => {
  assert.equal(sizes([F(16)]), [16, 16, 16]);
  assert.equal(sizes([F(16)], { dcpWorldSize: 4 }), [64, 64, 64]);
  assert.equal(sizes([M(16)], { dcpWorldSize: 4 }), [16, 16, 16]);
  assert.equal(sizes([], { dcpWorldSize: 2 }), [32, 32, 32]);
  assert.throws(
    () => sizes([F(16)], { prefixMatchUnit: 8 }),
    ours("ERR_CONFIG", /leave it out or set it to 16/),
  );
  assert.equal(sizes([F(16)], { prefixMatchUnit: 16 }), [16, 16, 16]);
  assert.equal(
    sizes([F(16)], { prefixMatchUnit: 8, enablePrefixCaching: false, hasConnector: false }),
    [16, 16, 16],
  );
});

test("several groups share a multiple, and hash with a divisor", () => {
  assert.equal(sizes([F(32), W(24, 64)]), [96, 8, 96]);
  assert.equal(sizes([F(32), W(24, 64)], { prefixMatchUnit: 4 }), [96, 4, 96]);
  assert.throws(() => sizes([F(32), W(24, 64)], { prefixMatchUnit: 16 }), ours("ERR_CONFIG", /32, 24/));
  assert.equal(sizes([F(32), F(48)], { enablePrefixCaching: false, hasConnector: false }), [96, 96, 96]);
});

test("a ring of scratch does not count for the hash, as its size does for the scheduler", () => {
  assert.equal(sizes([F(800), M(800), C(8)]), [800, 800, 800]);
  assert.equal(sizes([F(800), M(800), C(8)], { prefixMatchUnit: 400 }), [800, 400, 400]);
});

test("aligned Mamba makes partial hits possible, unless a group can't follow", () => {
  assert.equal(sizes([F(16), M(64)]), [64, 16, 16]);
  assert.equal(sizes([F(16), M(64), W(32, 64)]), [64, 16, 64]);
  assert.equal(sizes([F(16), M(64), W(16, 64)]), [64, 16, 16]);
  assert.equal(sizes([F(16), M(64)], { enablePrefixCaching: false }), [64, 16, 64]);
  const none: KvCacheGroupSpec = { kvCacheSpec: { kind: "mamba", blockSize: 64, mambaCacheMode: "none" } };
  assert.equal(sizes([F(16), none]), [64, 64, 64]);
  assert.is(partialHashHitsEnabled([M(16)], 16), false);
  assert.is(partialHashHitsEnabled([M(16)], 16, 2), true);
});

test("a compressed state is never cut", () => {
  const compressed: KvCacheGroupSpec = { kvCacheSpec: { kind: "mla", blockSize: 64, tokensPerState: 32 } };
  assert.equal(sizes([compressed, F(16)]), [64, 16, 64]);
  assert.throws(
    () => sizes([compressed, F(16), M(64)]),
    ours("ERR_CONFIG", /multiples of 16 tokens.*covers 32/),
  );
});

test("a block spans more tokens under decode context parallelism", () => {
  const { blockSize } = resolveDcpKvCacheSpec(F(16).kvCacheSpec, 4);
  assert.equal([blockSize, Math.ceil(100 / blockSize), Math.floor(100 / blockSize)], [64, 2, 1]);
  const uniform = resolveDcpKvCacheSpec(
    { kind: "uniform", blockSize: 16, inner: [{ kind: "full", blockSize: 16 }] },
    2,
  );
  assert.equal(uniform, { kind: "uniform", blockSize: 32, inner: [{ kind: "full", blockSize: 32 }] });
  const whole = { kind: "full", blockSize: 16, dcpSharded: false } as const;
  assert.is(resolveDcpKvCacheSpec(whole, 4), whole);
});

test("a speculative group proves one hash or one block more", () => {
  assert.equal(
    [eagleProofMargin(16, 4, true), eagleProofMargin(16, 4, false), eagleProofMargin(16, 16, true)],
    [4, 16, 16],
  );
});

test("sizes that are none are refused", () => {
  assert.throws(() => sizes([F(0)]), ours("ERR_CONFIG", /blockSize of group 0 is 0/));
  assert.throws(() => sizes([F(16)], { dcpWorldSize: 0 }), ours("ERR_CONFIG", /dcpWorldSize is 0/));
  assert.throws(
    () => sizes([F(16), F(8)], { prefixMatchUnit: -8 }),
    ours("ERR_CONFIG", /prefixMatchUnit is -8/),
  );
  assert.throws(() => sizes([F(2 ** 40 + 1), F(2 ** 41 + 1)]), ours("ERR_CONFIG", /above 2\^53/));
});

test.run();
