import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import type { Arena, KvStore } from "../../../src/store/index.js";
import { type World, worlds } from "./worlds.js";

// Bad arguments: the same rejection whichever backend, with nothing done.

const test = suite<{ worlds: World[] }>("bad arguments");
test.before(async (context) => {
  context.worlds = await worlds();
});
test.after(async ({ worlds }) => {
  for (const world of worlds) await world[Symbol.asyncDispose]();
});

type Call = (store: KvStore, rows: SegmentTable) => Promise<unknown>;
const wrong = <T>(value: unknown): T => value as T;
const value = Uint8Array.of(1, 2, 3);

/** Calls that take options, with good arguments otherwise. */
const WITH_OPTIONS: Readonly<
  Record<string, (store: KvStore, rows: SegmentTable, options: never) => Promise<unknown>>
> = {
  putFrom: (store, rows, options) => store.putFrom(["k"], rows, options),
  put: (store, _, options) => store.put(["k"], [value], options),
  upsertFrom: (store, rows, options) => store.upsertFrom(["k"], rows, options),
  upsert: (store, _, options) => store.upsert(["k"], [value], options),
  getInto: (store, rows, options) => store.getInto(["k"], rows, options),
  get: (store, _, options) => store.get(["k"], options),
  exists: (store, _, options) => store.exists(["k"], options),
  size: (store, _, options) => store.size(["k"], options),
  replicas: (store, _, options) => store.replicas(["k"], options),
  remove: (store, _, options) => store.remove(["k"], options),
  removeByRegex: (store, _, options) => store.removeByRegex("k", options),
  removeAll: (store, _, options) => store.removeAll(options),
  usage: (store, _, options) => store.usage(options),
  health: (store, _, options) => store.health(options),
};

const BAD_OPTIONS: readonly unknown[] = [
  { bogus: 1 },
  { deadlineMs: -1 },
  { deadlineMs: Number.NaN },
  { deadlineMs: 1.5 },
  { deadlineMs: "soon" },
  { deadlineMs: Number.POSITIVE_INFINITY },
  { signal: {} },
  { signal: "stop" },
  [],
  null,
  7,
  { __proto__: null, force: "yes", replicaNum: -1 },
];

/** Calls that take keys. */
const WITH_KEYS: Readonly<
  Record<string, (store: KvStore, keys: never, rows: SegmentTable) => Promise<unknown>>
> = {
  putFrom: (store, keys, rows) => store.putFrom(keys, rows),
  put: (store, keys) => store.put(keys, [value]),
  upsertFrom: (store, keys, rows) => store.upsertFrom(keys, rows),
  upsert: (store, keys) => store.upsert(keys, [value]),
  getInto: (store, keys, rows) => store.getInto(keys, rows),
  get: (store, keys) => store.get(keys),
  exists: (store, keys) => store.exists(keys),
  size: (store, keys) => store.size(keys),
  replicas: (store, keys) => store.replicas(keys),
  remove: (store, keys) => store.remove(keys),
};

const BAD_KEYS: readonly unknown[] = [
  undefined,
  null,
  "k",
  7,
  [7],
  [undefined],
  ["a", ["b"]],
  ["\ud800"],
  new Uint8Array(3),
  { bytes: new Uint8Array(2), offsets: new Uint32Array(0) },
  { bytes: new Uint8Array(2), offsets: Uint32Array.of(0, 3) },
  { bytes: new Uint8Array(2), offsets: Uint32Array.of(2, 0) },
];

const OTHERS: Readonly<Record<string, Call>> = {
  "put: a number as value": (store) => store.put(["a"], [wrong(1)]),
  "put: more keys than values": (store) => store.put(["a", "b"], [value]),
  "put: no list": (store) => store.put(["a"], wrong(value)),
  "put: a buffer that is none": (store) => store.put(["a"], [wrong(new ArrayBuffer(3))]),
  "upsert: a text as value": (store) => store.upsert(["a"], [wrong("abc")]),
  "putFrom: no table": (store) => store.putFrom(["a"], wrong({})),
  "putFrom: null": (store) => store.putFrom(["a"], wrong(null)),
  "putFrom: more keys than rows": (store, rows) => store.putFrom(["a", "b"], rows),
  "getInto: no table": (store) => store.getInto(["a"], wrong([])),
  "getInto: fewer keys than rows": (store, rows) => store.getInto([], rows),
  "getInto: offsets beyond the segments": (store) =>
    store.getInto(
      ["a"],
      wrong({
        addresses: new BigUint64Array(1),
        sizes: new BigUint64Array(1),
        rowOffsets: Uint32Array.of(0, 9),
      }),
    ),
  "getInto: offsets that fall": (store) =>
    store.getInto(
      ["a", "b"],
      wrong({
        addresses: new BigUint64Array(2),
        sizes: new BigUint64Array(2),
        rowOffsets: Uint32Array.of(0, 2, 1),
      }),
    ),
  "putFrom: fewer sizes than addresses": (store) =>
    store.putFrom(
      ["a"],
      wrong({
        addresses: new BigUint64Array(2),
        sizes: new BigUint64Array(1),
        rowOffsets: Uint32Array.of(0, 2),
      }),
    ),
  "removeByRegex: a number": (store) => store.removeByRegex(wrong(5)),
  "removeByRegex: an expression": (store) => store.removeByRegex(wrong(/a/)),
  "removeByRegex: half a character": (store) => store.removeByRegex("\ud800"),
  "remove: force that is none": (store) => store.remove(["a"], { force: wrong("yes") }),
  "put: a negative number of replicas": (store) => store.put(["a"], [value], { replicaNum: -1 }),
  "put: a pin that is none": (store) => store.put(["a"], [value], { withSoftPin: wrong(1) }),
  "put: groups that are none": (store) => store.put(["a"], [value], { groupIds: wrong([1]) }),
  "exists: an option of another call": (store) => store.exists(["a"], wrong({ force: true })),
  "createArena: 0": (store) => store.createArena(0),
  "createArena: a fraction": (store) => store.createArena(1.5),
  "createArena: 4 GiB": (store) => store.createArena(2 ** 32),
  "createArena: a bigint": (store) => store.createArena(wrong(5n)),
  "registerBuffer: a negative address": (store) => store.registerBuffer(-1n, 1),
  "registerBuffer: a text": (store) => store.registerBuffer(wrong("1"), 1),
  "registerBuffer: 2^64": (store) => store.registerBuffer(1n << 64n, 1),
  "registerBuffer: a fraction": (store) => store.registerBuffer(4096n, 1.5),
  "registerBuffer: NaN": (store) => store.registerBuffer(4096n, Number.NaN),
  "unregisterBuffer: nothing": (store) => store.unregisterBuffer(wrong(undefined)),
};

async function rejection(call: () => Promise<unknown>): Promise<string> {
  try {
    return `gives ${JSON.stringify(await call(), (_, item) => (typeof item === "bigint" ? `${item}n` : item))}`;
  } catch (error) {
    return isMooncakeKvError(error) ? `${error.code}: ${error.message}` : `foreign: ${String(error)}`;
  }
}

/** Runs a call on a store of every backend; all must reject, with the same words. */
async function sameRejection(worlds: readonly World[], what: string, call: Call): Promise<void> {
  const answers = new Map<string, string>();
  for (const [world, store, rows] of opened) {
    assert.ok(worlds.includes(world));
    answers.set(world.name, await rejection(() => call(store, rows)));
  }
  const [first = ""] = answers.values();
  assert.match(first, /^ERR_(STORE|KEY): /, what);
  for (const [name, answer] of answers) assert.is(answer, first, `${what} on ${name}`);
}

const opened: [World, KvStore, SegmentTable, Arena][] = [];

test("stores of every backend open", async ({ worlds }) => {
  for (const world of worlds) {
    const store = await world.open();
    const arena = await store.createArena(4096);
    const rows = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 3n }]]);
    opened.push([world, store, rows, arena]);
  }
  assert.ok(opened.length >= 2);
});

test("options", async ({ worlds }) => {
  for (const [name, call] of Object.entries(WITH_OPTIONS))
    for (const [index, options] of BAD_OPTIONS.entries())
      await sameRejection(worlds, `${name} with options ${index}`, (store, rows) =>
        call(store, rows, options as never),
      );
});

test("keys", async ({ worlds }) => {
  for (const [name, call] of Object.entries(WITH_KEYS))
    for (const [index, keys] of BAD_KEYS.entries())
      await sameRejection(worlds, `${name} with keys ${index}`, (store, rows) =>
        call(store, keys as never, rows),
      );
});

for (const [name, call] of Object.entries(OTHERS))
  test(name, async ({ worlds }) => {
    await sameRejection(worlds, name, call);
  });

test("what is no error, but for no key: the same codes", async () => {
  const codes = new Map<string, string>();
  for (const [world, store, rows, arena] of opened) {
    const at = arena.baseAddress;
    const foreign = SegmentTable.fromRows([[{ address: 4096n, size: 3n }]]);
    const seen = [
      await store.registerBuffer(0n, 10),
      await store.registerBuffer(at, 10),
      await store.registerBuffer(at + 10n, 10),
      await store.registerBuffer((1n << 64n) - 1n, 2),
      await store.registerBuffer(4096n, 0),
      await store.unregisterBuffer(at + 1n),
      [...(await store.getInto(["absent"], rows)).codes],
      [...(await store.getInto(["absent"], foreign)).codes],
      [...(await store.getInto([""], rows)).codes],
      [...(await store.exists(["", "absent"])).codes],
      [...(await store.size(["", "absent"])).codes],
      (await store.get(["a", "b"])).values.map((read) => read),
      Object.keys((await store.get(["a", "b"])).values),
      (await store.exists([])).length,
      (await store.get([])).values.length,
    ];
    codes.set(
      world.name,
      JSON.stringify(seen, (_, item) => (typeof item === "bigint" ? `${item}n` : item)),
    );
  }
  const [first] = codes.values();
  for (const [name, seen] of codes) assert.is(seen, first, name);
});

test("a closed store says so to every call", async () => {
  for (const [, store, rows, arena] of opened) {
    await store.close();
    for (const [name, call] of Object.entries(WITH_OPTIONS)) {
      if (name === "health") continue;
      assert.is(
        await rejection(() => call(store, rows, undefined as never)),
        `ERR_STORE: ${name}: the store is closed`,
      );
    }
    assert.equal(await store.health(), { code: 1, healthy: false, message: "the store is closed" });
    assert.is(arena.bytes.length, 4096);
    await arena.close();
    assert.is(arena.bytes.length, 0);
  }
});

test.run();
