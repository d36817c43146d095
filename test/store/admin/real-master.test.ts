import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { fillPattern, segmentsIn } from "../helpers.js";
import { adminStore } from "./admin-store.js";

// Against a real mooncake_master, a real owner of memory and Mooncake's own Python client, where the wheel is.

const mooncake = findMooncake();
const SEGMENT = 256 << 20;

if (mooncake) {
  test("what the Python client wrote is found, measured, listed and read, byte for byte", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: SEGMENT });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl });

    const bytes = new Uint8Array(300_000);
    fillPattern(bytes, 3);
    await client.write(0, bytes.subarray(0, 100_000));
    await client.write(1 << 20, bytes.subarray(100_000));
    const vllm = `Qwen3-8B@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${"0f".repeat(32)}`;
    const keys = [vllm, "ключ/%41", "a,b", "a b", "\ufeffmark"];
    assert.equal(
      await client.call(
        "batch_put_from_multi_buffers",
        keys,
        keys.map(() => [0, 1 << 20]),
        keys.map(() => [100_000, 200_000]),
      ),
      [0, 0, 0, 0, 0],
    );

    assert.equal([...(await store.exists([...keys, "absent", ""])).codes], [1, 1, -600, 1, 1, 0, 0]);
    assert.equal(
      [...(await store.size([...keys, "absent"])).codes],
      [300_000n, 300_000n, -600n, 300_000n, 300_000n, -704n],
    );
    const { replicas } = (await store.replicas([vllm])).throwIfFailed();
    assert.equal(
      replicas[0]!.map(({ kind, size, status }) => [kind, size, status]),
      [["memory", 300_000n, "COMPLETE"]],
    );
    const listed: string[] = [];
    for await (const key of store.list()) listed.push(key);
    assert.equal(listed.sort(), [...keys].sort());
    const segments = await store.segments();
    assert.equal(
      segments.map(({ size, used, protocol, status }) => [size, used, protocol, status]),
      [[BigInt(SEGMENT), 1_500_000n, "tcp", "OK"]],
    );
    assert.equal(await store.usage(), {
      capacity: BigInt(SEGMENT),
      used: 1_500_000n,
      keys: 5n,
      counters: { hits: 0n, misses: 0n, stored: 5n, evicted: 0n, evictedBytes: 0n, refusals: 0n },
    });
    assert.is((await store.health()).healthy, true);

    const arena = await store.createArena(2 << 20);
    arena.bytes.fill(0xee);
    const rows = [
      [
        [10, 1],
        [4096, 299_000],
        [1000, 999],
      ],
      [[400_000, 300_000]],
      [[800_000, 300_000]],
      [[1_200_000, 300_000]],
      [[0, 10]],
    ] as const;
    const read = await store.getInto([vllm, "ключ/%41", "a,b", "a b", "absent"], segmentsIn(arena, rows));
    assert.equal([...read.codes], [300_000n, 300_000n, 300_000n, -600n, -704n]);
    assert.equal([...(await store.get(["\ufeffmark"])).codes], [300_000n]);
    const joined = Buffer.concat(rows[0].map(([at, size]) => arena.bytes.subarray(at, at + size)));
    assert.is(joined.compare(bytes), 0);
    for (const start of [400_000, 800_000])
      assert.is(Buffer.compare(arena.bytes.subarray(start, start + 300_000), bytes), 0);
    assert.ok(arena.bytes.subarray(1_200_000, 1_500_000).every((byte) => byte === 0xee));
    await arena.close();
  });

  test("a large value and many small ones come whole", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: SEGMENT });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl });
    const names = Array.from({ length: 500 }, (_, index) => `small-${index}`);
    await client.write(
      0,
      Uint8Array.from({ length: 4096 }, (_, index) => index * 7),
    );
    const offsets = names.map((_, index) => index);
    const codes = await client.call(
      "batch_put_from",
      names,
      offsets,
      names.map(() => 1000),
    );
    assert.ok(codes.every((code) => code === 0));
    assert.equal(await client.call("batch_put_from", ["large"], [0], [48 << 20]), [0]);
    const many = (await store.get(names)).throwIfFailed();
    for (const [index, value] of many.values.entries()) {
      assert.is(value!.length, 1000);
      for (let i = 0; i < 1000; i++) assert.is(value![i], ((index + i) * 7) & 0xff);
    }
    const large = (await store.get(["large"])).throwIfFailed().values[0]!;
    assert.is(large.length, 48 << 20);
    assert.equal(
      large.subarray(0, 4096),
      Uint8Array.from({ length: 4096 }, (_, index) => index * 7),
    );
    assert.ok(large.subarray(4096).every((byte) => byte === 0));
  });

  test("calls that look grant no lease; calls that read do", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: SEGMENT, leaseTtlMs: 400 });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl, leaseMs: 400 });
    await client.call("batch_put_from", ["k"], [0], [100]);
    await store.exists(["k"]);
    await store.size(["k"]);
    await store.replicas(["k"]);
    for await (const key of store.list()) assert.is(key, "k");
    await store.segments();
    await store.usage();
    assert.is(await client.call("remove", "k"), 0);
    await client.call("batch_put_from", ["k"], [0], [100]);
    (await store.get(["k"])).throwIfFailed();
    assert.is(await client.call("remove", "k"), -706);
    await sleep(500);
    assert.is(await client.call("remove", "k"), 0);
    assert.equal([...(await store.exists(["k"])).codes], [0]);
  });

  test("the counters of the master count what its clients do", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: 16 << 20, leaseTtlMs: 50 });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl });
    const nothing = { hits: 0n, misses: 0n, stored: 0n, evicted: 0n, evictedBytes: 0n, refusals: 0n };
    assert.equal((await store.usage()).counters, nothing);
    await client.call("batch_put_from", ["a", "b", "c"], [0, 0, 0], [1000, 1000, 2000]);
    await client.call("batch_put_from", ["a"], [0], [1000]);
    await client.call("batch_upsert_from", ["c", "d"], [0, 0], [2000, 500]);
    await client.call("batch_get_into", ["a", "absent"], [0, 0], [1000, 1000]);
    await store.get(["b", "nowhere", "neither"]);
    await store.exists(["a", "absent"]);
    await client.call("batch_put_from", ["too large"], [0], [20 << 20]);
    await client.call("remove", "a");
    const before = { ...nothing, hits: 2n, misses: 3n, stored: 5n, refusals: 1n };
    assert.equal((await store.usage()).counters, before);
    const names = Array.from({ length: 24 }, (_, index) => `large-${index}`);
    for (const name of names) await client.call("batch_put_from", [name], [0], [1 << 20]);
    for (let wait = 0; (await store.usage()).counters?.evicted === 0n && wait < 50; wait++) await sleep(100);
    const { evicted, evictedBytes, refusals } = (await store.usage()).counters!;
    assert.ok(evicted! > 0n && evictedBytes! > 0n && refusals! > 1n);
  });

  test("keys that are no UTF-8 don't spoil the answers for others", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: SEGMENT });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl });
    await client.call("batch_put_from", ["good"], [0], [100]);
    const keys = { bytes: Buffer.from("\u00ffgood", "latin1"), offsets: Uint32Array.of(0, 1, 5) };
    assert.equal([...(await store.exists(keys)).codes], [-600, 1]);
    assert.equal(
      [
        ...(await store.getInto(keys, segmentsIn(await store.createArena(200), [[[0, 100]], [[100, 100]]])))
          .codes,
      ],
      [-704n, 100n],
    );
  });

  test("an owner that dies, or freezes, and a master that dies cost codes and the deadline", async () => {
    await using cluster = await MooncakeCluster.start(mooncake, { segmentBytes: SEGMENT });
    await using client = await cluster.startClient();
    await using store = adminStore({ url: cluster.adminUrl, deadlineMs: 10_000 });
    const soon = { deadlineMs: 400 };
    await client.call("batch_put_from", ["k"], [0], [100]);
    (await store.get(["k"])).throwIfFailed();
    await cluster.signal("O", "SIGSTOP");
    assert.equal([...(await store.get(["k"], soon)).codes], [-901n]);
    await cluster.signal("O", "SIGCONT");
    (await store.get(["k"])).throwIfFailed();
    await cluster.kill("O");
    assert.equal([...(await store.get(["k"])).codes], [-800n]);
    assert.equal([...(await store.exists(["k"])).codes], [1]);
    await cluster.signal("master", "SIGSTOP");
    assert.equal([...(await store.exists(["k"], soon)).codes], [-901]);
    assert.is((await store.health(soon)).code, 2);
    await cluster.signal("master", "SIGCONT");
    await cluster.kill("master");
    assert.equal([...(await store.exists(["k"])).codes], [-900]);
    await cluster.startMaster();
    assert.equal([...(await store.exists(["k"])).codes], [0]);
  });
} else {
  test("without the wheel, a master that isn't there is what can be asked", async () => {
    await using store = adminStore({ url: "http://127.0.0.1:1" });
    assert.equal([...(await store.exists(["k"])).codes], [-900]);
    assert.is((await store.health()).healthy, false);
  });
}

test.run();
