import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadNative } from "../../src/native/load.js";

const addon = loadNative();
const isNative = (error: unknown): boolean => (error as { code?: unknown }).code === "ERR_NATIVE";
const KEY = [Uint8Array.of(107), Uint32Array.of(0, 1)] as const;

for (const backend of ["store", "mooncake"] as const)
  test(`${backend}: a part of an arena is registered, and the arena owns it`, async () => {
    const store = addon.storeOpen({ capacity: 4096 });
    const client = addon.mooncakeOpen(1, 4096);
    const arena = addon.arenaCreate(8192);
    const base = arena.baseAddress;
    const register = (...part: unknown[]): unknown => {
      const call = (backend === "store" ? addon.storeRegisterArena : addon.mooncakeRegisterArena) as (
        ...args: unknown[]
      ) => unknown;
      return call(backend === "store" ? store : client, arena.handle, ...part);
    };
    for (const part of [
      [base - 1n, 10],
      [base, 8193],
      [base + 8192n, 1],
      [base + 8193n, 0],
      [base + 4096n, 4097n],
      [base, 2n ** 64n - 1n],
      [2n ** 64n - 1n, 2],
      [base],
      [undefined, 10],
      [null, 10],
      [base, null],
      [base, -1],
    ])
      assert.throws(() => register(...part), isNative, String(part));
    assert.is(await register(base + 4096n, 0), -600);
    assert.is(await register(base + 4096n, 4096), 0);
    assert.is(await register(base, 4097n), -600);
    assert.is(await register(base, 4096n), 0);
    assert.is(await register(), -600);
    addon.arenaClose(arena.handle);
    assert.throws(() => register(base, 4096), isNative);
    assert.throws(() => register(), isNative);
    if (backend === "mooncake") return;
    // The store has the memory still, and nothing outside of what was registered.
    const put = (address: bigint): Promise<Int32Array> =>
      addon.storePutFrom(
        store,
        ...KEY,
        BigUint64Array.of(address),
        BigUint64Array.of(100n),
        Uint32Array.of(0, 1),
        undefined,
        undefined,
      );
    assert.equal([...(await put(base + 4096n))], [0]);
    assert.is(await addon.storeUnregister(store, base), 0);
    assert.equal([...(await put(base))], [-600]);
  });

test("groups: no list, an empty one, one of the right length", async () => {
  const store = addon.storeOpen({ capacity: 1 << 20 });
  const put = async (groups?: readonly string[]): Promise<number> =>
    (await addon.storePut(store, ...KEY, [Uint8Array.of(1)], groups ? { groups } : {}, undefined))[0]!;
  assert.is(await put([]), -600);
  assert.is(await put(["a", "b"]), -600);
  assert.is(await put(), 0);
  assert.is(await put(["a"]), 0);
});

test.run();
