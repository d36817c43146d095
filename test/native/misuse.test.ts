import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadNative } from "../../src/native/index.js";

// Whatever reaches the addon, it answers with an error or a code. A crash would end this process.

const addon = loadNative() as unknown as Record<string, (...values: unknown[]) => unknown>;
const store = addon["storeOpen"]!({ capacity: 1 << 20 });
// The store is closed last: a closed one refuses too early.
const names = [...Object.keys(addon).filter((name) => /^store(?!Open|Close)/.test(name)), "storeClose"];

const odd: readonly unknown[] = [
  undefined,
  null,
  0,
  -1,
  1.5,
  Number.NaN,
  2n ** 64n,
  "text",
  {},
  [],
  [1],
  new Uint8Array(3),
  Uint32Array.of(0, 9, 1),
  new BigUint64Array(1),
  new Float64Array(2),
  () => 1,
  Symbol("s"),
];

/** The outcome of a call; a rejection or an exception must be the addon's own, or one of JavaScript's conversions. */
async function settles(call: () => unknown): Promise<void> {
  try {
    await call();
  } catch (error) {
    const { code } = error as { code?: string };
    assert.ok(code === "ERR_NATIVE" || error instanceof TypeError, String(error));
  }
}

for (const name of names)
  test(`${name} takes anything`, async () => {
    await settles(() => addon[name]!());
    for (const first of [store, ...odd])
      for (const value of odd)
        await settles(() => addon[name]!(first, value, value, value, value, value, value, value, value));
    if (name === "storeClose") return;
    const keys = [Uint8Array.of(97, 98), Uint32Array.of(0, 1, 2)];
    for (const value of odd)
      await settles(() => addon[name]!(store, ...keys, value, value, value, value, value));
    for (const value of odd) await settles(() => addon[name]!(store, 1, ...keys, value, value, value, value));
  });

test("storeOpen takes anything", async () => {
  for (const value of odd) {
    await settles(() => addon["storeOpen"]!(value));
    for (const option of ["capacity", "copyThreads", "leaseTtlMs", "evictionRatio", "discardTimeoutMs"])
      await settles(() => addon["storeOpen"]!({ capacity: 4096, [option]: value }));
  }
});

test.run();
