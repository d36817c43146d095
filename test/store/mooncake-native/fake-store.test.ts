import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadNative } from "../../../src/native/load.js";
import {
  type MooncakeNativeStore,
  type MooncakeNativeStoreOptions,
  openStore,
} from "../../../src/store/index.js";
import { fillPattern, rawSegments, rejects, segmentsIn } from "../helpers.js";
import { buildFakeLibrary } from "./fake-library.js";

// Against a library that ends the process for every call that it should never have got.

const library = buildFakeLibrary();

const open = (options: MooncakeNativeStoreOptions = {}): Promise<MooncakeNativeStore> =>
  openStore({
    backend: "mooncake-native",
    library,
    master: "127.0.0.1:1",
    localHostname: "127.0.0.1",
    ...options,
  });

test("objects are gathered, stored, scattered and removed", async () => {
  await using store = await open();
  await using arena = await store.createArena(1 << 20);
  fillPattern(arena.bytes.subarray(0, 4096), 5);
  const rows = [
    [
      [0, 10],
      [100, 0],
      [50, 20],
    ],
    [[1000, 2000]],
  ] as const;
  (await store.putFrom(["a", "b"], segmentsIn(arena, rows))).throwIfFailed();
  assert.equal([...(await store.exists(["a", "b", "c", ""])).codes], [1, 1, 0, 0]);
  assert.equal([...(await store.size(["a", "b", "c", ""])).codes], [30n, 2000n, -704n, -704n]);
  const back = segmentsIn(arena, [
    [
      [5000, 29],
      [6000, 1],
    ],
    [[8000, 2000]],
  ]);
  assert.equal([...(await store.getInto(["a", "b"], back)).codes], [30n, 2000n]);
  assert.equal(arena.bytes.subarray(5000, 5010), arena.bytes.subarray(0, 10));
  assert.equal(arena.bytes.subarray(5010, 5029), arena.bytes.subarray(50, 69));
  assert.is(arena.bytes[6000], arena.bytes[69]);
  assert.equal(arena.bytes.subarray(8000, 10_000), arena.bytes.subarray(1000, 3000));
  assert.equal([...(await store.remove(["a", "c", ""])).codes], [0, -704, -704]);
  assert.is(await store.removeByRegex("b"), 1);
  await store.put(["x", "y"], [Uint8Array.of(1), Uint8Array.of(2)]);
  assert.is(await store.removeAll({ force: true }), 2);
  assert.match((await store.health()).message, /creates=1 destroys=0 blocked=0 is connected/);
});

test("values in JavaScript's memory, of any size, come back as they were", async () => {
  await using store = await open({ staging: 4096 });
  const large = new Uint8Array(3 << 20);
  fillPattern(large, 9);
  const values = [Uint8Array.of(7), large.subarray(0, 4097), new Uint8Array(0), large, Uint8Array.of(8)];
  const keys = ["one", "some", "none", "large", "one"];
  assert.equal([...(await store.put(keys, values)).codes], [0, 0, -600, 0, 0]);
  const got = await store.get([...keys, "absent", ""]);
  assert.equal([...got.codes], [1n, 4097n, -704n, BigInt(large.length), 1n, -704n, -704n]);
  assert.equal(got.values[0], Uint8Array.of(7));
  assert.equal(got.values[4], Uint8Array.of(7));
  assert.is(Buffer.compare(got.values[1]!, values[1]!), 0);
  assert.is(Buffer.compare(got.values[3]!, large), 0);
  assert.is(got.values[2], undefined);
});

test("many keys are cut into batches that the queue takes, and every key keeps its code", async () => {
  await using store = await open();
  await using arena = await store.createArena(1 << 20);
  const keys = Array.from({ length: 3_000 }, (_, index) =>
    index % 100 === 99 ? `code:-200:${index}` : `k${index}`,
  );
  const rows = keys.map((_, index) => [[index * 100, 100] as const]);
  fillPattern(arena.bytes, 1);
  const put = await store.putFrom(keys, segmentsIn(arena, rows));
  assert.equal(
    [...put.codes],
    keys.map((key) => (key.startsWith("code") ? -200 : 0)),
  );
  const original = arena.bytes.slice();
  arena.bytes.fill(0);
  const got = await store.getInto(keys, segmentsIn(arena, rows));
  for (const [index, key] of keys.entries()) {
    const bytes = arena.bytes.subarray(index * 100, index * 100 + 100);
    if (key.startsWith("code")) assert.ok(bytes.every((byte) => byte === 0) && got.codes[index] === -200n);
    else assert.is(Buffer.compare(bytes, original.subarray(index * 100, index * 100 + 100)), 0);
  }
});

test("what the library must not see is refused before", async () => {
  await using store = await open();
  await using arena = await store.createArena(4096);
  const base = arena.baseAddress;
  const segments = rawSegments([
    [[base, 0n]],
    [[base, 8n]],
    [[base, 8n]],
    [[0n, 8n]],
    [[base + 4090n, 8n]],
    [
      [base, 8n],
      [2n ** 64n - 4n, 8n],
    ],
    [],
    [[base, 8n]],
  ]);
  const keys = ["zero", "", "nul\0key", "null", "foreign", "wrapping", "nothing", "fine"];
  const put = await store.putFrom(keys, segments);
  assert.equal([...put.codes], [-600, -600, -600, -600, -600, -600, -600, 0]);
  assert.match(put.failures()[2]!.reason!, /ends a key at its first NUL/);
  assert.equal([...(await store.exists(keys)).codes], [0, 0, -600, 0, 0, 0, 0, 1]);
  assert.equal([...(await store.size(["nul\0key"])).codes], [-600n]);
  assert.equal([...(await store.remove(["nul\0key"])).codes], [-600]);
  // A NUL in a pattern is sent as an escape, so that nothing is cut off.
  assert.is(await store.removeByRegex("f\0ine"), 0);
  assert.is(await store.removeByRegex("(.)*\\1"), -600);
  const get = await store.getInto(["fine", "", "fine\0", "fine", "fine", "fine", "fine", "fine"], segments);
  assert.equal([...get.codes], [-600n, -704n, -600n, -600n, -600n, -600n, -600n, 8n]);
  await rejects(() => store.createArena(0), "ERR_STORE", /the size is 0/);
  assert.is(await store.registerBuffer(0n, 5), -600);
  assert.is(await store.registerBuffer(base + 10n, 5), -600);
  assert.is(await store.registerBuffer(4096n, 5), -600);
  assert.is(await store.unregisterBuffer(base + 1n), -600);
});

test("memory of another store can be used once it is registered", async () => {
  await using embedded = await openStore({ backend: "embedded", capacity: 1 << 20 });
  await using arena = await embedded.createArena(4096);
  await using store = await open();
  arena.bytes.fill(3);
  const row = segmentsIn(arena, [[[10, 100]]]);
  assert.equal([...(await store.putFrom(["k"], row)).codes], [-600]);
  assert.is(await store.registerBuffer(arena.baseAddress, 4096), 0);
  assert.equal([...(await store.putFrom(["k"], row)).codes], [0]);
  assert.is(await store.unregisterBuffer(arena.baseAddress), 0);
  assert.equal([...(await store.getInto(["k"], row)).codes], [-600n]);
});

test("a key twice: the first is put, and a read fills every destination", async () => {
  await using store = await open();
  await using arena = await store.createArena(4096);
  arena.bytes.fill(1, 0, 10).fill(2, 10, 30);
  const put = await store.putFrom(
    ["k", "k", "k", "code:-200:", "code:-200:"],
    segmentsIn(arena, [[[0, 0]], [[0, 10]], [[10, 20]], [[0, 1]], [[0, 1]]]),
  );
  assert.equal([...put.codes], [-600, 0, 0, -200, -200]);
  const get = await store.getInto(
    ["k", "k", "k", "k", "k"],
    segmentsIn(arena, [[[100, 10]], [[200, 11]], [[300, 9]], [[400, 10]], [[500, 0]]]),
  );
  assert.equal([...get.codes], [10n, -800n, -600n, 10n, -600n]);
  for (const start of [100, 400])
    assert.ok(arena.bytes.subarray(start, start + 10).every((byte) => byte === 1));
  assert.ok(arena.bytes.subarray(200, 400).every((byte) => byte === 0));
});

test("a call that hangs costs its deadline and nobody else anything", async () => {
  await using store = await open({ threads: 2, deadlineMs: 150 });
  await using arena = await store.createArena(4096);
  const row = segmentsIn(arena, [[[0, 10]]]);
  const start = performance.now();
  const hanging = Array.from({ length: 8 }, (_, index) => store.putFrom([`hang:3000:${index}`], row));
  // Neither the event loop nor libuv's own threads wait.
  await Promise.all(Array.from({ length: 8 }, () => readFile("package.json")));
  for (const call of hanging) assert.equal([...(await call).codes], [-901]);
  assert.ok(performance.now() - start < 2_500, "all are given up long before the library is done");
  assert.ok(store.hangingCalls >= 2);
  const patient = { deadlineMs: 20_000 };
  assert.equal([...(await store.putFrom(["k"], row, patient)).codes], [0]);
  assert.equal([...(await store.exists(["k"], patient)).codes], [1]);
  assert.match((await store.health(patient)).message, /connected/);
  while (store.hangingCalls > 0) await sleep(50);
  // The calls that had begun were carried out; those that waited were not.
  const { codes } = await store.exists(
    Array.from({ length: 8 }, (_, index) => `hang:1:${index}`),
    patient,
  );
  assert.is(codes.filter((code) => code === 1).length, 0);
});

test("keys that were answered before the deadline keep their answer", async () => {
  await using store = await open({ staging: 64 });
  await using arena = await store.createArena(4096);
  const rows = segmentsIn(arena, [[[0, 64]], [[64, 64]], [[128, 64]], [[192, 64]]]);
  const put = await store.putFrom(["a", "b", "hang:2500:", "c"], rows, { deadlineMs: 500 });
  assert.equal([...put.codes], [0, 0, -901, -901]);
  const size = await store.size(["a", "hang:2500:", "b"], { deadlineMs: 500 });
  assert.equal([...size.codes], [64n, -901n, -901n]);
});

test("nothing is written, and an arena can be closed, once a read was given up", async () => {
  await using store = await open();
  const arena = await store.createArena(4096);
  await store.put(["hang:1500:"], [new Uint8Array(64).fill(1)]);
  const { codes } = await store.getInto(["hang:1500:"], segmentsIn(arena, [[[0, 64]]]), { deadlineMs: 100 });
  assert.equal([...codes], [-901n]);
  while (store.hangingCalls > 0) await sleep(50);
  assert.ok(arena.bytes.every((byte) => byte === 0));
  const call = store.getInto(["hang:1500:"], segmentsIn(arena, [[[0, 64]]]), { deadlineMs: 500 });
  const start = performance.now();
  await arena.close();
  assert.ok(performance.now() - start < 1_000, "closing does not wait for the library");
  assert.equal([...(await call).codes], [-901n]);
});

test("memory that is unregistered during a read stays until the read has ended", async () => {
  await using store = await open();
  await using embedded = await openStore({ backend: "embedded", capacity: 1 << 20 });
  await using arena = await embedded.createArena(4096);
  await store.registerBuffer(arena.baseAddress, arena.size);
  await store.put(["hang:600:"], [new Uint8Array(64).fill(1)]);
  const call = store.getInto(["hang:600:"], segmentsIn(arena, [[[0, 64]]]));
  await sleep(50);
  let read = false;
  call.then(() => {
    read = true;
  });
  assert.is(await store.unregisterBuffer(arena.baseAddress), 0);
  assert.ok(read);
  assert.equal([...(await call).codes], [64n]);
  assert.ok(arena.bytes.subarray(0, 64).every((byte) => byte === 1));
});

test("closing lets calls finish, and waits for those that hang as long as they may", async () => {
  const store = await open({ deadlineMs: 500 });
  const arena = await store.createArena(4096);
  const put = store.putFrom(["k"], segmentsIn(arena, [[[0, 10]]]));
  const hang = store.exists(["hang:2000:"]);
  const start = performance.now();
  await store.close();
  assert.ok(performance.now() - start > 1_800, "the client is destroyed after the last call has left");
  assert.equal([...(await put).codes], [0]);
  assert.equal([...(await hang).codes], [-901]);
  assert.is((await store.health()).code, 1);
  for (const call of [
    () => store.exists(["k"]),
    () => store.createArena(1),
    () => store.removeAll(),
    () => store.usage(),
  ])
    await rejects(call, "ERR_STORE", /the store is closed/);
  await store.close();
  await arena.close();
});

test("what the C interface lacks says so", async () => {
  await using store = await open();
  await using arena = await store.createArena(64);
  const row = segmentsIn(arena, [[[0, 64]]]);
  const one = [new Uint8Array(1)];
  for (const [result, reason] of [
    [await store.upsertFrom(["k"], row), /no upsert/],
    [await store.upsert(["k"], one), /no upsert/],
    [await store.put(["k"], one, { groupIds: ["g"] }), /no groups/],
    [await store.putFrom(["k"], row, { withSoftPin: true, softPinTtlMs: 5 }), /no time for a soft pin/],
    [await store.replicas(["k"]), /where replicas lie/],
  ] as const) {
    assert.equal([...result.codes], [-1012]);
    assert.match(result.failures()[0]!.reason!, reason);
  }
  assert.is(await store.usage(), undefined);
  const kept = { replicaNum: 2, withSoftPin: true, withHardPin: true, preferredSegments: ["a:1", "b:2"] };
  assert.equal([...(await store.put(["k"], one, kept)).codes], [0]);
});

test("opening fails within its deadline, with the master's address and the reason", async () => {
  await rejects(
    () => open({ master: "refuse:600" }),
    "ERR_STORE",
    /master refuse:600 can't be joined.*INVALID_PARAMS \(-600/,
  );
  const start = performance.now();
  await rejects(
    () => open({ master: "hang:2500", openDeadlineMs: 150 }),
    "ERR_STORE",
    /master hang:2500 can't be joined: there was no answer within 150 ms/,
  );
  assert.ok(performance.now() - start < 2_000);
  await using store = await open();
  assert.match((await store.health()).message, /127\.0\.0\.1:1$/);
});

test("a library that can't be loaded is an error that says why", async () => {
  await rejects(
    () => open({ library: "/nowhere/lib.so" }),
    "ERR_NATIVE",
    /\/nowhere\/lib\.so can't be loaded: .*No such file/,
  );
  await rejects(() => open({ library: "package.json" }), "ERR_NATIVE", /can't be loaded/);
  await rejects(
    () => open({ library: buildFakeLibrary("-DMOONCAKE_FAKE_LACKS") }),
    "ERR_NATIVE",
    /lacks mooncake_store_remove, mooncake_store_remove_by_regex, mooncake_store_remove_all, mooncake_store_register_buffer, mooncake_store_unregister_buffer$/,
  );
});

const badOptions: readonly (readonly [MooncakeNativeStoreOptions, RegExp])[] = [
  [{ library: "" }, /library is ""; it is the path of Mooncake's C library/],
  [{ master: "etcd://x" }, /master is "etcd:\/\/x"; it is host:port/],
  [{ metadataServer: "etcd://x" }, /metadataServer is "etcd:\/\/x".*would end this process/],
  [{ metadataServer: "nonsense" }, /metadataServer is "nonsense"/],
  [{ protocol: "cxl" }, /protocol is "cxl"; it is tcp or rdma/],
  [{ threads: 0 }, /threads is 0/],
  [{ staging: "much" }, /staging is "much"/],
  [{ globalSegmentSize: "1MiB" }, /globalSegmentSize/],
];
for (const [options, message] of badOptions)
  test(`refuses ${JSON.stringify(options)}`, () => rejects(() => open(options), "ERR_CONFIG", message));

test("the addon itself refuses what would end the process", () => {
  const addon = loadNative();
  const client = addon.mooncakeOpen(1, 4096);
  const good = {
    localHostname: "h",
    metadataServer: "P2PHANDSHAKE",
    globalSegmentSize: 0n,
    localBufferSize: 0n,
    protocol: "tcp",
    deviceName: "",
    masterServerAddress: "m:1",
  };
  for (const [field, value] of [
    ["masterServerAddress", ""],
    ["metadataServer", ""],
    ["metadataServer", "redis://x"],
    ["localHostname", "a\0b"],
    ["protocol", 5],
  ] as const)
    assert.throws(
      () => addon.mooncakeSetup(client, 1, library, { ...good, [field]: value }),
      new RegExp(field),
    );
  assert.throws(() => addon.mooncakeOpen(0, 1), /threads/);
  assert.throws(
    () => addon.mooncakeExists({} as typeof client, 1, new Uint8Array(0), Uint32Array.of(0)),
    /handle/,
  );
});

test("calls before setup and after the end give -600", async () => {
  const addon = loadNative();
  const client = addon.mooncakeOpen(1, 4096);
  const keys = [Buffer.from("k"), Uint32Array.of(0, 1)] as const;
  assert.equal([...(await addon.mooncakeExists(client, 1, ...keys))], [-600]);
  assert.equal([...(await addon.mooncakeSize(client, 2, ...keys))], [-600n]);
  assert.is(await addon.mooncakeClose(client, 3), 0);
  assert.equal([...(await addon.mooncakeExists(client, 4, ...keys))], [-600]);
});

test.run();
