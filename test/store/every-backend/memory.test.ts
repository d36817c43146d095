import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import { type Arena, CODE, type KvStore } from "../../../src/store/index.js";
import { fillPattern } from "../helpers.js";
import { type World, worlds } from "./worlds.js";

// Memory in use has one owner: whatever takes it away waits until the last copy has ended.

const test = suite<{ worlds: World[] }>("memory in use");
test.before(async (context) => {
  context.worlds = await worlds();
});
test.after(async ({ worlds }) => {
  for (const world of worlds) await world[Symbol.asyncDispose]();
});

const MIB = 1 << 20;
const SIZE = 4 * MIB;

/** A row a value of `SIZE`, one behind another; each in two pieces, so that it has to be gathered. */
function rowsOf(arena: Arena, count: number): SegmentTable {
  const at = (offset: number, size: number) => ({
    address: arena.baseAddress + BigInt(offset),
    size: BigInt(size),
  });
  return SegmentTable.fromRows(
    Array.from({ length: count }, (_, row) => [
      at(row * SIZE + SIZE / 2, SIZE / 2),
      at(row * SIZE, SIZE / 2),
    ]),
  );
}

/** The same as single pieces. */
function piecesOf(arena: Arena, count: number): SegmentTable {
  return SegmentTable.fromRows(
    Array.from({ length: count }, (_, row) => [
      { address: arena.baseAddress + BigInt(row * SIZE), size: BigInt(SIZE) },
    ]),
  );
}

/** Values of `SIZE` times one byte. */
const filled = (count: number, byte: number): Uint8Array[] =>
  Array.from({ length: count }, () => new Uint8Array(SIZE).fill(byte));

let nextKey = 0;
const freshKeys = (count: number): string[] =>
  Array.from({ length: count }, () => `memory-${process.pid}-${nextKey++}`);

/** Each way in which memory is taken away; all must wait. */
const ENDS: Readonly<Record<string, (store: KvStore, arena: Arena) => Promise<unknown>>> = {
  "the arena is closed": (_, arena) => arena.close(),
  "the memory is unregistered, and the arena closed": (store, arena) => {
    const pending = store.unregisterBuffer(arena.baseAddress);
    return Promise.all([pending, arena.close()]);
  },
  "the memory is unregistered twice, and the arena closed": (store, arena) =>
    Promise.all([
      store.unregisterBuffer(arena.baseAddress),
      store.unregisterBuffer(arena.baseAddress),
      arena.close(),
    ]),
  "the store and the arena are closed": (store, arena) => Promise.all([store.close(), arena.close()]),
  "the arena and the store are closed": (store, arena) => Promise.all([arena.close(), store.close()]),
};

/** Calls that use memory; what they may give. */
const CALLS: Readonly<
  Record<
    string,
    (store: KvStore, keys: string[], rows: SegmentTable) => Promise<{ codes: ArrayLike<number | bigint> }>
  >
> = {
  putFrom: (store, keys, rows) => store.putFrom(keys, rows),
  upsertFrom: (store, keys, rows) => store.upsertFrom(keys, rows),
  getInto: (store, keys, rows) => store.getInto(keys, rows),
  "getInto with a part that fails": (store, keys, rows) =>
    store.getInto([...keys.slice(0, -1), "nothing-is-there"], rows),
  "getInto of one key many times": (store, keys, rows) =>
    store.getInto(
      keys.map(() => keys[0]!),
      rows,
    ),
};

const GOOD: ReadonlySet<number> = new Set([
  CODE.OK,
  SIZE,
  CODE.INVALID_PARAMS,
  CODE.OBJECT_NOT_FOUND,
  CODE.REPLICA_IS_NOT_READY,
  CODE.NOT_SUPPORTED,
  // Two upserts of one key: somebody loses.
  CODE.ILLEGAL_CLIENT,
  CODE.LEASE_EXPIRED,
]);

for (const [end, take] of Object.entries(ENDS))
  for (const [name, call] of Object.entries(CALLS))
    for (const shape of [rowsOf, piecesOf])
      test(`${name} of ${shape === rowsOf ? "scattered" : "whole"} values while ${end}`, async ({
        worlds,
      }) => {
        for (const world of worlds) {
          if (!world.writes && !name.startsWith("getInto")) continue;
          const store = await world.open();
          const keys = freshKeys(4);
          const values = keys.map((_, i) => new Uint8Array(SIZE).fill(i + 1));
          if (name.startsWith("getInto")) await world.seed(store, keys, values);
          const arena = await store.createArena(4 * SIZE);
          arena.bytes.fill(7);
          const running = [call(store, keys, shape(arena, 4)), call(store, keys, shape(arena, 4))];
          await take(store, arena);
          // Only now is the memory gone: a copy that went on would have ended the process.
          assert.is(arena.bytes.length, 0, world.name);
          for (const { codes } of await Promise.all(running))
            for (const code of Array.from(codes, Number)) assert.ok(GOOD.has(code), `${world.name}: ${code}`);
          if (world.writes) {
            await using cleaner = await world.open();
            await cleaner.remove(keys, { force: true });
          }
          await store.close();
        }
      });

test("an arena takes with it what was registered of it, in whichever store", async ({ worlds }) => {
  for (const world of worlds) {
    await using store = await world.open();
    await using other = await world.open();
    const arena = await store.createArena(2 * MIB);
    const at = arena.baseAddress;
    assert.is(await store.unregisterBuffer(at), 0);
    assert.is(await store.registerBuffer(at, MIB), 0);
    assert.is(await store.registerBuffer(at + BigInt(MIB), MIB), 0);
    assert.is(await other.registerBuffer(at + 4096n, MIB), 0);
    const [key] = freshKeys(1);
    await world.seed(other, [key!], [new Uint8Array(MIB).fill(3)]);
    const row = SegmentTable.fromRows([[{ address: at + 4096n, size: BigInt(MIB) }]]);
    const pending = other.getInto([key!], row);
    await arena.close();
    const code = Number((await pending).codes[0]);
    assert.ok(code === MIB || code === CODE.INVALID_PARAMS, `${world.name}: ${code}`);
    const last = Number((await other.getInto([key!], row)).codes[0]);
    assert.is(last, CODE.INVALID_PARAMS, world.name);
    assert.is(await other.unregisterBuffer(at + 4096n), CODE.INVALID_PARAMS);
    assert.is(await store.unregisterBuffer(at), CODE.INVALID_PARAMS);
    if (world.writes) await other.remove([key!], { force: true });
  }
});

test("memory that was unregistered is refused at once, also while a call still uses it", async ({
  worlds,
}) => {
  for (const world of worlds) {
    await using store = await world.open();
    await using arena = await store.createArena(4 * SIZE);
    const keys = freshKeys(4);
    await world.seed(store, keys, filled(4, 9));
    const running = store.getInto(keys, rowsOf(arena, 4));
    const gone = store.unregisterBuffer(arena.baseAddress);
    const late = await store.getInto(keys, rowsOf(arena, 4));
    assert.equal(
      Array.from(late.codes, Number),
      keys.map(() => CODE.INVALID_PARAMS),
      world.name,
    );
    assert.is(await gone, 0);
    assert.equal(
      Array.from((await running).codes, Number),
      keys.map(() => SIZE),
      world.name,
    );
    assert.ok(arena.bytes.every((byte) => byte === 9));
    if (world.writes) await store.remove(keys, { force: true });
  }
});

test("an aborted call rejects with the reason, and nobody touches its memory afterwards", async ({
  worlds,
}) => {
  for (const world of worlds) {
    await using store = await world.open();
    await using arena = await store.createArena(4 * SIZE);
    const keys = freshKeys(4);
    await world.seed(store, keys, filled(4, 5));
    const reason = new Error("enough");
    const before = AbortSignal.abort(reason);
    let calls = 0;
    for (const wait of [undefined, 0, 1, 3, 10, 30]) {
      arena.bytes.fill(1);
      const controller = new AbortController();
      const signal = wait === undefined ? before : controller.signal;
      const call = store.getInto(keys, rowsOf(arena, 4), { signal });
      if (wait !== undefined) setTimeout(() => controller.abort(reason), wait);
      try {
        const { codes } = await call;
        assert.equal(
          Array.from(codes, Number),
          keys.map(() => SIZE),
          world.name,
        );
        assert.is.not(wait, undefined);
        calls++;
      } catch (error) {
        assert.is(error, reason, `${world.name}: ${String(error)}`);
      }
      const now = new Uint8Array(arena.bytes);
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.ok(Buffer.from(now).equals(arena.bytes), `${world.name}: written after the rejection`);
    }
    assert.ok(calls < 6);
    assert.equal((await store.exists(keys)).ok, keys.length);
    if (world.writes) await store.remove(keys, { force: true });
  }
});

test("an arena that nobody closes stays as long as its store, and its bytes are there", async ({
  worlds,
}) => {
  for (const world of worlds) {
    await using store = await world.open();
    const [key] = freshKeys(1);
    const value = new Uint8Array(1000);
    fillPattern(value, 5);
    await world.seed(store, [key!], [value]);
    const address = await (async () => (await store.createArena(1000)).baseAddress)();
    for (let i = 0; i < 20; i++) new Uint8Array(10 * MIB);
    const row = SegmentTable.fromRows([[{ address, size: 1000n }]]);
    assert.is(Number((await store.getInto([key!], row)).codes[0]), 1000, world.name);
    assert.is(await store.unregisterBuffer(address), 0);
    if (world.writes) await store.remove([key!], { force: true });
  }
});

test.run();
