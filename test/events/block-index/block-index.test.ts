import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import {
  BlockIndex,
  type BlockIndexProblem,
  blockRemoved,
  blockStored,
  type EngineMatch,
  EventHashes,
  type KVCacheEvent,
  type SubscribedMessage,
} from "../../../src/events/index.js";
import { check } from "../../helpers/property.js";

const hashes = (...ids: readonly number[]) => EventHashes.from(ids.map(BigInt));
const stored = (ids: readonly number[], more: object = {}) =>
  blockStored({ blockHashes: hashes(...ids), blockSize: 16, ...more });
const removed = (ids: readonly number[], more: object = {}) =>
  blockRemoved({ blockHashes: hashes(...ids), ...more });
const tokensOf = (matches: readonly EngineMatch[]) =>
  Object.fromEntries(matches.map((m) => [m.engine, m.tokens]));
const batchOf = (events: readonly KVCacheEvent[]): SubscribedMessage => {
  const batch = {
    ts: 1,
    events,
    dataParallelRank: 0,
    unknownEvents: 0,
    unknownFields: 0,
    malformedEvents: 0,
    problems: [],
  };
  return { kind: "batch", sequence: 0n, topic: "", batch, replayed: false };
};
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
  const { stored: storedBlocks, removed: removedBlocks, removedUnknown, cleared } = index.counters;
  assert.equal([storedBlocks, removedBlocks, removedUnknown, cleared], [7, 1, 1, 1]);
  index.removeEngine("a");
  assert.equal(index.engines, ["b"]);
});

test("as many copies are removed as were stored", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2, 3]));
  index.apply("a", stored([3]));
  index.apply("a", stored([4, 5, 6, 7]));
  index.apply("a", removed([3]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6, 7))), { a: 112 });
  assert.equal([index.size, index.blocksOf("a")], [7, 7]);
  for (let copy = 0; copy < 9; copy++) index.apply("a", stored([3, 3]));
  for (let copy = 0; copy < 18; copy++) index.apply("a", removed([3]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3))), { a: 48 });
  index.apply("a", removed([3]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3))), { a: 32 });
  assert.equal([index.counters.uncountedCopies, index.counters.removedUnknown], [0, 0]);
});

test("copies are of one engine, group and medium; a clear takes all of them", () => {
  const index = new BlockIndex({ blockSize: 16 });
  for (let copy = 0; copy < 4; copy++) index.apply("a", stored([1]));
  index.apply("b", stored([1]));
  index.apply("b", removed([1]));
  assert.equal(tokensOf(index.match(hashes(1))), { a: 16 });
  index.apply("a", { type: "AllBlocksCleared" });
  index.apply("a", stored([1]));
  index.apply("a", removed([1]));
  assert.equal(index.match(hashes(1)), []);
});

test("every listed hash is stored, however many tokens come with them", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2], { tokenIds: new Uint32Array(160) }));
  assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32 });
});

test("an event with another block size costs that event alone, and is reported", () => {
  const problems: BlockIndexProblem[] = [];
  const index = new BlockIndex({ blockSize: 16, onProblem: (problem) => problems.push(problem) });
  const events = [stored([1]), stored([2], { blockSize: 24 }), stored([2], { blockSize: 32 }), stored([2])];
  index.applyMessage("a", batchOf(events));
  assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32 });
  assert.equal(index.counters.problems["block-size"], 2);
  assert.equal(
    problems.map(({ engine, reason }) => [engine, reason]),
    [
      ["a", "block-size"],
      ["a", "block-size"],
    ],
  );
  assert.match(problems[0]!.message, /24 tokens.*multiple of 16/);
  assert.match(problems[1]!.message, /32 tokens.*16, as before/);
});

test("a listener that throws or rejects costs nothing", () => {
  const fail = () => {
    throw new Error("no");
  };
  for (const onProblem of [fail, async () => fail()]) {
    const index = new BlockIndex({ blockSize: 16, onProblem });
    index.applyMessage("a", batchOf([stored([1], { blockSize: 5 }), stored([1])]));
    assert.equal(tokensOf(index.match(hashes(1))), { a: 16 });
  }
});

test("a placeholder of the CPU tier is a block there, and costs the engine nothing", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2, 3, 4, 5, 6]));
  index.apply("a", stored([7], { blockSize: 0, medium: "CPU", groupIdx: 0 }));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6, 7))), { a: 112 });
  assert.equal(tokensOf(index.match(hashes(1, 2, 3, 4, 5, 6, 7), { media: ["GPU"] })), { a: 96 });
});

test("where the hit on the GPU ends the other media carry on; the connector's lower case is the same", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1], { medium: null }));
  index.apply("a", stored([2], { medium: "cpu" }));
  index.apply("b", stored([1], { medium: "CPU" }));
  index.apply("b", stored([2], { medium: "GPU" }));
  assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32, b: 16 }, "b's own cache begins with a gap");
  assert.equal(tokensOf(index.match(hashes(1, 2), { media: ["gpu"] })), { a: 16 });
  assert.equal(tokensOf(index.match(hashes(1, 2), { media: ["CPU"] })), { b: 16 });
  index.apply("b", removed([1], { medium: "GPU" }));
  assert.equal(tokensOf(index.match(hashes(1))), { a: 16, b: 16 });
});

test("a prefix needs every group of its engine, each in its own blocks", () => {
  const index = new BlockIndex({ blockSize: 16 });
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
  index.apply("one more", stored([1]));
  assert.is(index.counters.problems["too-many-engines"], 1);
  assert.throws(() => index.engine("one more", {}), configError(/maxEngines/));
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
    { blockSize: 16, onProblem: 5 as never },
    { blockSize: 16, capasity: 5 },
    undefined as never,
  ])
    assert.throws(() => new BlockIndex(options), configError(/./));
});

test("a gap or a restart empties an engine, a batch that can't be read does not", () => {
  const index = new BlockIndex({ blockSize: 16 });
  const lost = (reason: "gap" | "malformed" | "restart") =>
    index.applyMessage("a", { kind: "lost", reason, from: 1n, to: 2n, message: "" });
  for (const reason of ["gap", "restart"] as const) {
    index.applyMessage("a", batchOf([stored([1, 2])]));
    assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32 });
    lost("malformed");
    assert.equal(tokensOf(index.match(hashes(1, 2))), { a: 32 });
    lost(reason);
    assert.equal(index.match(hashes(1, 2)), []);
  }
  assert.is(index.counters.problems.unreadable, 2);
});

test("an engine that restarts with fewer groups is learned anew; one that is cleared has the groups that it had", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.applyMessage("a", batchOf([stored([1], { groupIdx: 0 }), stored([1], { groupIdx: 1 })]));
  index.apply("a", { type: "AllBlocksCleared" });
  index.apply("a", stored([1], { groupIdx: 0 }));
  assert.equal(index.match(hashes(1)), [], "group 1 has nothing yet");
  index.applyMessage("a", { kind: "lost", reason: "restart", from: 0n, to: 0n, message: "" });
  index.apply("a", stored([1], { groupIdx: 0 }));
  assert.equal(tokensOf(index.match(hashes(1))), { a: 16 });
});

test("a group of which only an empty list was published counts", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1], { groupIdx: 0 }));
  index.apply(
    "a",
    stored([], { groupIdx: 1, kvCacheSpecKind: "sliding_window", kvCacheSpecSlidingWindow: 32 }),
  );
  assert.equal(index.match(hashes(1)), []);
});

test("what is no list of hashes is an error, and so are options that nobody knows", () => {
  const index = new BlockIndex({ blockSize: 16 });
  index.apply("a", stored([1, 2]));
  for (const wrong of [undefined, null, "ab", 5, {}, new Uint8Array(16), [5], ["ab"]])
    assert.throws(
      () => index.match(wrong as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
      String(wrong),
    );
  for (const options of [
    { medium: ["GPU"] },
    { media: "GPU" },
    { media: [5] },
    { maxTokens: Number.NaN },
    { maxTokens: -1 },
    { engines: "a" },
    { engines: 5 },
    null,
  ])
    assert.throws(() => index.match(hashes(1), options as never), configError(/./), JSON.stringify(options));
  assert.equal(tokensOf(index.match([1n, 2n])), { a: 32 });
  assert.equal(
    tokensOf(index.match(hashes(1, 2), { media: undefined, maxTokens: undefined, engines: undefined })),
    { a: 32 },
  );
});

test("what is no event is an error, and so is an engine without a name", () => {
  const index = new BlockIndex({ blockSize: 16 });
  for (const event of [undefined, null, {}, { type: "BlockMoved" }, { type: "BlockStored" }])
    assert.throws(
      () => index.apply("a", event as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
  for (const name of ["", undefined, 5])
    assert.throws(() => index.apply(name as never, stored([1])), configError(/name/));
  assert.equal(index.engines, []);
});

test("a match can be had of some engines, and no longer than a request may hit", () => {
  const index = new BlockIndex({ blockSize: 16 });
  for (const engine of ["a", "b", "c"]) index.apply(engine, stored([1, 2, 3]));
  assert.equal(tokensOf(index.match(hashes(1, 2, 3), { engines: ["c", "a", "c", "nobody"] })), {
    a: 48,
    c: 48,
  });
  assert.equal(tokensOf(index.match(hashes(1, 2, 3), { engines: ["b"], maxTokens: 47 })), { b: 32 });
  assert.equal(index.match(hashes(1, 2, 3), { maxTokens: 15 }), []);
});

test("a million blocks take less than 40 bytes each", () => {
  const index = new BlockIndex({ blockSize: 16 });
  assert.ok(index.byteLength / 2 ** 20 <= 40, `${index.byteLength}`);
});

// The same, told in the plainest way: texts with a count.
class NaiveIndex {
  readonly copies = new Map<string, number>();
  readonly groups = new Map<string, Set<number>>();

  key = (engine: string, id: number, group: number, medium: string) => `${engine}/${id}/${group}/${medium}`;

  add(key: string, copies: number): void {
    const left = Math.max(0, (this.copies.get(key) ?? 0) + copies);
    if (left === 0) this.copies.delete(key);
    else this.copies.set(key, left);
  }

  clear(engine: string): void {
    for (const block of this.copies.keys()) if (block.startsWith(`${engine}/`)) this.copies.delete(block);
  }

  match(ids: readonly number[], media: readonly string[]): Record<string, number> {
    const found: Record<string, number> = {};
    for (const [engine, groups] of this.groups) {
      let length = 0;
      for (const medium of media) {
        const has = (id: number) =>
          [...groups].every((group) => this.copies.has(this.key(engine, id, group, medium)));
        while (length < ids.length && has(ids[length]!)) length++;
      }
      if (length > 0) found[engine] = length * 16;
    }
    return found;
  }
}

test("any sequence of events leaves what counts of blocks would say", () => {
  const engine = fc.constantFrom("a", "b", "c");
  const place = { engine, group: fc.nat(1), medium: fc.constantFrom("GPU", "CPU") };
  const ids = fc.array(fc.nat(12), { maxLength: 8 });
  const command = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("store" as const), ids, ...place }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("remove" as const), ids, ...place }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("empty" as const), engine }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("clear" as const), engine }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), engine }) },
  );
  check(
    fc.property(
      fc.array(command, { maxLength: 80 }),
      fc.array(ids, { minLength: 1 }),
      (commands, prompts) => {
        const index = new BlockIndex({ blockSize: 16, capacity: 200, maxEngines: 3 });
        const naive = new NaiveIndex();
        for (const each of commands) {
          if (each.kind === "empty" || each.kind === "clear" || each.kind === "forget") {
            if (each.kind === "empty") index.apply(each.engine, { type: "AllBlocksCleared" });
            else if (each.kind === "clear") index.clear(each.engine);
            else index.removeEngine(each.engine);
            if (each.kind !== "empty") naive.groups.delete(each.engine);
            naive.clear(each.engine);
            continue;
          }
          const more = { groupIdx: each.group, medium: each.medium };
          if (each.kind === "store") index.apply(each.engine, stored(each.ids, more));
          else index.apply(each.engine, removed(each.ids, more));
          if (each.kind === "store")
            naive.groups.set(each.engine, (naive.groups.get(each.engine) ?? new Set()).add(each.group));
          for (const id of each.ids)
            naive.add(naive.key(each.engine, id, each.group, each.medium), each.kind === "store" ? 1 : -1);
        }
        for (const prompt of prompts)
          for (const media of [["GPU", "CPU"], ["GPU"], ["CPU"]])
            assert.equal(tokensOf(index.match(hashes(...prompt), { media })), naive.match(prompt, media));
        for (const name of ["a", "b", "c"])
          assert.is(
            index.blocksOf(name),
            [...naive.copies.keys()].filter((block) => block.startsWith(`${name}/`)).length,
          );
        assert.is(index.evicted, 0);
      },
    ),
    { numRuns: 500 },
  );
});

test("a small index knows fewer blocks than were stored, never others", () => {
  const step = fc.record({ engine: fc.constantFrom("a", "b"), id: fc.nat(60), kind: fc.nat(9) });
  check(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const index = new BlockIndex({ blockSize: 16, capacity: 17, maxEngines: 2 });
      const naive = new NaiveIndex();
      for (const { engine, id, kind } of steps) {
        if (kind === 0) {
          index.clear(engine);
          naive.clear(engine);
        } else if (kind < 4) {
          index.apply(engine, removed([id]));
          naive.add(`${engine}/${id}`, -1);
        } else {
          index.apply(engine, stored([id]));
          naive.add(`${engine}/${id}`, 1);
        }
      }
      const held = { a: 0, b: 0 };
      for (let id = 0; id <= 60; id++)
        for (const { engine } of index.match(hashes(id))) {
          assert.ok(naive.copies.has(`${engine}/${id}`), `${engine} ${id}`);
          held[engine as "a"]++;
        }
      assert.equal([index.blocksOf("a"), index.blocksOf("b")], [held.a, held.b]);
      assert.ok(index.size <= 17);
    }),
    { numRuns: 300 },
  );
});

test.run();
