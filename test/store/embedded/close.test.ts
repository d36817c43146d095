import { test } from "uvu";
import * as assert from "uvu/assert";
import { openStore } from "../../../src/store/index.js";
import { rejects, segmentsIn } from "../helpers.js";

const MIB = 1 << 20;

test("an arena has bytes, an address and, on Linux, a descriptor", async () => {
  await using store = await openStore("embedded:?capacity=1MiB");
  await using arena = await store.createArena(5000);
  assert.is(arena.size, 5000);
  assert.is(arena.bytes.length, 5000);
  assert.ok(arena.bytes.every((byte) => byte === 0));
  assert.ok(arena.baseAddress > 0n);
  assert.is(typeof arena.fileDescriptor, process.platform === "linux" ? "number" : "undefined");
});

test("sizes that no arena has", async () => {
  await using store = await openStore("embedded:?capacity=1MiB");
  for (const size of [0, -1, 1.5, Number.NaN, 2 ** 32, 2 ** 53, "1" as never, 5n as never])
    await rejects(() => store.createArena(size), "ERR_STORE", /createArena: the size is .*from 1 to/);
});

test("closing an arena empties its views and forbids its memory", async () => {
  await using store = await openStore("embedded:?capacity=1MiB");
  const arena = await store.createArena(8192);
  const view = arena.bytes.subarray(10);
  const rows = segmentsIn(arena, [[[0, 10]]]);
  (await store.putFrom(["a"], rows)).throwIfFailed();
  await Promise.all([arena.close(), arena.close()]);
  assert.is(arena.bytes.length, 0);
  assert.is(view.length, 0);
  assert.is(arena.size, 8192);
  assert.equal((await store.putFrom(["b"], rows)).codes, Int32Array.of(-600));
  assert.equal((await store.size(["a"])).codes, BigInt64Array.of(10n));
});

test("closing an arena under running calls lets them finish", async () => {
  await using store = await openStore("embedded:?capacity=64MiB");
  const arena = await store.createArena(16 * MIB);
  const rows = segmentsIn(arena, [[[0, 16 * MIB]]]);
  const calls = Array.from({ length: 12 }, (_, i) => store.putFrom([`k${i}`], rows));
  await arena.close();
  for (const { codes } of await Promise.all(calls))
    assert.ok([0, -200, -600].includes(codes[0]!), String(codes));
});

test("a closed store rejects every call, and says so when asked", async () => {
  const store = await openStore("embedded:?capacity=1MiB");
  const arena = await store.createArena(4096);
  const rows = segmentsIn(arena, [[[0, 10]]]);
  await store.close();
  await store.close();
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["putFrom", () => store.putFrom(["a"], rows)],
    ["getInto", () => store.getInto(["a"], rows)],
    ["exists", () => store.exists(["a"])],
    ["size", () => store.size(["a"])],
    ["remove", () => store.remove(["a"])],
    ["put", () => store.put(["a"], [Uint8Array.of(1)])],
    ["upsert", () => store.upsert(["a"], [Uint8Array.of(1)])],
    ["upsertFrom", () => store.upsertFrom(["a"], rows)],
    ["get", () => store.get(["a"])],
    ["replicas", () => store.replicas(["a"])],
    ["removeByRegex", () => store.removeByRegex("a")],
    ["removeAll", () => store.removeAll()],
    ["usage", () => store.usage()],
    ["registerBuffer", () => store.registerBuffer(arena.baseAddress, 10)],
    ["unregisterBuffer", () => store.unregisterBuffer(arena.baseAddress)],
    ["createArena", () => store.createArena(10)],
  ];
  for (const [name, call] of calls)
    await rejects(call, "ERR_STORE", new RegExp(`^${name}: the store is closed$`));
  assert.equal(await store.health(), { code: 1, healthy: false, message: "the store is closed" });
  assert.is(arena.bytes.length, 4096); // still memory
  await arena.close();
  assert.is(arena.bytes.length, 0);
});

test("a store that is closed under running calls lets them finish", async () => {
  const store = await openStore("embedded:?capacity=256MiB");
  const arena = await store.createArena(8 * MIB);
  arena.bytes.fill(3);
  const rows = segmentsIn(arena, [[[0, 4 * MIB]]]);
  const back = segmentsIn(arena, [[[4 * MIB, 4 * MIB]]]);
  const puts = Array.from({ length: 20 }, (_, i) => store.putFrom([`k${i}`], rows));
  const gets = Array.from({ length: 20 }, (_, i) => store.getInto([`k${i}`], back));
  const sizes = store.size(["k0"]);
  const closing = store.close();
  await rejects(() => store.exists(["k0"]), "ERR_STORE", /closed/);
  for (const put of await Promise.all(puts)) assert.equal(put.codes, Int32Array.of(0));
  for (const { codes } of await Promise.all(gets))
    assert.ok([BigInt(4 * MIB), -703n, -704n].includes(codes[0]!), String(codes));
  assert.is((await sizes).length, 1);
  await Promise.all([closing, arena.close()]);
});

test("many stores closed at once, each under calls", async () => {
  const stores = await Promise.all(Array.from({ length: 12 }, () => openStore("embedded:?capacity=8MiB")));
  await Promise.all(
    stores.map(async (store) => {
      const arena = await store.createArena(2 * MIB);
      const call = store.putFrom(["k"], segmentsIn(arena, [[[0, 2 * MIB]]]));
      await Promise.all([arena.close(), store.close()]);
      assert.ok([0, -600].includes((await call).codes[0]!));
    }),
  );
});

test.run();
