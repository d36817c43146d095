import { test } from "uvu";
import * as assert from "uvu/assert";
import { blockIndexEngineCodec } from "../../../generated/typescript/vllm-0.33/event-index-codecs.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { engineConfig } from "../../../src/events/block-index/engine-config.js";
import { BlockIndex, blockStored, EventHashes } from "../../../src/events/index.js";

const hashes = (...ids: readonly number[]) => EventHashes.from(ids.map(BigInt));
const stored = (ids: readonly number[], more: object = {}) =>
  blockStored({ blockHashes: hashes(...ids), blockSize: 16, ...more });

test("what is left out has its default", () => {
  const config = engineConfig("a", {}, 16);
  assert.equal(config, {
    release: "vllm-0.33",
    hashBlockSize: 16,
    groups: undefined,
    chunkSizes: new Map(),
    eagle: false,
    eagleGroups: new Set(),
    offloadChunkBlocks: 1,
  });
  const nothing = { release: null, groups: undefined, chunkSizes: null, eagle: null, eagleGroups: undefined };
  assert.equal(engineConfig("a", nothing, 16), config);
});

test("what the schema reads from JSON is a configuration", () => {
  const config = engineConfig(
    "a",
    blockIndexEngineCodec.fromJson({
      release: "vllm-0.31",
      hash_block_size: 8,
      groups: [
        { kind: "full", block_size: 16 },
        { kind: "swa", block_size: 8, sliding_window: 128, is_eagle_group: true },
        { kind: "chunked_local", block_size: 16, attention_chunk_size: 8192 },
        { kind: "mamba", block_size: 32 },
        { kind: "rswa", block_size: 16 },
        { kind: "circular", block_size: 5 },
      ],
      chunk_sizes: [[2, 64]],
      eagle: true,
      eagle_groups: [1],
      offload_chunk_blocks: 4,
    }),
    16,
  );
  assert.equal(
    config.groups!.map(({ kvCacheSpec }) => kvCacheSpec.kind),
    ["full", "swa", "chunked_local", "mamba", "rswa", "circular"],
  );
  assert.equal([config.release, config.hashBlockSize, config.offloadChunkBlocks], ["vllm-0.31", 8, 4]);
  assert.equal([...config.chunkSizes, ...config.eagleGroups], [[2, 64], 1]);
  assert.equal(engineConfig("a", { chunkSizes: { 2: 64 } }, 16).chunkSizes, new Map([[2, 64]]));
});

const wrong: readonly [string, unknown, RegExp][] = [
  ["no object", 5, /must be an object/],
  ["a misspelt option", { releas: "vllm-0.33" }, /no option "releas"; there are release, /],
  ["an unknown release", { release: "vllm-9" }, /"vllm-9"; one of vllm-0\.27/],
  ["no hash block", { hashBlockSize: 0 }, /hashBlockSize .* is 0/],
  ["no groups", { groups: [] }, /one KV cache group at least/],
  ["groups that are none", { groups: 2 }, /groups .* is 2/],
  ["a group without a kind", { groups: [{ blockSize: 16 }] }, /kind undefined/],
  ["a misspelt member", { groups: [{ kind: "full", blocksize: 16 }] }, /no option "blocksize"/],
  ["a window without tokens", { groups: [{ kind: "swa", blockSize: 16 }] }, /slidingWindow/],
  ["a chunk without tokens", { groups: [{ kind: "chunked_local", blockSize: 16 }] }, /attentionChunkSize/],
  [
    "blocks that hashes don't fill",
    { groups: [{ kind: "full", blockSize: 24 }] },
    /24 tokens.*multiple of.*16/,
  ],
  [
    "a mode that nobody knows",
    { groups: [{ kind: "mamba", blockSize: 16, mambaCacheMode: "some" }] },
    /"some"; one of align/,
  ],
  [
    "a flag that is none",
    { groups: [{ kind: "full", blockSize: 16, isEagleGroup: 1 }] },
    /isEagleGroup of group 0/,
  ],
  ["a chunk of half a token", { chunkSizes: { 0: 0.5 } }, /chunkSizes of group 0 .* is 0\.5/],
  ["a group that is no number", { chunkSizes: { x: 5 } }, /a group of chunkSizes/],
  ["a group below 0", { eagleGroups: [-1] }, /a group of eagleGroups/],
  ["a maybe", { eagle: "yes" }, /eagle .* is "yes"/],
  ["no blocks in a chunk", { offloadChunkBlocks: 0 }, /offloadChunkBlocks/],
];
for (const [name, init, pattern] of wrong)
  test(`refused: ${name}`, () => {
    const index = new BlockIndex({ blockSize: 16 });
    assert.throws(
      () => index.engine("a", init as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message),
    );
    assert.equal(index.engines, []);
  });

test("an engine with hashes of another size has its own step, in one index", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("b", { hashBlockSize: 32 });
  index.apply("a", stored([1, 2]));
  index.apply("b", stored([1, 2], { blockSize: 32 }));
  index.apply("b", stored([3], { blockSize: 16 }));
  assert.equal(index.match(hashes(1, 2, 3)), [
    { engine: "b", tokens: 64, blocks: 2 },
    { engine: "a", tokens: 32, blocks: 2 },
  ]);
  assert.is(index.counters.problems["block-size"], 1);
});

test("an engine may be configured at any time; only hashes of another size make it begin anew", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2, 3]));
  index.engine("a", { eagle: true });
  assert.equal(index.match(hashes(1, 2, 3)), [{ engine: "a", tokens: 32, blocks: 2 }]);
  index.engine("a", { groups: [{ kind: "swa", blockSize: 16, slidingWindow: 17 }] });
  index.apply("a", { type: "AllBlocksCleared" });
  index.apply("a", stored([3]));
  assert.equal(index.match(hashes(1, 2, 3)), [{ engine: "a", tokens: 48, blocks: 3 }]);
  index.engine("a", { hashBlockSize: 8 });
  assert.is(index.blocksOf("a"), 0);
});

test("an event of a group that is not configured is passed over", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("a", { groups: [{ kind: "full", blockSize: 16 }] });
  index.apply("a", stored([1], { groupIdx: 1 }));
  index.apply("a", stored([1]));
  assert.equal(index.match(hashes(1)), [{ engine: "a", tokens: 16, blocks: 1 }]);
  assert.is(index.counters.problems["unknown-group"], 1);
});

test("tails inside a block count where hits end at hashes, and are passed over where they don't", () => {
  const tail = { blockSize: 16, groupIdx: 0 };
  const block = { blockSize: 64, groupIdx: 0 };
  for (const mambaCacheMode of ["align", "none"] as const) {
    const index = new BlockIndex({ blockSize: 16 });
    index.engine("a", {
      groups: [
        { kind: "full", blockSize: 64 },
        { kind: "mamba", blockSize: 64, mambaCacheMode },
      ],
    });
    index.apply("a", stored([4], block));
    index.apply("a", stored([6], tail));
    index.apply("a", stored([6], { blockSize: mambaCacheMode === "align" ? 16 : 64, groupIdx: 1 }));
    const fine = mambaCacheMode === "align";
    assert.equal(index.match(hashes(1, 2, 3, 4, 5, 6)), fine ? [{ engine: "a", tokens: 96, blocks: 6 }] : []);
    assert.is(index.counters.problems["block-size"], fine ? 0 : 1);
  }
});

test("a shape that vLLM refuses matches nothing, and the explanation says why", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("a", {
    eagle: true,
    groups: [{ kind: "chunked_local", blockSize: 16, attentionChunkSize: 64 }],
  });
  index.apply("a", stored([1]));
  assert.equal(index.match(hashes(1)), []);
  assert.match(index.explain(hashes(1), "a").unusable!, /chunked attention, which can't drop a block/);
});

test("chunked attention without a chunk size is taken as full attention", () => {
  const chunked = { kvCacheSpecKind: "chunked_local_attention" };
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("told", { chunkSizes: { 0: 32 } });
  for (const engine of ["told", "untold"]) index.apply(engine, stored([1, 3], chunked));
  assert.equal(index.match(hashes(1, 2, 3)), [
    { engine: "told", tokens: 48, blocks: 3 },
    { engine: "untold", tokens: 16, blocks: 1 },
  ]);
});

test("where chunks of attention end nothing is needed, not even a block", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("a", { groups: [{ kind: "chunked_local", blockSize: 16, attentionChunkSize: 32 }] });
  assert.equal(index.match(hashes(1, 2, 3)), [{ engine: "a", tokens: 32, blocks: 2 }]);
  assert.equal(index.explain(hashes(1, 2, 3), "a").shortened, [{ rule: "chunk", tokens: 16, groupIdx: 0 }]);
});

test("an engine that nobody knows can't be explained", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1]));
  assert.throws(
    () => index.explain(hashes(1), "b"),
    (error: unknown) =>
      isMooncakeKvError(error, "ERR_CONFIG") && /no engine "b"; it knows "a"/.test(error.message),
  );
  index.engine("b", {});
  assert.equal(index.explain(hashes(1), "b").shortened, [{ rule: "missing", tokens: 16, groupIdx: null }]);
});

test.run();
