import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlobBlockHashes } from "../../../src/hash/blob-block-hashes.js";
import { KeyTable } from "../../../src/key/key-table.js";
import { type Arena, type KvStore, openStore, StoreError } from "../../../src/store/index.js";
import { fillPattern, rejects, segmentsIn } from "../helpers.js";

const MIB = 1 << 20;
const OUT = 4 * MIB;

async function withStore(
  body: (store: KvStore, arena: Arena) => Promise<void>,
  capacity = 16 * MIB,
): Promise<void> {
  await using store = await openStore({ backend: "embedded", capacity });
  await using arena = await store.createArena(8 * MIB);
  fillPattern(arena.bytes.subarray(0, OUT), 1);
  arena.bytes.fill(0xee, OUT);
  await body(store, arena);
}

function slice(arena: Arena, offset: number, size: number): Buffer {
  return Buffer.from(arena.bytes.subarray(offset, offset + size));
}

test("what is gathered is scattered again, byte for byte", () =>
  withStore(async (store, arena) => {
    const put = segmentsIn(arena, [
      [
        [0, 4096],
        [4103, 4096],
        [9000, 100],
      ],
      [[50, 10]],
    ]);
    const keys = ["a", "b"];
    const stored = (await store.putFrom(keys, put)).throwIfFailed();
    assert.equal(stored.codes, Int32Array.of(0, 0));
    assert.is(stored.ok, 2);
    assert.equal((await store.exists(["a", "x", "b", ""])).codes, Int32Array.of(1, 0, 1, 0));
    assert.equal((await store.size(["a", "x", "b", ""])).codes, BigInt64Array.of(8292n, -704n, 10n, -704n));

    const get = segmentsIn(arena, [
      [
        [OUT, 100],
        [OUT + 200, 1],
        [OUT + 500, 8191],
      ],
      [[OUT + 10_000, 10]],
    ]);
    const read = (await store.getInto(keys, get)).throwIfFailed();
    assert.equal(read.codes, BigInt64Array.of(8292n, 10n));
    const object = Buffer.concat([slice(arena, 0, 4096), slice(arena, 4103, 4096), slice(arena, 9000, 100)]);
    assert.equal(
      Buffer.concat([slice(arena, OUT, 100), slice(arena, OUT + 200, 1), slice(arena, OUT + 500, 8191)]),
      object,
    );
    assert.equal(slice(arena, OUT + 10_000, 10), slice(arena, 50, 10));
    assert.ok(slice(arena, OUT + 100, 100).every((byte) => byte === 0xee));
    assert.ok(slice(arena, OUT + 201, 299).every((byte) => byte === 0xee));
  }));

test("the first of equal keys is stored, and an existing key stays", () =>
  withStore(async (store, arena) => {
    const first = await store.putFrom(
      ["d", "d", "e", "d"],
      segmentsIn(arena, [[[0, 512]], [[1000, 513]], [[2000, 5]], [[3000, 5]]]),
    );
    assert.equal(first.codes, Int32Array.of(0, 0, 0, 0));
    assert.equal((await store.putFrom(["d"], segmentsIn(arena, [[[7000, 9]]]))).codes, Int32Array.of(0));
    assert.equal((await store.size(["d", "e"])).codes, BigInt64Array.of(512n, 5n));
    const twice = await store.getInto(["d", "d"], segmentsIn(arena, [[[OUT, 512]], [[OUT + 1000, 512]]]));
    assert.equal(twice.codes, BigInt64Array.of(512n, 512n));
    assert.equal(slice(arena, OUT, 512), slice(arena, 0, 512));
    assert.equal(slice(arena, OUT + 1000, 512), slice(arena, 0, 512));
  }));

test("a read of another size writes nothing", () =>
  withStore(async (store, arena) => {
    await store.putFrom(["a"], segmentsIn(arena, [[[0, 1000]]]));
    const { codes } = await store.getInto(
      ["a", "a", "a", "none"],
      segmentsIn(arena, [[[OUT, 999]], [[OUT, 1001]], [], [[OUT, 1000]]]),
    );
    assert.equal(codes, BigInt64Array.of(-600n, -800n, -600n, -704n));
    assert.ok(arena.bytes.subarray(OUT).every((byte) => byte === 0xee));
  }));

test("empty keys and empty objects are refused, each for itself", () =>
  withStore(async (store, arena) => {
    const rows = segmentsIn(arena, [
      [[0, 5]],
      [],
      [[0, 0]],
      [
        [0, 100],
        [7, 0],
        [9, 5],
      ],
    ]);
    const { codes, ok } = await store.putFrom(["", "m0", "m1", "m2"], rows);
    assert.equal(codes, Int32Array.of(-600, -600, -600, 0));
    assert.is(ok, 1);
    assert.equal(
      (await store.size(["", "m0", "m1", "m2"])).codes,
      BigInt64Array.of(-704n, -704n, -704n, 105n),
    );
    assert.equal((await store.remove(["", "m2"], { force: true })).codes, Int32Array.of(-704, 0));
  }));

test("empty batches give empty results", () =>
  withStore(async (store, arena) => {
    assert.is((await store.putFrom([], segmentsIn(arena, []))).length, 0);
    assert.is((await store.getInto([], segmentsIn(arena, []))).length, 0);
    assert.is((await store.exists([])).length, 0);
  }));

test("no room: -200 for what does not fit, and for nothing else", () =>
  withStore(async (store, arena) => {
    const rows = segmentsIn(arena, [[[0, 1000]], [[0, 2 * MIB]], [[0, 1000]]]);
    assert.equal((await store.putFrom(["x", "big", "y"], rows)).codes, Int32Array.of(0, -200, 0));
    assert.equal((await store.exists(["x", "big", "y"])).codes, Int32Array.of(1, 0, 1));
    const { keys, capacity, used, occupied, counters } = (await store.health()).usage!;
    assert.equal([keys, capacity, used, occupied], [2n, BigInt(MIB), 2000n, 2048n]);
    assert.equal([counters?.stored, counters?.refusals], [2n, 1n]);
    await store.remove(["x", "y"], { force: true });
    assert.equal((await store.putFrom(["all"], segmentsIn(arena, [[[0, MIB]]]))).codes, Int32Array.of(0));
    assert.equal((await store.putFrom(["one"], segmentsIn(arena, [[[0, 1]]]))).codes, Int32Array.of(-200));
  }, MIB));

test("key tables, raw bytes, NUL and long keys", () =>
  withStore(async (store, arena) => {
    const table = KeyTable.fromPrefixes(
      ["p", "q"],
      BlobBlockHashes.from([Uint8Array.of(1), Uint8Array.of(2)]),
    );
    const four = segmentsIn(arena, [[[0, 1]], [[1, 1]], [[2, 1]], [[3, 1]]]);
    (await store.putFrom(table, four)).throwIfFailed();
    assert.is((await store.exists(["p@01", "q@01", "p@02", "q@02"])).ok, 4);

    const raw = { bytes: Uint8Array.of(0xff, 0x80, 0xff), offsets: Uint32Array.of(0, 2, 3) };
    (await store.putFrom(raw, segmentsIn(arena, [[[0, 1]], [[1, 1]]]))).throwIfFailed();
    assert.is((await store.exists(raw)).ok, 2);
    assert.is((await store.exists(["\ufffd\ufffd"])).ok, 0);

    const odd = ["a\0b", "a\0c", "a", "k".repeat(MIB)];
    (await store.putFrom(odd, four)).throwIfFailed();
    assert.equal((await store.exists([...odd, "a\0", "k"])).codes, Int32Array.of(1, 1, 1, 1, 0, 0));
  }));

test("a batch of many large rows is copied whole", () =>
  withStore(async (store, arena) => {
    const keys = Array.from({ length: 16 }, (_, i) => `k${i}`);
    const from = keys.map((_, i) =>
      Array.from({ length: 30 }, (_, s) => [((i * 30 + s) * 7919) % (OUT - 4096), 4096] as const),
    );
    const to = keys.map((_, i) =>
      Array.from({ length: 30 }, (_, s) => [OUT + (s * 16 + i) * 4096, 4096] as const),
    );
    (await store.putFrom(keys, segmentsIn(arena, from))).throwIfFailed();
    (await store.getInto(keys, segmentsIn(arena, to))).throwIfFailed();
    for (const [i, row] of from.entries())
      for (const [s, [offset, size]] of row.entries())
        assert.ok(slice(arena, to[i]![s]![0], size).equals(slice(arena, offset, size)), `${i}/${s}`);
  }));

test("keys and rows must match, or nothing happens", () =>
  withStore(async (store, arena) => {
    const one = segmentsIn(arena, [[[0, 10]]]);
    await rejects(() => store.putFrom(["a", "b"], one), "ERR_STORE", /putFrom: 2 keys but 1 rows/);
    await rejects(() => store.getInto([], one), "ERR_STORE", /getInto: 0 keys but 1 rows/);
    await rejects(() => store.putFrom(["a"], {} as never), "ERR_STORE", /putFrom: \{\} is no SegmentTable/);
    await rejects(
      () => store.putFrom(["a"], undefined as never),
      "ERR_STORE",
      /undefined is no SegmentTable/,
    );
    await rejects(() => store.exists("a" as never), "ERR_STORE", /"a" is no list of keys/);
    assert.is((await store.exists(["a", "b"])).ok, 0);
  }));

test("throwIfFailed gives a StoreError with every failed key", () =>
  withStore(async (store) => {
    const result = await store.size(["a", "b"]);
    assert.throws(
      () => result.throwIfFailed(),
      (error: unknown) =>
        error instanceof StoreError &&
        error.storeCode.name === "OBJECT_NOT_FOUND" &&
        error.failures.length === 2,
    );
  }));

test("arguments may be reused as soon as the call has returned", () =>
  withStore(async (store, arena) => {
    const rows = segmentsIn(arena, [[[0, 100]]]);
    const raw = { bytes: Uint8Array.of(97), offsets: Uint32Array.of(0, 1) };
    const call = store.putFrom(raw, rows);
    rows.addresses.fill(0n);
    rows.sizes.fill(1n << 60n);
    raw.bytes.fill(98);
    raw.offsets.fill(0xffff_ffff);
    assert.equal((await call).codes, Int32Array.of(0));
    assert.equal((await store.size(["a"])).codes, BigInt64Array.of(100n));
  }));

test.run();
