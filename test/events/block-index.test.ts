import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  BlockIndex,
  blockRemoved,
  blockStored,
  type EngineMatch,
  EventHashes,
} from "../../src/events/index.js";
import { check } from "../helpers/property.js";

const hashes = (...ids: readonly number[]) => EventHashes.from(ids.map(BigInt));
const stored = (ids: readonly number[], more: object = {}) =>
  blockStored({ blockHashes: hashes(...ids), blockSize: 16, ...more });
const removed = (ids: readonly number[], more: object = {}) =>
  blockRemoved({ blockHashes: hashes(...ids), ...more });
const tokensOf = (matches: readonly EngineMatch[]) =>
  Object.fromEntries(matches.map((m) => [m.engine, m.tokens]));
const configError = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message);

test("each engine's longest prefix, longest first", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2, 3]));
  index.apply("b", stored([1, 2, 3, 4]));
  index.apply("c", stored([2, 3, 4]));
  index.apply("d", stored([1, 3, 4]));
  assert.equal(index.match(hashes(1, 2, 3, 4, 5)), [
    { engine: "b", tokens: 64, blocks: 4 },
    { engine: "a", tokens: 48, blocks: 3 },
    { engine: "d", tokens: 16, blocks: 1 },
  ]);
  assert.equal(index.match(hashes()), []);
  assert.equal(index.match(hashes(9)), []);
  assert.equal([index.size, index.blocksOf("a"), index.blocksOf("nobody")], [4, 3, 0]);
});

test("removed and cleared blocks count no more", () => {
  const index = new BlockIndex({ blockSize: 16 });
  for (const engine of ["a", "b"]) index.apply(engine, stored([1, 2, 3]));
  index.apply("a", removed([2, 9]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3))), { a: 16, b: 48 });
  index.apply("b", { type: "AllBlocksCleared" });
  assert.equal(tokensOf(index.match(hashes(1, 2, 3))), { a: 16 });
  index.apply("b", stored([1]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3))), { a: 16, b: 16 });
  assert.equal(index.counters, { stored: 7, removed: 1, removedUnknown: 1, cleared: 1, ambiguous: 0 });
  index.removeEngine("a");
  assert.equal(index.engines, ["b"]);
});

test("a block of another size is an error with both numbers, and changes nothing", () => {
  const index = new BlockIndex({ blockSize: 16 });
  assert.throws(() => index.apply("a", stored([1], { blockSize: 64 })), configError(/64.*16/));
  assert.equal([index.size, index.engines], [0, []]);
});

test("an ambiguous event is left out and counted", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1], { tokenIds: new Uint32Array(48) }));
  assert.equal([index.size, index.counters.ambiguous], [0, 1]);
});

test("media count together, or only the chosen ones; the connector's lower case is the same", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1], { medium: null }));
  index.apply("a", stored([2], { medium: "cpu" }));
  index.apply("b", stored([1], { medium: "CPU" }));
  assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32, b: 16 });
  assert.equal(tokensOf(index.match(hashes(1, 2), { media: ["gpu"] })), { a: 16 });
  assert.equal(tokensOf(index.match(hashes(1, 2), { media: ["CPU"] })), { b: 16 });
  index.apply("b", removed([1], { medium: "GPU" }));
  assert.equal(tokensOf(index.match(hashes(1))), { a: 16, b: 16 });
});

test("a prefix needs every group of its engine, each in its own blocks", () => {
  const index = new BlockIndex({ blockSize: 16, groupBlockSizes: { 1: 64 } });
  index.apply("hybrid", stored([1, 2, 3, 4, 5, 6, 7, 8], { groupIdx: 0 }));
  index.apply("hybrid", stored([4], { groupIdx: 1, blockSize: 64 }));
  index.apply("plain", stored([1, 2, 3], { groupIdx: 0 }));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6, 7, 8))), { hybrid: 64, plain: 48 });
  index.apply("hybrid", removed([4], { groupIdx: 1 }));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4))), { plain: 48 });
});

test("of a sliding window the last blocks are enough, of a state the last one", () => {
  const index = new BlockIndex({ blockSize: 16 });
  const window = { groupIdx: 1, kvCacheSpecKind: "sliding_window", kvCacheSpecSlidingWindow: 33 };
  index.apply("a", stored([1, 2, 3, 4, 5, 6], { groupIdx: 0 }));
  index.apply("a", stored([3, 4, 6], window));
  assert.equal(
    tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6))),
    { a: 64 },
    "blocks 3 and 4 are a window of 2",
  );
  index.apply("a", stored([5], window));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6))), { a: 96 });
  index.apply("a", stored([5], { groupIdx: 2, kvCacheSpecKind: "mamba" }));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6))), { a: 80 });
});

test("a full index lets go of what was not used for longest", () => {
  const index = new BlockIndex({ blockSize: 16, capacity: 100 });
  for (let at = 0; at < 100; at++) index.apply("a", stored([at]));
  assert.equal(tokensOf(index.match(hashes(0, 1, 2))), { a: 48 });
  for (let at = 100; at < 190; at++) index.apply("b", stored([at]));
  assert.equal([index.size, index.evicted], [100, 90]);
  assert.equal(tokensOf(index.match(hashes(0, 1, 2))), { a: 48 }, "they were used");
  assert.equal(index.match(hashes(3)), []);
  assert.equal([index.blocksOf("a"), index.blocksOf("b")], [10, 90]);
});

test("memory does not grow, however much is stored and cleared", () => {
  const index = new BlockIndex({ blockSize: 16, capacity: 1000, maxEngines: 3 });
  const bytes = index.byteLength;
  for (let at = 0; at < 20_000; at++) {
    const engine = `engine ${at % 3}`;
    index.apply(engine, stored([at, at + 1]));
    if (at % 7 === 0) index.apply(engine, { type: "AllBlocksCleared" });
    if (at % 11 === 0) index.removeEngine(engine);
  }
  assert.is(index.byteLength, bytes);
  assert.ok(index.size <= 1000);
});

test("engines have a number at most, and one that is gone makes room", () => {
  const index = new BlockIndex({ blockSize: 16, maxEngines: 40 });
  for (let at = 0; at < 40; at++) index.apply(`engine ${at}`, stored([1]));
  assert.throws(() => index.apply("one more", stored([1])), configError(/maxEngines/));
  assert.is(index.match(hashes(1)).length, 40);
  index.removeEngine("engine 7");
  index.apply("one more", stored([1]));
  assert.is(index.match(hashes(1)).length, 40);
});

test("sizes that are none are refused", () => {
  for (const options of [
    { blockSize: 0 },
    { blockSize: 16, capacity: 0 },
    { blockSize: 16, maxEngines: 1.5 },
    { blockSize: 16, groupBlockSizes: { 1: 24 } },
  ])
    assert.throws(() => new BlockIndex(options), configError(/./));
});

test("lost batches empty an engine, the events of a batch are applied", () => {
  const index = new BlockIndex({ blockSize: 16 });
  const batch = { ts: 1, events: [stored([1, 2])], dataParallelRank: 0, unknownEvents: 0, unknownFields: 0 };
  index.applyMessage("a", { kind: "batch", sequence: 0n, topic: "", batch, replayed: false });
  assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32 });
  index.applyMessage("a", { kind: "lost", reason: "gap", from: 1n, to: 2n, message: "" });
  assert.equal(index.match(hashes(1, 2)), []);
});

// The same, told in the plainest way: a set of texts.
class NaiveIndex {
  readonly blocks = new Set<string>();
  readonly groups = new Map<string, Set<number>>();

  key = (engine: string, id: number, group: number, medium: string) => `${engine}/${id}/${group}/${medium}`;

  clear(engine: string): void {
    for (const block of this.blocks) if (block.startsWith(`${engine}/`)) this.blocks.delete(block);
  }

  match(ids: readonly number[], media: readonly string[]): Record<string, number> {
    const found: Record<string, number> = {};
    for (const [engine, groups] of this.groups) {
      const has = (id: number, group: number) =>
        media.some((medium) => this.blocks.has(this.key(engine, id, group, medium)));
      const missing = ids.findIndex((id) => ![...groups].every((group) => has(id, group)));
      const length = missing < 0 ? ids.length : missing;
      if (length > 0) found[engine] = length * 16;
    }
    return found;
  }
}

test("any sequence of events leaves what a set of blocks would hold", () => {
  const engine = fc.constantFrom("a", "b", "c");
  const place = { engine, group: fc.nat(1), medium: fc.constantFrom("GPU", "CPU") };
  const ids = fc.array(fc.nat(30), { maxLength: 8 });
  const command = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("store" as const), ids, ...place }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("remove" as const), ids, ...place }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("clear" as const), engine }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), engine }) },
  );
  check(
    fc.property(
      fc.array(command, { maxLength: 60 }),
      fc.array(ids, { minLength: 1 }),
      (commands, prompts) => {
        const index = new BlockIndex({ blockSize: 16, capacity: 200, maxEngines: 3 });
        const naive = new NaiveIndex();
        for (const each of commands) {
          if (each.kind === "clear" || each.kind === "forget") {
            if (each.kind === "clear") index.clear(each.engine);
            else {
              index.removeEngine(each.engine);
              naive.groups.delete(each.engine);
            }
            naive.clear(each.engine);
            continue;
          }
          const more = { groupIdx: each.group, medium: each.medium };
          if (each.kind === "store") index.apply(each.engine, stored(each.ids, more));
          else index.apply(each.engine, removed(each.ids, more));
          if (each.kind === "store")
            naive.groups.set(each.engine, (naive.groups.get(each.engine) ?? new Set()).add(each.group));
          for (const id of each.ids) {
            const key = naive.key(each.engine, id, each.group, each.medium);
            if (each.kind === "store") naive.blocks.add(key);
            else naive.blocks.delete(key);
          }
        }
        for (const prompt of prompts)
          for (const media of [["GPU", "CPU"], ["GPU"]])
            assert.equal(tokensOf(index.match(hashes(...prompt), { media })), naive.match(prompt, media));
        for (const name of ["a", "b", "c"])
          assert.is(
            index.blocksOf(name),
            [...naive.blocks].filter((block) => block.startsWith(`${name}/`)).length,
          );
        assert.is(index.evicted, 0);
      },
    ),
  );
});

test("a small index knows fewer blocks than were stored, never others", () => {
  const step = fc.record({ engine: fc.constantFrom("a", "b"), id: fc.nat(60), kind: fc.nat(9) });
  check(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const index = new BlockIndex({ blockSize: 16, capacity: 17, maxEngines: 2 });
      const naive = new Set<string>();
      for (const { engine, id, kind } of steps) {
        if (kind === 0) {
          index.clear(engine);
          for (const block of naive) if (block.startsWith(engine)) naive.delete(block);
        } else if (kind < 3) {
          index.apply(engine, removed([id]));
          naive.delete(`${engine}${id}`);
        } else {
          index.apply(engine, stored([id]));
          naive.add(`${engine}${id}`);
        }
      }
      const held = { a: 0, b: 0 };
      for (let id = 0; id <= 60; id++)
        for (const { engine } of index.match(hashes(id))) {
          assert.ok(naive.has(`${engine}${id}`), `${engine} ${id}`);
          held[engine as "a"]++;
        }
      assert.equal([index.blocksOf("a"), index.blocksOf("b")], [held.a, held.b]);
      assert.ok(index.size <= 17);
    }),
    { numRuns: 300 },
  );
});

test.run();
