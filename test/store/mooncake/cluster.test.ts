import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import { holdings, installation, openStoreOn, pattern, until } from "./setup.js";

// A real cluster whose processes die and freeze, and the official Python client next to ours.

const MIB = 1 << 20;

/** A short patience of Mooncake's client, so that the tests needn't wait for it. */
const IMPATIENT = { environment: { MC_RPC_TIMEOUT_MS: "1500", MC_TCP_STATUS_TIMEOUT_SEC: "2" } };

async function timed<T>(limitMs: number, call: Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await call;
  assert.ok(performance.now() - started < limitMs, `${performance.now() - started} ms`);
  return result;
}

const cases: Record<string, () => Promise<void>> = {
  "Node writes and Python reads, byte for byte": async () => {
    await using cluster = await MooncakeCluster.start(installation!);
    await using store = await openStoreOn(cluster);
    await using arena = await store.createArena(4 * MIB);
    await using python = await cluster.startClient();
    const bytes = pattern(1, 2 * MIB);
    arena.bytes.set(bytes);
    const at = (offset: number, size: number) => ({
      address: arena.baseAddress + BigInt(offset),
      size: BigInt(size),
    });
    const rows = [[at(0, MIB)], [at(MIB, 1000), at(5, 3000), at(2 * MIB - 1, 1)], [at(77, 7)]];
    const keys = ["whole", "scattered", "ключ @tp_rank:0"];
    assert.is((await store.putFrom(keys, SegmentTable.fromRows(rows))).ok, 3);
    const expected = [
      bytes.subarray(0, MIB),
      Buffer.concat([bytes.subarray(MIB, MIB + 1000), bytes.subarray(5, 3005), bytes.subarray(2 * MIB - 1)]),
      bytes.subarray(77, 84),
    ];
    const sizes = expected.map((value) => value.length);
    assert.equal(await python.call("batch_is_exist", keys), [1, 1, 1]);
    assert.equal(await python.call("batch_get_into", keys, [0, 2 * MIB, 3 * MIB], sizes), sizes);
    for (const [i, offset] of [0, 2 * MIB, 3 * MIB].entries())
      assert.ok(
        Buffer.from(await python.read(offset, sizes[i]!)).equals(expected[i]!),
        `contiguous ${keys[i]}`,
      );
    // The same in pieces, as vLLM reads.
    const pieces = [[4 * MIB, 5 * MIB], [6 * MIB, 7 * MIB, 8 * MIB], [9 * MIB]];
    const lengths = [[1000, MIB - 1000], [4000, 0, 1], [7]];
    assert.equal(await python.call("batch_get_into_multi_buffers", keys, pieces, lengths), sizes);
    for (const [i, offsets] of pieces.entries()) {
      const found = await Promise.all(offsets.map((offset, j) => python.read(offset, lengths[i]![j]!)));
      assert.ok(Buffer.concat(found).equals(expected[i]!), `in pieces ${keys[i]}`);
    }
  },

  "Python writes and Node reads, byte for byte": async () => {
    await using cluster = await MooncakeCluster.start(installation!);
    await using store = await openStoreOn(cluster);
    await using python = await cluster.startClient();
    const bytes = pattern(2, MIB);
    await python.write(0, bytes);
    assert.equal(await python.call("batch_put_from", ["a", "b"], [0, 1000], [MIB, 500]), [0, 0]);
    const pieces = [[10, 500_000, 3]];
    const lengths = [[100, 4096, 9]];
    assert.equal(await python.call("batch_put_from_multi_buffers", ["c"], pieces, lengths), [0]);
    const joined = Buffer.concat([
      bytes.subarray(10, 110),
      bytes.subarray(500_000, 504_096),
      bytes.subarray(3, 12),
    ]);
    const { values } = await store.get(["a", "b", "c"]);
    assert.ok(Buffer.from(values[0]!).equals(bytes));
    assert.ok(Buffer.from(values[1]!).equals(bytes.subarray(1000, 1500)));
    assert.ok(Buffer.from(values[2]!).equals(joined));
    await using arena = await store.createArena(MIB);
    const row = [
      { address: arena.baseAddress + 9n, size: 4000n },
      { address: arena.baseAddress, size: 5n },
      { address: arena.baseAddress + 8000n, size: 200n },
    ];
    assert.is((await store.getInto(["c"], SegmentTable.fromRows([row]))).codes[0], 4205n);
    const found = [arena.bytes.slice(9, 4009), arena.bytes.slice(0, 5), arena.bytes.slice(8000, 8200)];
    assert.ok(Buffer.concat(found).equals(joined));
    // A key that exists keeps its bytes, whoever puts it.
    assert.is((await store.put(["b"], [pattern(9, 9)])).codes[0], 0);
    assert.is((await store.size(["b"])).codes[0], 500n);
  },

  "a sidecar that dies loses nothing that was acknowledged": async () => {
    await using cluster = await MooncakeCluster.start(installation!);
    await using store = await openStoreOn(cluster);
    const keys = Array.from({ length: 50 }, (_, i) => `kept ${i}`);
    const values = keys.map((_, i) => pattern(i, 10_000 + i));
    (await store.put(keys, values)).throwIfFailed();
    process.kill(store.sidecarPid!, "SIGKILL");
    await until("a new one runs", () => store.sidecarRestarts === 1 && store.sidecarPid !== undefined, 1_000);
    const read = (await store.get(keys)).throwIfFailed();
    for (const [i, value] of read.values.entries()) assert.equal(value, values[i]);
  },

  "a killed master: every call ends in time, and a new master is found": async () => {
    await using cluster = await MooncakeCluster.start(installation!);
    await using store = await openStoreOn(cluster, IMPATIENT);
    await store.put(["a"], [pattern(1, 100)]);
    await cluster.kill("master");
    const { codes } = await timed(6_000, store.exists(["a", "b"]));
    assert.ok(
      codes.every((code) => code === -900 || code === -901),
      `${codes}`,
    );
    const failed = await timed(1_000, store.put(["c"], [pattern(1, 100)], { deadlineMs: 500 }));
    assert.ok([-900, -901].includes(failed.codes[0]!));
    assert.is((await store.health({ deadlineMs: 500 })).code, 2);
    await cluster.startMaster();
    let stored = -1;
    // The owner mounts its segment again within about a second.
    for (let attempt = 0; attempt < 50 && stored !== 0; attempt++) {
      await sleep(100);
      stored = (await store.put(["again"], [pattern(2, 100)])).codes[0]!;
    }
    assert.is(stored, 0);
    assert.equal((await store.get(["again"])).values[0], pattern(2, 100));
  },

  "a frozen master: -901 in time": async () => {
    await using cluster = await MooncakeCluster.start(installation!);
    await using store = await openStoreOn(cluster, IMPATIENT);
    await cluster.signal("master", "SIGSTOP");
    assert.is((await timed(4_000, store.exists(["a"]))).codes[0], -901);
    assert.is((await timed(900, store.exists(["a"], { deadlineMs: 300 }))).codes[0], -901);
    await cluster.signal("master", "SIGCONT");
    assert.is((await store.exists(["a"])).codes[0], 0);
  },

  "an owner that is frozen or dead: no hang, and codes": async () => {
    await using cluster = await MooncakeCluster.start(installation!, { masterFlags: { client_ttl: 2 } });
    await using store = await openStoreOn(cluster, IMPATIENT);
    await using arena = await store.createArena(MIB);
    (await store.put(["a"], [pattern(1, 100_000)])).throwIfFailed();
    await cluster.signal("O", "SIGSTOP");
    const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 100_000n }]]);
    const frozen = await timed(5_000, store.getInto(["a"], row));
    assert.ok([-800n, -901n].includes(frozen.codes[0]!), `${frozen.codes}`);
    // A deadline with the caller's memory in use: the sidecar is replaced, and the call ends in time.
    const late = await timed(1_500, store.getInto(["a"], row, { deadlineMs: 300 }));
    // By then the owner may be given up, and the object with it.
    assert.ok([-901n, -704n].includes(late.codes[0]!), `${late.codes}`);
    await cluster.signal("O", "SIGCONT");
    await cluster.kill("O");
    const dead = await timed(5_000, store.getInto(["a"], row));
    assert.ok(dead.codes[0]! < 0n);
    await cluster.startOwner("P", 64 * MIB);
    let code = -1;
    for (let attempt = 0; attempt < 50 && code !== 0; attempt++) {
      await sleep(100);
      code = (await store.put([`new ${attempt}`], [pattern(3, 1000)])).codes[0]!;
    }
    assert.is(code, 0);
  },

  "a store that gives memory to the cluster": async () => {
    await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 0 });
    await using poor = await openStoreOn(cluster);
    assert.is((await poor.put(["a"], [pattern(1, 10)])).codes[0], -200);
    const owner = await openStoreOn(cluster, { globalSegmentSize: "64MiB" });
    assert.is((await poor.put(["a"], [pattern(1, 10)])).codes[0], 0);
    assert.equal((await owner.get(["a"])).values[0], pattern(1, 10));
    await owner.close();
    assert.is((await poor.exists(["a"])).codes[0], 0);
  },

  "a master that is not there is named within 5 s": async () => {
    const cluster = await MooncakeCluster.start(installation!, { segmentBytes: 0 });
    const address = cluster.masterAddress;
    // It accepts and never answers.
    await cluster.signal("master", "SIGSTOP");
    const before = holdings();
    const started = performance.now();
    let message = "";
    await openStoreOn(cluster).catch((error: Error) => {
      message = error.message;
    });
    assert.match(message, address);
    assert.ok(performance.now() - started < 5_500, `${performance.now() - started} ms`);
    await until(
      "everything is given back",
      () => holdings().arenas === 0 && holdings().children === before.children,
    );
    await cluster[Symbol.asyncDispose]();
  },
};

for (const [name, run] of Object.entries(cases)) if (installation) test(name, run);
if (!installation)
  test("without the wheel there is no cluster", () => {
    assert.is(installation, undefined);
  });

test.run();
