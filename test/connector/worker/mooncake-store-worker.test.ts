import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeStoreWorker } from "../../../src/connector/worker/mooncake-store-worker.js";
import { workerSettings } from "../../../src/connector/worker/worker-config.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import {
  hashes,
  load,
  MemoryStore,
  RANK,
  rank,
  results,
  save,
  step,
} from "../../../src/testing/connector/worker-harness.js";
import { rejects } from "../../store/helpers.js";

const none = {
  requests: [],
  preemptedReqIds: new Set<string>(),
} as unknown as MooncakeStoreConnectorMetadata;

/** A tensor whose blocks have gaps. */
const TENSOR = {
  address: 0x1000n,
  storageAddress: 0x1000n,
  storageBytes: 4096n,
  shape: [4, 2, 16, 8],
  strides: [1024, 8, 32, 1],
  elementSize: 1,
};

test("a lookup counts the blocks that every rank has", async () => {
  const engine = await rank({ tpSize: 2, tpRank: 0, numKvHeads: 2 });
  await step(engine, [save("a", 96, [[1, 2, 3, 4, 5, 6]])]);
  const { store, worker } = engine;
  for (const index of [0, 1, 2, 3, 5]) {
    const key = [...store.objects.keys()][index]!;
    store.objects.set(key.replace("tp_rank:0", "tp_rank:1"), new Uint8Array(1));
  }
  const { hitLength, limitedBy } = await worker.lookup(97, hashes(6));
  assert.is(hitLength, 64);
  assert.equal(limitedBy, [0]);
});

test("a hit of the whole prompt leaves the last block to compute", async () => {
  const engine = await rank();
  await step(engine, [save("a", 80, [[1, 2, 3, 4, 5]])]);
  assert.is((await engine.worker.lookup(81, hashes(5))).hitLength, 80);
  assert.is((await engine.worker.lookup(80, hashes(5))).hitLength, 64);
});

test("a lookup that the store does not answer is a miss that says why, and is counted", async () => {
  const engine = await rank();
  engine.store.faults.exists.push(new Error("nobody there"));
  const { hitLength, failure } = await engine.worker.lookup(48, hashes(3));
  assert.is(hitLength, 0);
  assert.is(failure!.reason, "store");
  const [record] = engine.worker.getKvConnectorStats()!.data.get("lookup_exists")!;
  assert.equal([record!.status, record!.numFailedKeys], ["error", 3]);
});

test("what a worker does is counted once", async () => {
  const engine = await rank();
  await step(engine, [save("a", 32, [[1, 2]])]);
  engine.store.faults.getInto.push({ 0: -704 });
  await step(engine, [load("b", 32, [[3, 4]], { hashBase: 97 })]);
  const rows = [...engine.worker.getKvConnectorStats()!.data].map(([operation, [row]]) => [
    operation,
    row!.numKeys,
    row!.numBytes,
    row!.status,
    row!.numFailedKeys,
  ]);
  assert.equal(rows, [
    ["save_exists", 2, 0, "ok", 0],
    ["save_put", 2, 128, "ok", 0],
    ["load_get", 2, 128, "partial_failure", 1],
  ]);
  assert.is(engine.worker.getKvConnectorStats(), null);
});

test("each storage is registered once, and unregistered when the worker closes", async () => {
  const engine = await rank({
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 16 } },
      { kvCacheSpec: { kind: "full", blockSize: 32 } },
    ],
  });
  assert.is(engine.store.registered.size, 1);
  await rejects(() => engine.worker.registerKvCaches([TENSOR], 4), "ERR_REQUEST", /registered already/);
  await engine.worker.close();
  assert.is(engine.store.registered.size, 0);
  assert.throws(() => engine.worker.waitForSave({ requests: [save("a", 16, [[1]])] } as never), /closed/);
});

test("of two registrations at once one is refused, and each storage is registered once", async () => {
  const store = new MemoryStore(new Uint8Array(4096), 0x1000n);
  let registrations = 0;
  const { registerBuffer } = store;
  store.registerBuffer = (...args) => {
    registrations++;
    return registerBuffer.apply(store, args);
  };
  const worker = new MooncakeStoreWorker({ config: RANK, store });
  const tensor = { ...TENSOR, shape: [4, 1, 1, 64], strides: [64, 64, 64, 1] };
  const first = worker.registerKvCaches([tensor], 4);
  await rejects(() => worker.registerKvCaches([tensor], 4), "ERR_REQUEST", /just being registered/);
  await first;
  assert.equal([registrations, worker.canSave], [1, true]);
  await worker.close();
});

test("a worker that is closed while it registers has nothing registered", async () => {
  const store = new MemoryStore(new Uint8Array(4096), 0x1000n);
  const worker = new MooncakeStoreWorker({ config: RANK, store });
  const tensor = { ...TENSOR, shape: [4, 1, 1, 64], strides: [64, 64, 64, 1] };
  const registration = worker.registerKvCaches([tensor], 4);
  await worker.close();
  await rejects(() => registration, "ERR_REQUEST", /closed/);
  assert.equal([store.registered.size, worker.canSave], [0, false]);
});

test("of a step with a job without an id no job begins", async () => {
  const engine = await rank();
  const jobs = [save("a", 16, [[1]]), save("b", 16, [[2]], { storeJobId: null })];
  assert.throws(() => engine.worker.waitForSave({ requests: jobs } as never), /b has no storeJobId/);
  await engine.worker.drained();
  assert.equal(engine.store.calls, []);
  assert.is(engine.worker.buildConnectorWorkerMeta(), null);
});

test("a job that is handed in twice runs and is reported once", async () => {
  const engine = await rank();
  const job = save("a", 16, [[1]]);
  assert.equal((await step(engine, [job, job])).completed, [[job.storeJobId!, 1]]);
});

test("a tensor that no layout can describe leaves nothing registered", async () => {
  const store = new MemoryStore(new Uint8Array(4096), 0x1000n);
  const worker = new MooncakeStoreWorker({ config: RANK, store });
  await rejects(() => worker.registerKvCaches([TENSOR], 3), "ERR_LAYOUT", /multiple/);
  await rejects(() => worker.registerKvCaches([TENSOR], 4), "ERR_LAYOUT", /dense/);
  assert.is(store.registered.size, 0);
  assert.not(worker.canSave);
});

test("a memory that the store refuses is warned of", async () => {
  const warnings: string[] = [];
  const store = new MemoryStore(new Uint8Array(32 * 64), 0x7f00_0000_0000n);
  store.registerBuffer = async () => -600;
  await rank({}, { store, logger: { warn: (message) => warnings.push(message) } });
  assert.equal(warnings, ["the store does not accept a memory region"]);
});

test("jobs before registerKvCaches are refused with what to do", () => {
  const worker = new MooncakeStoreWorker({ config: RANK, store: new MemoryStore(new Uint8Array(1), 0n) });
  assert.throws(
    () => worker.waitForSave({ requests: [save("a", 16, [[1]])] } as never),
    /call registerKvCaches first/,
  );
  assert.throws(
    () => worker.startLoadKv({ requests: [load("a", 16, [[1]])] } as never),
    /call registerKvCaches first/,
  );
});

test("consumers load and don't save; capacity-only instances do neither", async () => {
  const consumer = await rank({ kvRole: "kv_consumer" });
  assert.not(consumer.worker.canSave);
  await step(consumer, [save("a", 16, [[1]])]);
  assert.equal(consumer.store.calls, []);
  assert.is(consumer.worker.buildConnectorWorkerMeta(), null);
  assert.is(consumer.worker.snapshot(), undefined);
  const idle = await rank({ kvRole: "kv_consumer", extraConfig: { enable_lookup: false } });
  await step(idle, [load("a", 16, [[1]])]);
  assert.is((await idle.worker.lookup(48, hashes(3))).hitLength, 0);
  assert.equal(idle.store.calls, []);
  assert.is(idle.store.registered.size, 0);
});

test("load_async off is refused when a load begins, after the loads have", async () => {
  const engine = await rank({ extraConfig: { load_async: false } });
  assert.throws(
    () => engine.worker.startLoadKv(none),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && /load_async/.test(error.message),
  );
});

test("emptying the store waits for the saves under way", async () => {
  const engine = await rank();
  engine.worker.waitForSave({
    requests: [save("a", 16, [[1]])],
  } as unknown as MooncakeStoreConnectorMetadata);
  assert.is(await engine.worker.reset(), true);
  assert.is(engine.store.objects.size, 0);
  engine.store.removeAll = async () => -900;
  assert.is(await engine.worker.reset(), false);
  engine.store.removeAll = () => Promise.reject(new Error("nobody there"));
  assert.is(await engine.worker.reset(), false);
});

test("a worker without events reports none; with events it always reports", async () => {
  const silent = await rank();
  assert.is(silent.worker.getKvConnectorKvCacheEvents(), null);
  const loud = await rank({ enableKvEvents: true, tpSize: 4, numKvHeads: 2 });
  const report = loud.worker.getKvConnectorKvCacheEvents()!;
  assert.equal([report.numWorkers, report.hasEvents()], [1, false]);
});

test("closing twice is fine, and a worker can be used with await using", async () => {
  const engine = await rank();
  await engine.worker.close();
  await engine.worker[Symbol.asyncDispose]();
  assert.equal(results(engine.worker, none).completed, []);
});

test("ranks and namespaces follow from the sizes", () => {
  const settings = workerSettings({ ...RANK, tpSize: 4, tpRank: 3, numKvHeads: 2, ppSize: 2, rank: 7 });
  assert.equal([settings.ppRank, settings.groups!.replicationFactors], [1, [2]]);
  assert.equal(settings.groups!.lookupKeyPrefixes[0], [
    "test-model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0",
    "test-model@tp_rank:0@pcp0@dcp0@pp_rank:1@group:0",
    "test-model@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0",
    "test-model@tp_rank:1@pcp0@dcp0@pp_rank:1@group:0",
  ]);
  const bad = (config: object, message: RegExp) =>
    assert.throws(
      () => workerSettings({ ...RANK, ...config }),
      (error: unknown) => isMooncakeKvError(error) && message.test(error.message),
    );
  bad({ tpSize: 2, tpRank: 2 }, /tpRank is 2.*below the size, 2/);
  bad({ numKvHeads: 0 }, /numKvHeads is 0/);
  bad({ extraConfig: { custom_mem_pool: "NVLINK" } }, /custom_mem_pool NVLINK/);
});

test.run();
