import { suite } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { BlobBlockHashes } from "../../../src/hash/blob-block-hashes.js";
import { KeyTable } from "../../../src/key/key-table.js";
import { type Segment, SegmentTable } from "../../../src/layout/segment-table.js";
import type { MooncakeStore } from "../../../src/store/open-store.js";
import { installation, openStoreOn, pattern } from "./setup.js";

const MIB = 1 << 20;

interface World {
  cluster: MooncakeCluster;
  store: MooncakeStore;
}

const test = suite<World>("mooncake round trips");
/** A test that needs the cluster. */
const real = (name: string, run: (world: World) => Promise<void>): void => {
  if (installation) test(name, run);
};

test.before(async (world) => {
  if (!installation) return;
  world.cluster = await MooncakeCluster.start(installation, { segmentBytes: 256 * MIB });
  world.store = await openStoreOn(world.cluster, { staging: "8MiB" });
});

test.after(async ({ cluster, store }) => {
  await store?.close();
  await cluster?.[Symbol.asyncDispose]();
});

real("values of every kind of row come back byte for byte", async ({ store }) => {
  await using arena = await store.createArena(64 * MIB);
  const bytes = pattern(1, 32 * MIB);
  arena.bytes.set(bytes);
  const at = (offset: number, size: number): Segment => ({
    address: arena.baseAddress + BigInt(offset),
    size: BigInt(size),
  });
  const rows = [
    [at(5, 1)],
    [at(100, MIB)],
    [at(2 * MIB, 1000), at(2 * MIB + 1000, 24)],
    [at(4 * MIB, 4096), at(3 * MIB, 4096), at(0, 0), at(5 * MIB + 3, 17)],
    // Larger than the staging memory, and scattered.
    [at(16 * MIB, 5 * MIB), at(8 * MIB, 5 * MIB + 1)],
    Array.from({ length: 3000 }, (_, i) => at(i * 200, 64)),
  ];
  const keys = rows.map((_, row) => `row ${row}`);
  const stored = await store.putFrom(keys, SegmentTable.fromRows(rows));
  assert.equal(
    [...stored.codes],
    rows.map(() => 0),
  );
  const expected = rows.map((row) =>
    Buffer.concat(
      row.map(({ address, size }) => {
        const start = Number(address - arena.baseAddress);
        return bytes.subarray(start, start + Number(size));
      }),
    ),
  );
  assert.equal(
    [...(await store.size(keys)).codes],
    expected.map((value) => BigInt(value.length)),
  );

  const { values } = await store.get(keys);
  for (const [row, value] of values.entries())
    assert.ok(Buffer.from(value!).equals(expected[row]!), `row ${row}`);

  // Into the other half of the arena, scattered the same way.
  const moved = rows.map((row) =>
    row.map(({ address, size }) => ({ address: address + BigInt(32 * MIB), size })),
  );
  const read = await store.getInto(keys, SegmentTable.fromRows(moved));
  assert.equal(
    [...read.codes],
    expected.map((value) => BigInt(value.length)),
  );
  for (const [row, segments] of moved.entries()) {
    const found = segments.map(({ address, size }) => {
      const start = Number(address - arena.baseAddress);
      return arena.bytes.subarray(start, start + Number(size));
    });
    assert.ok(Buffer.concat(found).equals(expected[row]!), `row ${row}`);
  }
});

real("memory that the caller registers is used like an arena's", async ({ store }) => {
  // Memory of another store's arena: this one knows nothing of it.
  await using foreign = await store.createArena(MIB);
  const address = foreign.baseAddress;
  assert.is(await store.unregisterBuffer(address), 0);
  const row = (offset: number, size: number) =>
    SegmentTable.fromRows([[{ address: address + BigInt(offset), size: BigInt(size) }]]);
  assert.is((await store.putFrom(["mine"], row(0, 10))).codes[0], -600);
  assert.is(await store.registerBuffer(address, MIB), 0);
  assert.is(await store.registerBuffer(address + 10n, 10), -600);
  foreign.bytes.set(pattern(7, 1000));
  assert.is((await store.putFrom(["mine"], row(0, 1000))).codes[0], 0);
  assert.is((await store.getInto(["mine"], row(5000, 1000))).codes[0], 1000n);
  assert.equal(foreign.bytes.slice(5000, 6000), pattern(7, 1000));
  assert.is(await store.unregisterBuffer(address), 0);
  assert.is(await store.unregisterBuffer(address), -600);
  assert.is((await store.getInto(["mine"], row(0, 1000))).codes[0], -600n);
});

real("bad memory is refused before anything crosses", async ({ store }) => {
  await using arena = await store.createArena(4096);
  const end = arena.baseAddress + 4096n;
  const bad = [
    [{ address: 0n, size: 8n }],
    [{ address: 8n, size: 8n }],
    [{ address: end - 4n, size: 8n }],
    [
      { address: arena.baseAddress, size: 8n },
      { address: end, size: 1n },
    ],
    [{ address: 2n ** 64n - 1n, size: 1n }],
    [{ address: arena.baseAddress, size: 2n ** 64n - 1n }],
    [],
  ];
  const keys = bad.map((_, index) => `bad ${index}`);
  const table = SegmentTable.fromRows(bad);
  assert.equal(
    [...(await store.putFrom(keys, table)).codes],
    bad.map(() => -600),
  );
  assert.equal(
    [...(await store.upsertFrom(keys, table)).codes],
    bad.map(() => -600),
  );
  assert.equal(
    [...(await store.exists(keys)).codes],
    bad.map(() => 0),
  );
  const some = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 8n }]]);
  assert.is((await store.putFrom(["there"], some)).codes[0], 0);
  const into = SegmentTable.fromRows(bad);
  const read = await store.getInto(
    bad.map((_, i) => (i === 6 ? "absent" : "there")),
    into,
  );
  assert.equal([...read.codes], [-600n, -600n, -600n, -600n, -600n, -600n, -704n]);
  assert.is(await store.registerBuffer(0n, 10), -600);
  assert.is(await store.registerBuffer(4096n, 10), -600);
  assert.is(await store.registerBuffer(arena.baseAddress, 0), -600);
  assert.is(await store.registerBuffer(2n ** 64n - 1n, 2), -600);
});

real("sizes that differ are errors, and nothing is written", async ({ store }) => {
  await using arena = await store.createArena(MIB);
  await store.put(["ten"], [pattern(3, 10)]);
  arena.bytes.fill(0xee);
  const row = (...sizes: number[]) =>
    sizes.map((size, i) => ({ address: arena.baseAddress + BigInt(i * 100), size: BigInt(size) }));
  const table = SegmentTable.fromRows([row(9), row(11), row(5, 4), row(5, 6), row(5, 5)]);
  const { codes } = await store.getInto(["ten", "ten", "ten", "ten", "no such key"], table);
  assert.equal([...codes], [-600n, -800n, -600n, -800n, -704n]);
  assert.ok(arena.bytes.every((byte) => byte === 0xee));
});

real(
  "a key twice in one read fills every destination; of equal keys in one put the first is stored",
  async ({ store }) => {
    await using arena = await store.createArena(MIB);
    arena.bytes.set(pattern(4, 3000));
    const part = (offset: number, size: number) => [
      { address: arena.baseAddress + BigInt(offset), size: BigInt(size) },
    ];
    const first = SegmentTable.fromRows([part(0, 0), part(0, 100), part(1000, 200), part(2000, 50)]);
    const stored = await store.putFrom(["twice", "twice", "twice", "other"], first);
    assert.equal([...stored.codes], [-600, 0, 0, 0]);
    assert.is((await store.size(["twice"])).codes[0], 100n);
    const scattered = [...part(5000, 40), ...part(6000, 60)];
    const into = SegmentTable.fromRows([
      part(4000, 100),
      scattered,
      part(7000, 50),
      part(8000, 100),
      part(9000, 99),
    ]);
    const read = await store.getInto(["twice", "twice", "other", "twice", "twice"], into);
    assert.equal([...read.codes], [100n, 100n, 50n, 100n, -600n]);
    assert.equal(arena.bytes.slice(4000, 4100), pattern(4, 3000).slice(0, 100));
    assert.equal(arena.bytes.slice(5000, 5040), pattern(4, 3000).slice(0, 40));
    assert.equal(arena.bytes.slice(6000, 6060), pattern(4, 3000).slice(40, 100));
    assert.equal(arena.bytes.slice(8000, 8100), pattern(4, 3000).slice(0, 100));
    const values = await store.put(["v", "v"], [pattern(5, 10), pattern(6, 20)]);
    assert.equal([...values.codes], [0, 0]);
    const got = await store.get(["v", "nothing", "v"]);
    assert.equal([...got.codes], [10n, -704n, 10n]);
    assert.equal(got.values[2], pattern(5, 10));
    assert.is.not(got.values[0], got.values[2]);
  },
);

real(
  "batches of any size: keys of one length, of many, and more than one command takes",
  async ({ store }) => {
    const count = 9_000;
    const blob = pattern(8, count * 32);
    const keys = KeyTable.fromHashes("model@tp_rank:0", new BlobBlockHashes(blob, 32));
    await using arena = await store.createArena(count * 16);
    arena.bytes.set(pattern(9, count * 16));
    const rows = Array.from({ length: count }, (_, i) => [
      { address: arena.baseAddress + BigInt(i * 16), size: 16n },
    ]);
    assert.is((await store.putFrom(keys, SegmentTable.fromRows(rows))).throwIfFailed().ok, count);
    assert.is((await store.exists(keys)).ok, count);
    const wild = Array.from({ length: 2_600 }, (_, i) => `${"k".repeat(i % 7)}${i}`);
    const mixed = await store.exists([...wild, keys.at(17)!, "", ...wild, keys.at(4_000)!]);
    assert.is(mixed.ok, 2);
    assert.ok(mixed.isOk(2_600) && mixed.isOk(5_202));
    const copy = new Uint8Array(arena.bytes);
    arena.bytes.fill(0);
    assert.is((await store.getInto(keys, SegmentTable.fromRows(rows))).ok, count);
    assert.ok(Buffer.from(arena.bytes).equals(copy));
    assert.is(await store.removeByRegex("^model@", { force: true }), count);
    assert.is((await store.exists(keys)).ok, 0);
  },
);

real("keys of any bytes", async ({ store }) => {
  const keys = [
    Buffer.from([0xff, 0x80]),
    Buffer.from("a\0b\nc"),
    Buffer.alloc(MIB, "k"),
    Buffer.from("ключ"),
  ];
  const offsets = new Uint32Array(keys.length + 1);
  for (const [i, key] of keys.entries()) offsets[i + 1] = offsets[i]! + key.length;
  const flat = { bytes: Buffer.concat(keys), offsets };
  const values = keys.map((_, i) => pattern(20 + i, 100 + i));
  assert.equal([...(await store.put(flat, values)).codes], [0, 0, 0, 0]);
  assert.equal([...(await store.get(flat)).values], values);
  assert.equal([...(await store.replicas(flat)).codes], [1, 1, 1, 1]);
  assert.equal([...(await store.size(flat)).codes], [100n, 101n, 102n, 103n]);
  assert.equal([...(await store.remove(flat, { force: true })).codes], [0, 0, 0, 0]);
});

real("the empty key has the codes of Mooncake", async ({ store }) => {
  const result = await store.put([""], [pattern(1, 4)]);
  assert.is(result.codes[0], -600);
  assert.is((await store.exists([""])).codes[0], 0);
  assert.is((await store.size([""])).codes[0], -704n);
  assert.is((await store.get([""])).codes[0], -704n);
  assert.is((await store.remove([""])).codes[0], -704);
});

real("an upsert replaces a value, whatever the sizes", async ({ cluster, store }) => {
  for (const [seed, size] of [
    [31, 10 * MIB],
    [32, 10 * MIB],
    [33, 12 * MIB],
    [34, 100],
  ] as const) {
    assert.is((await store.upsert(["big"], [pattern(seed, size)])).codes[0], 0);
    assert.ok(Buffer.from((await store.get(["big"])).values[0]!).equals(pattern(seed, size)));
  }
  const keys = await (await fetch(`${cluster.adminUrl}/get_all_keys`)).text();
  assert.match(keys, /^big$/m);
  assert.not.match(keys, /reserved/);
});

real("an upsert that does not fit keeps the old value", async () => {
  // A cluster of its own: a refused write makes Mooncake evict, now or as soon as there is something.
  await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 32 * MIB });
  await using store = await openStoreOn(cluster);
  const old = pattern(30, 10 * MIB);
  assert.is((await store.upsert(["big"], [old])).codes[0], 0);
  assert.is((await store.upsert(["big"], [pattern(31, 30 * MIB)])).codes[0], -200);
  assert.ok(Buffer.from((await store.get(["big"])).values[0]!).equals(old));
});

real("empty batches, usage, health, replicas", async ({ store, cluster }) => {
  assert.is((await store.exists([])).length, 0);
  assert.is((await store.putFrom([], SegmentTable.fromRows([]))).length, 0);
  assert.is((await store.getInto([], SegmentTable.fromRows([]))).length, 0);
  assert.is((await store.get([])).length, 0);
  assert.is(await store.usage(), undefined);
  const health = await store.health();
  assert.is(health.code, 0);
  assert.match(health.message, cluster.masterAddress);
  await store.put(["placed"], [pattern(1, 77)]);
  const { codes, replicas } = await store.replicas(["placed", "not placed"]);
  assert.equal([...codes], [1, -704]);
  assert.is(replicas[0]![0]!.status, "COMPLETE");
  assert.is(replicas[0]![0]!.size, 77n);
  assert.match(replicas[0]![0]!.segment, /^127\.0\.0\.1:\d+$/);
  assert.ok(replicas[0]![0]!.address! > 0n);
  assert.match(store.hostname, /^127\.0\.0\.1:\d+$/);
  assert.match(store.version, /^mooncake-transfer-engine/);
});

real("pieces may go as they are: the same bytes", async ({ cluster }) => {
  await using store = await openStoreOn(cluster, { scattered: "direct" });
  await using arena = await store.createArena(MIB);
  await using second = await store.createArena(MIB);
  arena.bytes.set(pattern(40, MIB));
  second.bytes.set(pattern(41, MIB));
  const row = (shift: number) => [
    { address: arena.baseAddress + BigInt(shift), size: 1000n },
    { address: second.baseAddress + BigInt(shift), size: 0n },
    { address: second.baseAddress + BigInt(shift), size: 2000n },
  ];
  const put = await store.putFrom(["pieces", "one"], SegmentTable.fromRows([row(0), row(0).slice(0, 1)]));
  assert.equal([...put.codes], [0, 0]);
  const expected = Buffer.concat([pattern(40, MIB).subarray(0, 1000), pattern(41, MIB).subarray(0, 2000)]);
  assert.ok(Buffer.from((await store.get(["pieces"])).values[0]!).equals(expected));
  const read = await store.getInto(["pieces"], SegmentTable.fromRows([row(500_000)]));
  assert.equal([...read.codes], [3000n]);
  assert.ok(Buffer.from(arena.bytes.subarray(500_000, 501_000)).equals(expected.subarray(0, 1000)));
  assert.ok(Buffer.from(second.bytes.subarray(500_000, 502_000)).equals(expected.subarray(1000)));
  assert.is((await store.upsertFrom(["pieces"], SegmentTable.fromRows([row(3000)]))).codes[0], 0);
  assert.is((await store.size(["pieces"])).codes[0], 3000n);
});

real("misuse throws, and a closed store says so", async ({ cluster }) => {
  const store = await openStoreOn(cluster);
  const table = SegmentTable.fromRows([]);
  for (const call of [
    () => store.putFrom(["a"], table),
    () => store.put(["a"], []),
    () => store.get(["a"], { deadlineMs: -1 }),
    () => store.createArena(0),
    () => store.createArena(1.5),
  ])
    await rejects(call, /ERR_STORE/);
  const arena = await store.createArena(4096);
  await store.close();
  await store.close();
  await rejects(() => store.exists(["a"]), /the store is closed/);
  assert.is((await store.health()).code, 1);
  arena.bytes[0] = 7;
  assert.is(arena.bytes[0], 7);
  await arena.close();
  await arena.close();
  assert.is(arena.bytes.length, 0);
});

async function rejects(call: () => Promise<unknown>, expected: RegExp): Promise<void> {
  try {
    await call();
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    assert.match(`${code} ${message}`, expected);
    return;
  }
  assert.unreachable(`${call} should have failed`);
}

test("opening names the master that is not there, with a wheel and without", async () => {
  await rejects(
    () => openStoreOn({ masterAddress: "127.0.0.1:1" } as MooncakeCluster),
    /ERR_STORE .*127\.0\.0\.1:1/,
  );
});

test.run();
