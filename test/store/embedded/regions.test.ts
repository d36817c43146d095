import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Arena, type KvStore, openStore } from "../../../src/store/index.js";
import { rawSegments, rejects, segmentsIn } from "../helpers.js";

const MIB = 1 << 20;

async function withStore(body: (store: KvStore, arena: Arena) => Promise<void>): Promise<void> {
  await using store = await openStore("embedded:?capacity=16MiB");
  await using arena = await store.createArena(MIB);
  arena.bytes.fill(0xee);
  await body(store, arena);
}

test("memory outside the registered regions is refused for its key alone, and nothing is copied", () =>
  withStore(async (store, arena) => {
    const { baseAddress } = arena;
    const end = baseAddress + BigInt(MIB);
    const bad: readonly (readonly (readonly [bigint, bigint])[])[] = [
      [[0n, 100n]], // NULL
      [[4096n, 100n]], // foreign
      [[baseAddress - 1n, 10n]], // one before
      [[end - 9n, 10n]], // one behind
      [[end, 1n]],
      [[(1n << 64n) - 4n, 10n]], // wraps around
      [[baseAddress, (1n << 64n) - 1n]],
      [[baseAddress, 1n << 53n]],
      [
        [baseAddress, 100n], // the second segment only
        [0n, 100n],
      ],
      [
        [baseAddress, 100n], // the sum wraps around
        [baseAddress, (1n << 64n) - 50n],
      ],
      [
        [0n, 0n], // NULL, though it has no bytes
        [baseAddress, 100n],
      ],
    ];
    const good = [[baseAddress + 7n, 100n]] as const;
    for (const row of bad) {
      const put = await store.putFrom(["bad", "good"], rawSegments([row, good]));
      assert.equal(put.codes, Int32Array.of(-600, 0), String(row));
      assert.equal((await store.exists(["bad", "good"])).codes, Int32Array.of(0, 1));
      const get = await store.getInto(["good", "good"], rawSegments([row, good]));
      assert.equal(get.codes, BigInt64Array.of(-600n, 100n), String(row));
      await store.remove(["good"], { force: true });
    }
    assert.ok(arena.bytes.every((byte) => byte === 0xee));
    assert.is((await store.health()).usage?.occupied, 0n);
  }));

test("a segment across two adjacent regions is refused", () =>
  withStore(async (store, arena) => {
    const { baseAddress } = arena;
    assert.is(await store.unregisterBuffer(baseAddress), 0);
    assert.is(await store.registerBuffer(baseAddress, 4096), 0);
    assert.is(await store.registerBuffer(baseAddress + 4096n, 4096n), 0);
    const rows = segmentsIn(arena, [
      [[4000, 200]],
      [
        [4000, 96],
        [4096, 10],
      ],
      [[8190, 3]],
    ]);
    assert.equal((await store.putFrom(["a", "b", "c"], rows)).codes, Int32Array.of(-600, 0, -600));
  }));

test("registering: overlaps, NULL, empty, wrapping and unmapped ranges are refused; adjacent is fine", () =>
  withStore(async (store, arena) => {
    const { baseAddress } = arena;
    const register = (offset: number, size: number): Promise<number> =>
      store.registerBuffer(baseAddress + BigInt(offset), size);
    assert.is(await register(0, 4096), -600); // the arena is registered
    assert.is(await store.unregisterBuffer(baseAddress + 1n), -600);
    assert.is(await store.unregisterBuffer(0n), -600);
    assert.is(await store.unregisterBuffer(baseAddress), 0);
    assert.is(await store.unregisterBuffer(baseAddress), -600);
    assert.is(await register(0, 4096), 0);
    assert.is(await register(0, 4096), -600);
    assert.is(await register(2048, 4096), -600);
    assert.is(await register(4096, 4096), 0);
    assert.is(await register(0, 8192), -600);
    assert.is(await register(16_384, 0), -600);
    assert.is(await register(16_484, 100), 0); // unaligned
    assert.is(await store.registerBuffer(0n, 4096), -600);
    assert.is(await store.registerBuffer((1n << 64n) - 1n, 2), -600);
    if (process.platform === "linux") assert.is(await store.registerBuffer(4096n, 4096), -600);
  }));

test("unregistered memory is foreign", () =>
  withStore(async (store, arena) => {
    const rows = segmentsIn(arena, [[[0, 10]]]);
    assert.equal((await store.putFrom(["a"], rows)).codes, Int32Array.of(0));
    assert.is(await store.unregisterBuffer(arena.baseAddress), 0);
    assert.equal((await store.putFrom(["b"], rows)).codes, Int32Array.of(-600));
    assert.equal((await store.getInto(["a"], rows)).codes, BigInt64Array.of(-600n));
    assert.is(await store.registerBuffer(arena.baseAddress, arena.size), 0);
    assert.equal((await store.getInto(["a"], rows)).codes, BigInt64Array.of(10n));
  }));

test("regions belong to one store", () =>
  withStore(async (store, arena) => {
    await using other = await openStore("embedded:?capacity=1MiB");
    const rows = segmentsIn(arena, [[[0, 10]]]);
    assert.equal((await other.putFrom(["a"], rows)).codes, Int32Array.of(-600));
    assert.is(await other.registerBuffer(arena.baseAddress, arena.size), 0);
    assert.equal((await other.putFrom(["a"], rows)).codes, Int32Array.of(0));
    assert.equal((await store.exists(["a"])).codes, Int32Array.of(0));
  }));

test("addresses and sizes that are no unsigned 64-bit numbers are an error", () =>
  withStore(async (store, arena) => {
    await rejects(() => store.registerBuffer(-1n, 1), "ERR_STORE", /registerBuffer: the address is -1n/);
    await rejects(() => store.registerBuffer(1n << 64n, 1), "ERR_STORE", /the address is/);
    await rejects(() => store.registerBuffer(arena.baseAddress, 1.5), "ERR_STORE", /the size is 1\.5/);
    await rejects(() => store.registerBuffer("1" as never, 1), "ERR_STORE", /the address is "1"/);
    await rejects(() => store.unregisterBuffer(undefined as never), "ERR_STORE", /the address is undefined/);
  }));

test.run();
