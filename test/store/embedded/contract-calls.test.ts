import { test } from "uvu";
import * as assert from "uvu/assert";
import { openEmbeddedTestStore } from "../../../src/conformance/embedded-test-store.js";
import type { EmbeddedStore, EmbeddedStoreOptions } from "../../../src/store/index.js";
import { rejects, segmentsIn } from "../helpers.js";

const bytes = (size: number, byte: number): Uint8Array => new Uint8Array(size).fill(byte);

async function withStore(
  body: (store: EmbeddedStore) => Promise<void>,
  options: EmbeddedStoreOptions = {},
): Promise<void> {
  await using store = openEmbeddedTestStore({ capacity: "16MiB", clock: "manual", ...options });
  await body(store);
}

test("values of JavaScript's own go in and come out", () =>
  withStore(async (store) => {
    const values = [bytes(5, 1), bytes(0, 0), bytes(70_000, 2)];
    const call = store.put(["a", "empty", "b"], values);
    values[0]!.fill(9); // free for reuse as soon as the call has returned
    assert.equal((await call).codes, Int32Array.of(0, -600, 0));
    const read = await store.get(["b", "none", "a", "a"]);
    assert.is(read.operation, "get");
    assert.equal(read.codes, BigInt64Array.of(70_000n, -704n, 5n, 5n));
    assert.equal(read.values, [bytes(70_000, 2), undefined, bytes(5, 1), bytes(5, 1)]);
    assert.is(read.ok, 3);
    read.values[2]!.fill(7);
    assert.equal((await store.get(["a"])).values[0], bytes(5, 1)); // a copy of its own
    assert.is((await store.put([], [])).length, 0);
  }));

test("upsert overwrites, and what does not fit leaves the old value", () =>
  withStore(async (store) => {
    assert.equal((await store.upsert(["k"], [bytes(10, 1)])).codes, Int32Array.of(0));
    assert.equal((await store.upsert(["k", "k"], [bytes(20, 2), bytes(20, 3)])).codes, Int32Array.of(0, 0));
    assert.equal((await store.get(["k"])).values[0], bytes(20, 2));
    assert.equal((await store.upsert(["k"], [bytes(17 << 20, 4)])).codes, Int32Array.of(-200));
    assert.equal((await store.get(["k"])).values[0], bytes(20, 2));
    await using arena = await store.createArena(1 << 16);
    arena.bytes.fill(6);
    assert.equal((await store.upsertFrom(["k"], segmentsIn(arena, [[[0, 20]]]))).codes, Int32Array.of(0));
    assert.equal((await store.get(["k"])).values[0], bytes(20, 6));
    assert.is((await store.usage()).used, 30n); // the 10 bytes are parked
  }));

test("leases protect from removal until the clock says otherwise", () =>
  withStore(
    async (store) => {
      await store.put(["a", "b", "c"], [bytes(1, 1), bytes(1, 1), bytes(1, 1)]);
      await store.exists(["a"]);
      const removed = await store.remove(["a", "b", "d"]);
      assert.equal(removed.codes, Int32Array.of(-706, 0, -704));
      assert.throws(() => removed.throwIfFailed(), /OBJECT_HAS_LEASE/);
      assert.is(await store.removeAll(), 1);
      store.advanceClock(499);
      assert.is(await store.removeAll(), 0);
      store.advanceClock(1);
      assert.is(await store.removeAll(), 1);
    },
    { defaultKvLeaseTtl: 500 },
  ));

test("removes by pattern", () =>
  withStore(async (store) => {
    const keys = ["pre-1", "pre-2", "other", "z\npre"];
    await store.put(
      keys,
      keys.map(() => bytes(1, 1)),
    );
    assert.is(await store.removeByRegex("["), -600);
    assert.is(await store.removeByRegex("^pre-\\d$"), 2);
    await store.exists(["other"]);
    assert.is(await store.removeByRegex("o"), 0);
    assert.is(await store.removeByRegex("o", { force: true }), 1);
    assert.is(await store.removeByRegex("ü"), 0);
    assert.is(await store.removeAll({ force: true }), 1);
    await rejects(
      () => store.removeByRegex(/a/ as never),
      "ERR_STORE",
      /the pattern is .*; it is a regular expression as a string/,
    );
  }));

test("replicas say where an object lies", () =>
  withStore(async (store) => {
    await store.put(["a", "b"], [bytes(100, 1), bytes(100, 2)]);
    const { codes, replicas } = await store.replicas(["a", "none", "b"]);
    assert.equal(codes, Int32Array.of(1, -704, 1));
    assert.equal(replicas[1], []);
    const [a, b] = [replicas[0]![0]!, replicas[2]![0]!];
    assert.equal([a.status, a.size], ["COMPLETE", 100n]);
    assert.is(b.address! - a.address!, 104n); // the allocator's rounding
  }));

test("pins and eviction", () =>
  withStore(
    async (store) => {
      const mib = bytes(1 << 20, 1);
      await store.put(["hard"], [mib], { withHardPin: true });
      await store.put(["soft"], [mib], { withSoftPin: true });
      let refused = 0;
      for (let i = 0; i < 40; ) {
        const { codes } = await store.put([`e${i}`], [mib]);
        if (codes[0] === 0) i++;
        else refused++;
        if (codes[0] !== 0) store.advanceClock(10);
      }
      const { counters, used } = await store.usage();
      assert.equal((await store.exists(["hard", "soft", "e0", "e39"])).codes, Int32Array.of(1, 1, 0, 1));
      assert.is(counters!.refusals, BigInt(refused));
      assert.is(counters!.stored! - counters!.evicted!, used >> 20n);
      assert.is(counters!.evictedBytes, counters!.evicted! << 20n);
    },
    { evictionHighWatermarkRatio: 1 },
  ));

test("configurations that Mooncake refuses", () =>
  withStore(async (store) => {
    const one = [bytes(1, 1)];
    assert.equal((await store.put(["a"], one, { replicaNum: 0 })).codes, Int32Array.of(-600));
    assert.equal((await store.put(["a"], one, { softPinTtlMs: 5 })).codes, Int32Array.of(-600));
    assert.equal((await store.put(["a"], one, { groupIds: ["g", "h"] })).codes, Int32Array.of(-600));
    assert.equal((await store.put(["a"], one, { replicaNum: 3, groupIds: ["g"] })).codes, Int32Array.of(0));
    assert.equal((await store.upsert(["a"], one, { groupIds: ["h"] })).codes, Int32Array.of(-600));
    const preferred = { preferredSegments: ["127.0.0.1:1"] };
    assert.equal((await store.put(["b"], one, preferred)).codes, Int32Array.of(0));
  }));

test("every call has a deadline", () =>
  withStore(async (store) => {
    await using arena = await store.createArena(4096);
    const rows = segmentsIn(arena, [[[0, 10]]]);
    await store.put(["k"], [bytes(10, 1)]);
    const now = { deadlineMs: 0 };
    for (const result of [
      await store.put(["n"], [bytes(1, 1)], now),
      await store.putFrom(["n"], rows, now),
      await store.upsert(["k"], [bytes(1, 1)], now),
      await store.upsertFrom(["k"], rows, now),
      await store.getInto(["k"], rows, now),
      await store.get(["k"], now),
      await store.exists(["k"], now),
      await store.size(["k"], now),
      await store.replicas(["k"], now),
      await store.remove(["k"], now),
    ])
      assert.is(Number(result.codes[0]), -901, result.operation);
    assert.is(await store.removeByRegex("k", { force: true, ...now }), -901);
    assert.is(await store.removeAll({ force: true, ...now }), -901);
    assert.equal((await store.get(["k", "n"], { deadlineMs: 60_000 })).codes, BigInt64Array.of(10n, -704n));
  }));

test("puts in parts", () =>
  withStore(
    async (store) => {
      await using arena = await store.createArena(8192);
      arena.bytes.fill(3);
      const writer = store.putSessions(1);
      assert.equal(writer.start(["k"], BigUint64Array.of(100n)), Int32Array.of(0));
      assert.equal(store.putSessions(2).start(["k"], BigUint64Array.of(100n)), Int32Array.of(-705));
      assert.equal((await store.get(["k"])).codes, BigInt64Array.of(-703n));
      assert.equal((await store.put(["k"], [bytes(7, 7)])).codes, Int32Array.of(0));
      const halves = segmentsIn(arena, [
        [
          [0, 50],
          [4096, 50],
        ],
      ]);
      assert.equal(writer.write(["k"], halves, BigUint64Array.of(50n, 0n)), BigInt64Array.of(100n));
      assert.equal(writer.end(["k", "other"]), Int32Array.of(0, -600));
      assert.equal((await store.get(["k"])).values[0], bytes(100, 3));

      assert.equal(writer.start(["left", "taken-back"], BigUint64Array.of(5n, 5n)), Int32Array.of(0, 0));
      assert.equal(writer.revoke(["taken-back"]), Int32Array.of(0));
      store.advanceClock(2000);
      assert.equal((await store.put(["left"], [bytes(9, 9)])).codes, Int32Array.of(0));
      assert.equal((await store.get(["left"])).values[0], bytes(9, 9));
      assert.equal(writer.end(["left"]), Int32Array.of(-601));
    },
    { putStartDiscardTimeoutSec: 2 },
  ));

test("misuse is refused before anything happens", () =>
  withStore(async (store) => {
    await rejects(() => store.put(["a"], []), "ERR_STORE", /put: 1 keys but 0 values/);
    await rejects(() => store.put(["a"], "x" as never), "ERR_STORE", /put: "x" is no list of values/);
    await rejects(
      () => store.upsert(["a"], [1 as never]),
      "ERR_STORE",
      /upsert: value 0 is 1; a value is a Uint8Array/,
    );
    await rejects(
      () => store.exists(["a"], { deadlineMs: -1 }),
      "ERR_STORE",
      /deadlineMs is -1; expected an integer from 0/,
    );
    await rejects(
      () => store.get(["a"], { force: true } as never),
      "ERR_STORE",
      /there is no option "force"; known are deadlineMs/,
    );
    await rejects(
      () => store.put(["a"], [bytes(1, 1)], { withHardPin: 1 as never }),
      "ERR_STORE",
      /withHardPin is 1/,
    );
    await rejects(() => store.removeAll(null as never), "ERR_STORE", /removeAll: null are no options/);
    await rejects(
      () => store.removeAll({ force: "yes" as never }),
      "ERR_STORE",
      /force is "yes"; expected true or false/,
    );
    await rejects(
      () => store.put(["a"], [bytes(1, 1)], { groupIds: [1] as never }),
      "ERR_STORE",
      /groupIds\[0\] is 1; expected text/,
    );
    assert.is((await store.usage()).keys, 0n);
    assert.throws(() => store.advanceClock(-1), /the time is -1/);
  }));

test.run();
