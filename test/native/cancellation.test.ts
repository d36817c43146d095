import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadNative } from "../../src/native/load.js";

const addon = loadNative();
const isNative = (error: unknown): boolean => (error as { code?: unknown }).code === "ERR_NATIVE";
const KEY = [Uint8Array.of(107), Uint32Array.of(0, 1)] as const;
const VALUE = [Uint8Array.of(1, 2, 3)];

test("a cancelled call ends as one whose deadline came", async () => {
  const store = addon.storeOpen({ capacity: 1 << 20 });
  const arena = addon.arenaCreate(4096);
  assert.is(await addon.storeRegisterArena(store, arena.handle), 0);
  const rows = [BigUint64Array.of(arena.baseAddress), BigUint64Array.of(3n), Uint32Array.of(0, 1)] as const;
  const cancellation = addon.cancellationCreate();
  const calls = async (): Promise<unknown[]> => {
    const limit = [60_000, cancellation] as const;
    return [
      ...(await addon.storePut(store, ...KEY, VALUE, undefined, ...limit)),
      ...(await addon.storeUpsert(store, ...KEY, VALUE, undefined, ...limit)),
      ...(await addon.storePutFrom(store, ...KEY, ...rows, undefined, ...limit)),
      ...(await addon.storeUpsertFrom(store, ...KEY, ...rows, undefined, ...limit)),
      ...(await addon.storeGetInto(store, ...KEY, ...rows, ...limit)),
      ...(await addon.storeGet(store, ...KEY, ...limit)).codes,
      ...(await addon.storeExists(store, ...KEY, ...limit)),
      ...(await addon.storeSize(store, ...KEY, undefined, cancellation)),
      ...(await addon.storeReplicas(store, ...KEY, ...limit)).codes,
      ...(await addon.storeRemove(store, ...KEY, true, ...limit)),
      await addon.storeRemoveByRegex(store, Uint8Array.of(46), true, ...limit),
      await addon.storeRemoveAll(store, true, ...limit),
    ].map(Number);
  };
  assert.equal(await calls(), [0, 0, 0, 0, 3, 3, 1, 3, 1, 0, 0, 0]);
  addon.cancellationCancel(cancellation);
  addon.cancellationCancel(cancellation);
  assert.equal(await calls(), new Array(12).fill(-901));
  assert.is(addon.storeStats(store).keys, 0n);
});

test("a call that runs is cancelled in the middle of one key", async () => {
  const store = addon.storeOpen({ capacity: 1 << 20 });
  const key = new Uint8Array(1 << 20).fill(97);
  assert.equal(
    [...(await addon.storePut(store, key, Uint32Array.of(0, key.length), VALUE, undefined, undefined))],
    [0],
  );
  const pattern = new TextEncoder().encode(`${"a*".repeat(2000)}b`);
  const cancellation = addon.cancellationCreate();
  const before = performance.now();
  const pending = addon.storeRemoveByRegex(store, pattern, true, undefined, cancellation);
  setTimeout(() => addon.cancellationCancel(cancellation), 50);
  assert.is(await pending, -901);
  assert.is(await addon.storeRemoveByRegex(store, pattern, true, 50), -901);
  const took = performance.now() - before;
  assert.ok(took < 2000, `${took} ms`);
  assert.is(addon.storeStats(store).keys, 1n);
});

test("only a handle of this addon cancels", () => {
  const store = addon.storeOpen({ capacity: 4096 });
  const exists = addon.storeExists as (...args: unknown[]) => unknown;
  for (const odd of [null, 0, {}, "text", store])
    assert.throws(() => exists(store, ...KEY, undefined, odd), isNative, String(odd));
  const cancel = addon.cancellationCancel as (...args: unknown[]) => unknown;
  for (const odd of [undefined, null, {}, store]) assert.throws(() => cancel(odd), isNative, String(odd));
});

test.run();
