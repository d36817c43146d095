import { test } from "uvu";
import * as assert from "uvu/assert";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import {
  BLOCK_BYTES,
  hashIndexes,
  load,
  type MemoryStore,
  puts,
  type Rank,
  rank,
  save,
  step,
} from "../../../src/testing/connector/worker-harness.js";

const got = ({ store }: Rank) => hashIndexes(store, "getInto");

/** Blocks 1 to `count`, filled with their number and stored as request a. */
async function stored(count: number, engine: Rank): Promise<void> {
  const table = Array.from({ length: count }, (_, index) => index + 1);
  for (const blockId of table) engine.block(blockId).fill(blockId);
  await step(engine, [save("a", count * 16, [table])]);
}

test("a hit is loaded into the blocks of the request, from where the local hit ends", async () => {
  const engine = await rank();
  await stored(3, engine);
  const result = await step(engine, [load("b", 48, [[11, 12, 13]], { hashBase: 97, local: 20 })]);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [], completed: [] });
  assert.equal(got(engine), [[1, 2]]);
  assert.equal(engine.block(12), new Uint8Array(BLOCK_BYTES).fill(2));
  assert.equal(engine.block(13), new Uint8Array(BLOCK_BYTES).fill(3));
  assert.equal(engine.block(11), new Uint8Array(BLOCK_BYTES), "the local part is left alone");
});

test("lost blocks are reported, whatever rank asks first for what", async () => {
  for (const [tpRank, invalid] of [
    [0, [12, 13]],
    [1, [11, 13]],
    [2, [11, 12]],
  ] as const) {
    const engine = await rank({ tpSize: 4, tpRank, numKvHeads: 4 });
    await stored(3, engine);
    engine.store.faults.getInto.push({ 1: -704, 2: -707 });
    const result = await step(engine, [load("b", 48, [[11, 12, 13]], { hashBase: 97 })]);
    assert.equal([result.finished, result.invalid], [["b"], invalid], `rank ${tpRank}`);
  }
});

test("a get that rejects loses every block of it, and the request is reported", async () => {
  const engine = await rank();
  await stored(3, engine);
  engine.store.faults.getInto.push(new Error("connection lost"));
  const result = await step(engine, [load("b", 48, [[11, 12, 13]], { hashBase: 97 })]);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [11, 12, 13], completed: [] });
});

test("with several groups block ids are not unique: the request fails", async () => {
  const engine = await rank({
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 16 } },
      { kvCacheSpec: { kind: "full", blockSize: 16, headSize: 16 } },
    ],
  });
  await step(engine, [
    save("a", 32, [
      [1, 2],
      [3, 4],
    ]),
  ]);
  engine.store.faults.getInto.push({ 3: -704 });
  const result = await step(engine, [
    load(
      "b",
      32,
      [
        [11, 12],
        [13, 14],
      ],
      { hashBase: 97 },
    ),
  ]);
  assert.equal(result, { finished: ["b"], failed: ["b"], invalid: [], completed: [] });
});

test("a load of nothing is reported", async () => {
  const engine = await rank();
  const result = await step(engine, [load("b", 32, [[11, 12]], { local: 32 })]);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [], completed: [] });
  assert.equal(engine.store.calls, []);
});

test("a load whose blocks or hashes do not reach far enough fails as a whole", async () => {
  const engine = await rank();
  await stored(3, engine);
  const result = await step(engine, [load("b", 48, [[11, 12]], { hashBase: 97, local: 16 })]);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [12], completed: [] });
});

test("only the window is loaded, and the tail under the hash that the lookup names", async () => {
  const window = await rank({
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 16 } },
      { kvCacheSpec: { kind: "swa", blockSize: 16, slidingWindow: 32 } },
    ],
    retentionInterval: null,
  });
  const tables = [
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ];
  await step(window, [save("a", 64, tables)]);
  await step(window, [load("b", 64, tables, { hashBase: 97 })]);
  assert.equal(got(window), [[0, 1, 2, 3, 2, 3]]);

  const hybrid = await rank({
    prefixMatchUnit: 4,
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 16 } },
      { kvCacheSpec: { kind: "mamba", blockSize: 16, mambaCacheMode: "align" } },
    ],
  });
  const more = { hashBlockSize: 4, boundaryPuts: puts([1, 9, 24], [0, 2, 28]) };
  await step(hybrid, [
    save(
      "a",
      32,
      [
        [1, 2],
        [5, 6],
      ],
      more,
    ),
  ]);
  const tails = [
    [0, 28],
    [1, 24],
  ] as const;
  await step(hybrid, [
    load(
      "b",
      24,
      [
        [11, 12],
        [15, 16],
      ],
      { hashBase: 97, hashBlockSize: 4, tails },
    ),
  ]);
  assert.equal(got(hybrid), [[3, 6, 5]]);
});

/** A rank whose loads pass a staging buffer of `budget` bytes. */
async function staged(budget: number, config: Parameters<typeof rank>[0] = {}): Promise<Rank> {
  const engine = await rank(config, { diskOffloadBufferBudgetBytes: budget });
  await stored(4, engine);
  return engine;
}

test("loads from disk are split to fit the buffer", async () => {
  for (const [budget, batches] of [
    [65536, [[0, 1, 2, 3]]],
    [
      27307,
      [
        [0, 1],
        [2, 3],
      ],
    ],
    [24576, [[0], [1], [2], [3]]],
  ] as const) {
    const engine = await staged(budget);
    await step(engine, [load("b", 64, [[11, 12, 13, 14]], { hashBase: 97 })]);
    assert.equal(got(engine), batches);
  }
});

test("a failure in one part does not hide what the others lost or read", async () => {
  const engine = await staged(27307, { tpSize: 4, tpRank: 3, numKvHeads: 4 });
  engine.store.faults.getInto.push({ 0: -704 });
  const result = await step(engine, [load("b", 64, [[11, 12, 13, 14]], { hashBase: 97 })]);
  assert.equal(got(engine), [
    [3, 0],
    [1, 2],
  ]);
  assert.equal(result.invalid, [14], "blocks before the failure are there although they were read after it");
  assert.equal(engine.block(12)[0], 2);
});

test("after a call that fails the rest counts as lost", async () => {
  const engine = await staged(24576);
  engine.store.faults.getInto.push({}, new Error("connection lost"));
  const result = await step(engine, [load("b", 64, [[11, 12, 13, 14]], { hashBase: 97 })]);
  assert.equal(got(engine), [[0], [1]]);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [12, 13, 14], completed: [] });
});

test("an object above the whole buffer can't be loaded", async () => {
  const engine = await staged(12287, { tpSize: 4, tpRank: 2, numKvHeads: 4 });
  const result = await step(engine, [load("b", 48, [[11, 12, 13]], { hashBase: 97 })]);
  assert.equal(got(engine), []);
  assert.equal(result, { finished: ["b"], failed: [], invalid: [11, 12, 13], completed: [] });
});

test("a full queue loses the load, not the request", async () => {
  const engine = await rank({}, { maxQueuedLoads: 1 });
  await stored(2, engine);
  const result = await step(engine, [
    load("b", 32, [[11, 12]], { hashBase: 97 }),
    load("c", 32, [[13, 14]], { hashBase: 97 }),
  ]);
  assert.equal(result, { finished: ["b", "c"], failed: [], invalid: [13, 14], completed: [] });
});

test("several loads run at a time, no more than is allowed", async () => {
  const engine = await rank({}, { recvThreads: 2 });
  await stored(1, engine);
  let open: () => void = () => {};
  const { store } = engine;
  store.gate = new Promise((resolve) => {
    open = resolve;
  });
  const jobs = ["b", "c", "d"].map((reqId) => load(reqId, 16, [[11]], { hashBase: 97 }));
  engine.worker.startLoadKv({ requests: jobs } as unknown as MooncakeStoreConnectorMetadata);
  await Promise.resolve();
  assert.is(got(engine).length, 2);
  open();
  await engine.worker.drained();
  assert.is(got(engine).length, 3);
});

test("the logger is told where loaded objects lay, where that is asked for", async () => {
  const told: Readonly<Record<string, unknown>>[] = [];
  const logger = {
    warn: () => {},
    info: (_: string, details: Readonly<Record<string, unknown>>) => told.push(details),
  };
  const engine = await rank({}, { tierLog: true, logger });
  await stored(2, engine);
  await step(engine, [load("b", 32, [[11, 12]], { hashBase: 97 })]);
  assert.equal(told[0]!["keysByTier"], { memory: 2, disk: 0, unknown: 0 });
  assert.equal(told[0]!["bytesByTier"], { memory: 128, disk: 0, unknown: 0 });
});

test("a job that loads nothing is no load", async () => {
  const engine = await rank();
  const job = { ...load("b", 32, [[11, 12]]), loadSpec: null };
  engine.worker.startLoadKv({ requests: [job] } as unknown as MooncakeStoreConnectorMetadata);
  assert.equal((engine.store as MemoryStore).calls, []);
});

test.run();
