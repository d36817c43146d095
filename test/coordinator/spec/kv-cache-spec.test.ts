import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  KV_CACHE_SPEC_KINDS,
  type KvCacheGroupSpec,
  type KvCacheSpec,
  type LayerSpec,
  MooncakeStoreCoordinator,
  managerName,
  prefixCacheable,
  supportsFineGrainedHashLookup,
} from "../../../src/coordinator/index.js";
import { coordinatorOf, F, M, ours, W } from "../cases.js";

const full: LayerSpec = { kind: "full", blockSize: 16 };
const merged = (specs: KvCacheSpec[]) =>
  new MooncakeStoreCoordinator({
    kvCacheGroups: specs.map((kvCacheSpec) => ({ kvCacheSpec })),
    schedulerBlockSize: 32,
    hashBlockSize: 16,
  }).specGroups.map(({ groupIds }) => groupIds);

test("equal specs are searched together, others apart", () => {
  assert.equal(merged([full, { ...full }]), [[0, 1]]);
  assert.equal(merged([full, { ...full, dcpSharded: true, tokensPerState: 1, dtype: undefined }]), [[0, 1]]);
  assert.equal(merged([full, { kind: "mla", blockSize: 16 }, { ...full, headSize: 64 }]), [[0], [1], [2]]);
  assert.equal(merged([full, { ...full, variant: "sink 4" }, { ...full, blockSize: 32 }]), [[0], [1], [2]]);
  const window: LayerSpec = { kind: "swa", blockSize: 16, slidingWindow: 32 };
  assert.equal(
    merged([
      window,
      { ...window, extraRetainedTokens: 0 },
      { ...window, slidingWindow: 30, extraRetainedTokens: 2 },
      { ...window, kind: "swa_mla" },
    ]),
    [[0, 1, 2], [3]],
  );
});

test("the first layer of a uniform group stands for it", () => {
  const uniform: KvCacheSpec = { kind: "uniform", blockSize: 16, inner: [full, { ...full, headSize: 64 }] };
  assert.equal(merged([full, uniform]), [[0, 1]]);
  assert.is(managerName(uniform), "FullAttentionManager");
});

test("full attention is searched first", () => {
  const coordinator = coordinatorOf([W(16, 32), M(16), F(16), F(32)], 16);
  assert.equal(
    coordinator.specGroups.map(({ spec, groupIds, manager }) => [spec.kind, groupIds, manager]),
    [
      ["full", [2], "FullAttentionManager"],
      ["full", [3], "FullAttentionManager"],
      ["swa", [0], "SlidingWindowManager"],
      ["mamba", [1], "MambaManager"],
    ],
  );
});

test("one speculative member makes its spec group speculative, none makes all", () => {
  const groups = [F(16), { ...F(16), isEagleGroup: true }, M(16), W(16, 32)];
  assert.equal([...coordinatorOf(groups, 16).eagleGroupIds], [0, 1]);
  assert.equal([...coordinatorOf(groups, 16, { useEagle: true }).eagleGroupIds], [0, 1]);
  const unmarked = coordinatorOf([F(16), M(16), W(16, 32)], 16, { useEagle: true });
  assert.equal([...unmarked.eagleGroupIds].sort(), [0, 1, 2]);
  assert.equal([...unmarked.eagleProofMarginByGroup.keys()].sort(), [0, 2]);
});

test("every kind has a manager, and says whether it is cached and how finely", () => {
  const spec = (kind: KvCacheSpec["kind"]) => ({ ...full, kind, inner: [full] }) as unknown as KvCacheSpec;
  const kinds = (wanted: (spec: KvCacheSpec) => boolean) =>
    KV_CACHE_SPEC_KINDS.filter((kind) => wanted(spec(kind)));
  assert.equal(kinds(supportsFineGrainedHashLookup), ["full", "mla", "rswa", "mamba", "uniform"]);
  assert.equal(
    kinds((one) => !prefixCacheable(one)),
    ["circular"],
  );
  const replayed: KvCacheSpec = { kind: "swa_mla", blockSize: 16, slidingWindow: 32, boundedReplay: true };
  assert.is(prefixCacheable(replayed), false);
});

test("specs that make no sense are refused", () => {
  const refused = (spec: object, pattern: RegExp) =>
    assert.throws(
      () => coordinatorOf([{ kvCacheSpec: spec } as KvCacheGroupSpec], 16, { schedulerBlockSize: 16 }),
      ours("ERR_CONFIG", pattern),
    );
  refused({ kind: "paged", blockSize: 16 }, /kind "paged"; one of full, mla/);
  refused({ kind: "full", blockSize: 1.5 }, /blockSize of group 0 is 1.5/);
  refused({ kind: "swa", blockSize: 16, slidingWindow: 0 }, /slidingWindow of group 0 is 0/);
  refused({ kind: "swa", blockSize: 16, slidingWindow: 8, extraRetainedTokens: -1 }, /extraRetainedTokens/);
  refused({ kind: "chunked_local", blockSize: 16 }, /attentionChunkSize of group 0 is undefined/);
  refused({ kind: "rswa", blockSize: 16 }, /rswaWindow of group 0 is undefined/);
  refused({ kind: "uniform", blockSize: 16, inner: [] }, /at least one layer/);
  refused(
    { kind: "uniform", blockSize: 16, inner: [{ kind: "full", blockSize: 32 }] },
    /blocks of 32.*of 16/,
  );
  const inside = { kind: "uniform", blockSize: 16, inner: [full] };
  refused({ kind: "uniform", blockSize: 16, inner: [inside] }, /layer 0 of group 0 is uniform itself/);
});

test.run();
