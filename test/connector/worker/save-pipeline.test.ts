import { test } from "uvu";
import * as assert from "uvu/assert";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import {
  hashes,
  hashIndexes,
  puts,
  type Rank,
  rank,
  results,
  save,
  step,
} from "../../../src/testing/connector/worker-harness.js";

const HYBRID = {
  prefixMatchUnit: 4,
  kvCacheGroups: [
    { kvCacheSpec: { kind: "full", blockSize: 16 } },
    { kvCacheSpec: { kind: "mamba", blockSize: 16, mambaCacheMode: "align" } },
  ],
} as const;

const put = ({ store }: Rank) => hashIndexes(store, "putFrom");
const asked = ({ store }: Rank) => hashIndexes(store, "exists");

test("only what is missing is put, and the next job goes on behind it", async () => {
  const engine = await rank();
  engine.block(2).fill(7);
  const first = await step(engine, [save("a", 48, [[1, 2, 3]])]);
  assert.is(first.completed.length, 1);
  await step(engine, [save("a", 80, [[1, 2, 3, 4, 5]])]);
  assert.equal(put(engine), [
    [0, 1, 2],
    [3, 4],
  ]);
  assert.equal(engine.store.objects.get([...engine.store.objects.keys()][1]!), new Uint8Array(64).fill(7));
  const other = save("b", 48, [[7, 8, 9]], { hashBase: 97 });
  await step(engine, [other]);
  assert.is(put(engine).length, 2, "all blocks exist");
});

test("tokens that are no whole scheduler block are left for later", async () => {
  const engine = await rank({
    blockSize: 64,
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 16 } },
      { kvCacheSpec: { kind: "full", blockSize: 64 } },
    ],
  });
  await step(engine, [save("a", 48, [[1, 2, 3], [4]])]);
  assert.equal(engine.store.calls, []);
  await step(engine, [save("a", 80, [[1, 2, 3, 4, 5], [6]])]);
  assert.equal(put(engine), [[0, 1, 2, 3, 3]]);
});

test("a sliding window is stored where a hit may end", async () => {
  const engine = await rank({
    blockSize: 8,
    retentionInterval: null,
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 32 } },
      { kvCacheSpec: { kind: "swa", blockSize: 8, slidingWindow: 8 } },
    ],
  });
  const tables = [
    [1, 2],
    [1, 2, 3, 4, 5, 6, 7, 8],
  ];
  await step(engine, [save("a", 64, tables, { hashBlockSize: 8 })]);
  assert.equal(put(engine), [[3, 7, 3, 7]]);
});

test("no room: the request pauses until any put succeeds, then everything from the start is tried again", async () => {
  const engine = await rank();
  engine.store.faults.putFrom.push({ 2: -200, 3: -200 });
  await step(engine, [save("a", 64, [[1, 2, 3, 4]])]);
  assert.equal(engine.worker.snapshot()!.savedOffsets.get("a"), undefined, "nothing counts as saved");
  assert.ok(engine.worker.snapshot()!.pressure);
  const paused = await step(engine, [save("a", 80, [[1, 2, 3, 4, 5]])]);
  assert.is(paused.completed.length, 1, "a paused job is reported all the same");
  assert.is(put(engine).length, 1);
  await step(engine, [save("b", 16, [[9]])]);
  assert.not(engine.worker.snapshot()!.pressure);
  await step(engine, [save("a", 80, [[1, 2, 3, 4, 5]])]);
  assert.equal(put(engine), [[0, 1, 2, 3], [0], [2, 3, 4]]);
  assert.equal(asked(engine).at(-1), [0, 1, 2, 3, 4]);
});

test("that everything exists is no sign of room", async () => {
  const engine = await rank();
  await step(engine, [save("b", 16, [[9]])]);
  engine.store.faults.putFrom.push({ 0: -200 });
  await step(engine, [save("a", 16, [[1]])]);
  await step(engine, [save("c", 16, [[9]], { hashBase: 98 })]);
  assert.ok(engine.worker.snapshot()!.pressure);
});

test("another failure does not pause, and the same range is tried again", async () => {
  const engine = await rank();
  engine.store.faults.putFrom.push({ 0: -500 });
  await step(engine, [save("a", 32, [[1, 2]])]);
  assert.not(engine.worker.snapshot()!.pressure);
  await step(engine, [save("a", 48, [[1, 2, 3]])]);
  assert.equal(put(engine), [
    [0, 1],
    [0, 2],
  ]);
});

for (const call of ["exists", "putFrom"] as const)
  test(`${call} rejects: the job is reported, its blocks can be given back, and it is tried again`, async () => {
    const warnings: string[] = [];
    const engine = await rank({}, { logger: { warn: (message) => warnings.push(message) } });
    engine.store.faults[call].push(new Error("connection lost"));
    const job = save("a", 32, [[1, 2]]);
    assert.equal((await step(engine, [job])).completed, [[job.storeJobId!, 1]]);
    assert.is(warnings.length, 1);
    await step(engine, [save("a", 32, [[1, 2]])]);
    assert.is(engine.store.objects.size, 2);
  });

test("ranks with the same bytes take turns; the turn begins elsewhere in every group", async () => {
  const stored: number[][] = [];
  for (const tpRank of [0, 1]) {
    const engine = await rank({
      tpSize: 4,
      tpRank,
      numKvHeads: 2,
      kvCacheGroups: [
        { kvCacheSpec: { kind: "full", blockSize: 16 } },
        { kvCacheSpec: { kind: "full", blockSize: 16, headSize: 16 } },
      ],
    });
    await step(engine, [
      save("a", 64, [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ]),
    ]);
    stored.push(put(engine)[0]!);
  }
  assert.equal(stored, [
    [0, 2, 1, 3],
    [1, 3, 0, 2],
  ]);
});

test("a block without a source stays due: the job that has it stores it", async () => {
  const engine = await rank();
  engine.block(2).fill(5);
  await step(engine, [save("a", 64, [[1, 0, 3]])]);
  assert.equal(put(engine), [[0, 2]]);
  await step(engine, [save("a", 64, [[1, 0, 3, 4]])]);
  await step(engine, [save("a", 80, [[1, 2, 3, 4, 5]])]);
  assert.equal(put(engine), [[0, 2], [3], [1, 4]]);
  const { hitLength } = await engine.worker.lookup(81, hashes(5));
  assert.is(hitLength, 80, "no hole is left");
});

test("a due block whose put fails is tried again", async () => {
  const engine = await rank();
  await step(engine, [save("a", 32, [[1, 0]])]);
  engine.store.faults.putFrom.push({ 0: -500 });
  await step(engine, [save("a", 48, [[1, 2, 3]])]);
  await step(engine, [save("a", 48, [[1, 2, 3]])]);
  assert.equal(put(engine), [[0], [1, 2], [1]]);
});

test("a preemption starts anew, and a job left over from before touches nothing", async () => {
  const engine = await rank();
  const { worker, store } = engine;
  let open: () => void = () => {};
  store.gate = new Promise((resolve) => {
    open = resolve;
  });
  const jobs = [save("a", 16, [[1]]), save("a", 32, [[1, 2]])];
  const preempted = { requests: jobs, preemptedReqIds: new Set(["a"]) };
  worker.waitForSave(preempted as unknown as MooncakeStoreConnectorMetadata);
  await Promise.resolve();
  worker.getTransferResults([], preempted);
  open();
  store.gate = undefined;
  await worker.drained();
  assert.equal(
    results(worker, { preemptedReqIds: new Set() }).completed.map(([job]) => job),
    jobs.map(({ storeJobId }) => storeJobId),
  );
  assert.equal(put(engine), [[0]], "the second job was not live any more");
  assert.equal([...worker.snapshot()!.savedOffsets], []);
});

test("a finished request is forgotten once its last job has run", async () => {
  const engine = await rank();
  const { worker, store } = engine;
  let open: () => void = () => {};
  store.gate = new Promise((resolve) => {
    open = resolve;
  });
  const jobs = [save("a", 16, [[1]]), save("a", 32, [[1, 2]])];
  worker.waitForSave({ requests: jobs } as unknown as MooncakeStoreConnectorMetadata);
  results(worker, { preemptedReqIds: new Set() }, ["a"]);
  assert.equal(worker.snapshot()!.awaitingRetire, ["a"]);
  open();
  await worker.drained();
  assert.equal(put(engine), [[0], [1]], "the second job went on where the first ended");
  results(worker, { preemptedReqIds: new Set() });
  assert.equal([...worker.snapshot()!.liveJobs], []);
});

const NOTHING = {
  savedOffsets: new Map(),
  liveJobs: new Map(),
  pressure: false,
  pausedRequests: [],
  awaitingRetire: [],
};

test("nothing is remembered of requests that have ended, however they ended", async () => {
  const engine = await rank();
  const table = [[1, 2, 3]];
  await step(engine, [save("whole", 48, table)], { finished: ["whole"] });
  await step(engine, [save("later", 48, table)]);
  engine.store.faults.exists.push(new Error("the store is away"));
  await step(engine, [save("failed", 48, table)], { finished: ["later", "failed"] });
  await step(engine, [save("preempted", 48, table)]);
  await step(engine, [], { preempted: ["preempted"] });
  await step(engine, [save("empty", 7, table)], { finished: ["empty"] });
  await step(engine, [], { finished: ["never seen"] });
  assert.equal(engine.worker.snapshot(), NOTHING);
});

test("nothing is remembered of a request that pauses when it ends", async () => {
  const engine = await rank();
  engine.store.faults.putFrom.push({ 0: -200 });
  await step(engine, [save("a", 48, [[1, 2, 3]])]);
  assert.equal(engine.worker.snapshot()!.pausedRequests, ["a"]);
  await step(engine, [], { finished: ["a"] });
  assert.equal(engine.worker.snapshot(), { ...NOTHING, pressure: true });
});

test("a thousand requests leave nothing behind", async () => {
  const engine = await rank();
  for (let i = 0; i < 1000; i++) {
    const reqId = `request ${i}`;
    await step(engine, [save(reqId, 16, [[1 + (i % 30)]], { hashBase: i & 255 })], { finished: [reqId] });
  }
  assert.equal(engine.worker.snapshot(), NOTHING);
});

test("a full queue stores nothing, but reports", async () => {
  const engine = await rank({}, { maxQueuedSaves: 1 });
  const jobs = [save("a", 16, [[1]]), save("b", 16, [[2]]), save("c", 16, [[3]])];
  const { completed } = await step(engine, jobs);
  assert.is(completed.length, 3);
  assert.is(engine.store.objects.size, 1);
});

test("the fence is passed before every put, never before a question", async () => {
  const engine = await rank();
  const order: string[] = [];
  const { store, worker } = engine;
  for (const method of ["exists", "putFrom"] as const) {
    const original = store[method].bind(store) as (...args: unknown[]) => Promise<never>;
    store[method] = (...args: unknown[]) => {
      order.push(method);
      return original(...args);
    };
  }
  const jobs = [save("a", 16, [[1]])];
  worker.waitForSave({ requests: jobs } as unknown as MooncakeStoreConnectorMetadata, () => {
    order.push("fence");
  });
  await worker.drained();
  assert.equal(order, ["exists", "fence", "putFrom"]);
});

test("Mamba blocks are stored only where they are handed over, from the block that is handed over", async () => {
  const engine = await rank(HYBRID);
  engine.block(9, 1).fill(3);
  await step(engine, [save("a", 16, [[1], [5]], { hashBlockSize: 4, boundaryPuts: puts([1, 9, 16]) })]);
  const keys = [...engine.store.objects.keys()];
  assert.equal(
    keys.map((key) => /@group:(\d)@/.exec(key)![1]),
    ["1", "0"],
  );
  assert.equal(engine.store.objects.get(keys[0]!)!.subarray(64), new Uint8Array(64).fill(3));
});

test("a partial tail is stored under the hash of its boundary, one block a group", async () => {
  const engine = await rank(HYBRID);
  const job = save("a", 0, [[1], [2]], {
    blockHashes: hashes(3),
    boundaryPuts: puts([0, 1, 12], [1, 7, 12]),
  });
  await step(engine, [job]);
  assert.equal(put(engine), [[2, 2]]);
  const { hitLength, tailKeyBoundaries } = await engine.worker.lookup(13, hashes(3));
  assert.is(hitLength, 12);
  assert.equal(
    tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]),
    [
      [0, 12],
      [1, 12],
    ],
  );
});

test("a boundary put that fails ends the job; odd ones are passed over or refused", async () => {
  const engine = await rank(HYBRID);
  engine.store.faults.putFrom.push({ 0: -200 });
  const more = { hashBlockSize: 4, boundaryPuts: puts([1, 9, 16]) };
  await step(engine, [save("a", 16, [[1], [5]], more)]);
  assert.is(engine.store.objects.size, 0);
  assert.ok(engine.worker.snapshot()!.pressure);
  await step(engine, [save("b", 16, [[1], [5]], { hashBlockSize: 4 })]);
  const odd = puts([1, 5, 0], [1, 0, 16], [1, 6, 144]);
  await step(engine, [save("a", 16, [[1], [5]], { hashBlockSize: 4, boundaryPuts: odd })]);
  assert.is(engine.store.objects.size, 2, "only the normal saves");
  for (const boundaryPuts of [puts([1, 5, 5]), puts([7, 5, 16])]) {
    const job = save("c", 16, [[1], [5]], { hashBlockSize: 4, boundaryPuts });
    assert.equal((await step(engine, [job])).completed, [[job.storeJobId!, 1]]);
  }
});

test("objects are put with the group of their chunk, where that is asked for", async () => {
  const config = { extraConfig: { enable_group_semantics: " TRUE ", cache_prefix: "p" } };
  const engine = await rank(config, { preferredSegment: "seg-1" });
  await step(engine, [save("a", 16, [[1]])]);
  const { options } = engine.store.calls.at(-1)!;
  assert.equal(options!.preferredSegments, ["seg-1"]);
  assert.match(options!.groupIds![0]!, /^vllm-mooncake-store:p@test-model@[0-9a-f]+$/);
  const unaware = await rank(config, { supportsGroupIds: false });
  await step(unaware, [save("a", 16, [[1]])]);
  assert.is(unaware.store.calls.at(-1)!.options!.groupIds, undefined);
});

test("a job without an id is refused: nobody could be told of its end", async () => {
  const engine = await rank();
  const job = save("a", 16, [[1]], { storeJobId: null });
  assert.throws(
    () => engine.worker.waitForSave({ requests: [job] } as unknown as MooncakeStoreConnectorMetadata),
    /no storeJobId/,
  );
});

test("events: one a block that was stored, with its parent and its tokens", async () => {
  const engine = await rank({ enableKvEvents: true });
  await step(engine, [save("b", 16, [[9]], { hashBase: 97 })]);
  engine.worker.getKvEvents();
  const tokenIds = Array.from({ length: 48 }, (_, index) => index);
  engine.store.faults.putFrom.push({ 1: -500 });
  await step(engine, [save("a", 48, [[1, 2, 3]], { tokenIds })]);
  const events = engine.worker.getKvEvents()!;
  assert.equal(
    events.map(({ tokenIds: tokens, blockSize, medium, groupIdx }) => [
      tokens[0],
      blockSize,
      medium,
      groupIdx,
    ]),
    [[16, 16, "cpu", 0]],
    "neither what existed nor what failed",
  );
  assert.ok(events[0]!.parentBlockHash !== null);
  const more = Array.from({ length: 16 }, (_, index) => 48 + index);
  await step(engine, [save("a", 64, [[1, 2, 3, 4]], { tokenIds: more, tokenIdsStart: 48 })]);
  assert.equal(
    engine.worker.getKvEvents()!.map(({ tokenIds: tokens }) => tokens[0]),
    [32, 48],
    "a retry knows the tokens of the job that failed",
  );
});

test("events carry the group's block size, and the hash that is in the key", async () => {
  const engine = await rank({
    enableKvEvents: true,
    blockSize: 64,
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 256 } },
      { kvCacheSpec: { kind: "full", blockSize: 64 } },
    ],
  });
  await step(engine, [
    save(
      "a",
      512,
      [
        [1, 2],
        [1, 2, 3, 4, 5, 6, 7, 8],
      ],
      { hashBlockSize: 64 },
    ),
  ]);
  const events = engine.worker.getKvEvents()!;
  const second = events.filter(({ groupIdx }) => groupIdx === 0)[1]!;
  assert.is(second.blockSize, 256);
  const key = engine.store.calls.at(-1)!.keys[1]!;
  assert.is([...second.blockHashes][0], BigInt(`0x${key.slice(key.lastIndexOf("@") + 1)}`));
});

test.run();
