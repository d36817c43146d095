import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type KvCacheSpec,
  lookupRankNamespaces,
  prefixCacheableGroupIds,
  tpReplicationFactor,
  validateKvCacheConfig,
} from "../../../src/coordinator/index.js";
import { C, F, M, ours, W } from "../cases.js";

test("groups that are stored keep the engine's ids", () => {
  assert.equal(
    prefixCacheableGroupIds([F(800), C(8), M(800), { ...F(16), enableKvTransfer: false }]),
    [0, 2],
  );
});

test("what the connector can't store is refused, all of it at once", () => {
  assert.equal(validateKvCacheConfig([F(16), C(8)], 2), [0]);
  assert.throws(() => validateKvCacheConfig([C(8)]), ours("ERR_CONFIG", /no cache group can be stored/));
  assert.throws(
    () =>
      validateKvCacheConfig(
        [
          { kvCacheSpec: { kind: "cross", blockSize: 16 } },
          { kvCacheSpec: { kind: "mamba", blockSize: 16, mambaCacheMode: "none" } },
        ],
        4,
      ),
    ours("ERR_CONFIG", /group 0 is cross attention; group 1 .*"none".*; prefill context parallel size 4/),
  );
});

test("ranks that hold the same bytes", () => {
  const factor = (spec: KvCacheSpec, tpSize: number, heads: number, dcpSize = 1) =>
    tpReplicationFactor(spec, { tpSize, dcpSize }, heads);
  const mla: KvCacheSpec = { kind: "mla", blockSize: 16 };
  assert.equal([factor(F(16).kvCacheSpec, 4, 2), factor(F(16).kvCacheSpec, 4, 8)], [2, 1]);
  assert.equal([factor(mla, 4, 1), factor(mla, 4, 1, 2)], [4, 1]);
  assert.is(factor(M(16).kvCacheSpec, 4, 1), 1);
  assert.is(
    factor({ kind: "uniform", blockSize: 16, inner: [mla, { kind: "full", blockSize: 16 }] }, 4, 2),
    2,
  );
  assert.is(factor(W(16, 32).kvCacheSpec, 8, 2), 4);
});

test("the namespaces of a lookup: prefill context outermost, pipeline innermost", () => {
  assert.equal(lookupRankNamespaces({ tpSize: 4, ppSize: 2 }, 2), [
    [0, 0, 0, 0],
    [0, 0, 0, 1],
    [1, 0, 0, 0],
    [1, 0, 0, 1],
  ]);
  assert.equal(lookupRankNamespaces({ tpSize: 4, dcpSize: 2 }, 1), [
    [0, 0, 0, 0],
    [1, 0, 1, 0],
    [2, 0, 0, 0],
    [3, 0, 1, 0],
  ]);
  assert.equal(lookupRankNamespaces({ pcpSize: 2 }, 1), [
    [0, 0, 0, 0],
    [0, 1, 0, 0],
  ]);
  assert.is(lookupRankNamespaces({ tpSize: 8, ppSize: 2 }, 1).length, 16);
  assert.throws(() => lookupRankNamespaces({ tpSize: 0 }, 1), ours("ERR_CONFIG", /tpSize is 0/));
});

test.run();
