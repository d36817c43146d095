import { test } from "uvu";
import * as assert from "uvu/assert";
import { openStore, type StoreConfig } from "../../src/store/index.js";
import { rejects } from "./helpers.js";

async function capacityOf(target: string | StoreConfig): Promise<bigint | undefined> {
  await using store = await openStore(target);
  assert.is(store.backend, "embedded");
  const { code, healthy, usage } = await store.health();
  assert.is(code, 0);
  assert.is(healthy, true);
  return usage?.capacity;
}

test("opens the embedded store by URI and by object", async () => {
  assert.is(await capacityOf("embedded:"), 1n << 30n);
  assert.is(await capacityOf("embedded:?capacity=64MiB"), 64n << 20n);
  assert.is(await capacityOf("embedded:?capacity=4096&copyThreads=3"), 4096n);
  assert.is(await capacityOf({ backend: "embedded" }), 1n << 30n);
  assert.is(await capacityOf({ backend: "embedded", capacity: "2G", copyThreads: 1 }), 2n << 30n);
  assert.is(await capacityOf({ backend: "embedded", capacity: 10_000 }), 10_000n);
  assert.is(await capacityOf({ backend: "embedded", capacity: (1n << 33n) + 1n }), (1n << 33n) + 1n);
});

const bad: readonly (readonly [unknown, RegExp])[] = [
  ["nothing:", /no store backend "nothing"; known are embedded:/],
  ["toString:", /no store backend "tostring"/],
  ["", /"" is no store URI; known are embedded:/],
  ["embedded", /"embedded" is no store URI/],
  ["embedded:here", /unexpected "here" after "embedded:"/],
  ["embedded://host", /unexpected "\/\/host"/],
  ["embedded:?size=1", /the embedded store has no option "size"; it has capacity, copyThreads/],
  ["embedded:?capacity=1&capacity=2", /the option "capacity" occurs twice/],
  ["embedded:?capacity=lots", /capacity is "lots"; a size is a whole number/],
  ["embedded:?capacity=", /capacity is ""/],
  ["embedded:?copyThreads=0", /copyThreads is "0"; it is a whole number from 1 to 64/],
  ["embedded:?copyThreads=two", /copyThreads is "two"/],
  [{ backend: "embedded", capacity: 0 }, /capacity is 0/],
  [{ backend: "embedded", copyThreads: 65 }, /copyThreads is 65/],
  [{ backend: "other" }, /no store backend "other"/],
  [{}, /backend is undefined; it is one of embedded/],
  [null, /null is neither/],
  [7, /7 is neither/],
  [["embedded:"], /is neither/],
];

for (const [target, message] of bad)
  test(`refuses ${JSON.stringify(target)}`, async () => {
    await rejects(() => openStore(target as string), "ERR_CONFIG", message);
  });

test("memory that no machine has", async () => {
  await rejects(
    () => openStore({ backend: "embedded", capacity: (1n << 63n) - 1n }),
    "ERR_STORE",
    /gives no memory.*9223372036854775807 bytes/,
  );
});

test.run();
