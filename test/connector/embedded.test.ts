import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeStoreScheduler } from "../../src/connector/scheduler/mooncake-store-scheduler.js";
import { PendingLookups } from "../../src/connector/scheduler/pending-lookups.js";
import type { StoreRequest } from "../../src/connector/scheduler/store-request.js";
import { MooncakeStoreWorker } from "../../src/connector/worker/mooncake-store-worker.js";
import { BlockHasher } from "../../src/hash/block-hasher.js";
import { kvCacheBytes, kvCacheTensors } from "../../src/layout/kv-cache-tensors.js";
import { openStore } from "../../src/store/index.js";
import { CountingPool, FULL, output } from "../../src/testing/connector/scheduler-harness.js";
import { RANK, results } from "../../src/testing/connector/worker-harness.js";

// The whole connector over a real store: what one request computed, the next one loads.

const SHAPE = {
  layout: "LBNHC",
  numLayers: 2,
  numBlocks: 16,
  numHeads: 2,
  blockSize: 16,
  contentSize: 8,
  elementSize: 2,
} as const;

async function engine() {
  const store = await openStore("embedded:?capacity=4MiB");
  const arena = await store.createArena(kvCacheBytes(SHAPE));
  const worker = new MooncakeStoreWorker({ config: RANK, store, registerMemory: false });
  await worker.registerKvCaches(kvCacheTensors(SHAPE, arena.baseAddress), SHAPE.numBlocks);
  const lookups = new PendingLookups(worker);
  const pool = new CountingPool();
  const scheduler = new MooncakeStoreScheduler({ config: FULL, lookupClient: lookups, blockPool: pool });
  const blockBytes = arena.size / SHAPE.numLayers / SHAPE.numBlocks;
  const block = (id: number, layer: number) => {
    const start = (layer * SHAPE.numBlocks + id) * blockBytes;
    return arena.bytes.subarray(start, start + blockBytes);
  };
  const run = async (step: Parameters<typeof output>[0]) => {
    const meta = scheduler.buildConnectorMeta(output(step));
    worker.startLoadKv(meta);
    worker.waitForSave(meta);
    await worker.drained();
    const result = results(worker, meta, step.finished);
    scheduler.updateConnectorOutput({ completedSaves: new Map(result.completed) });
    return result;
  };
  const close = async () => {
    await worker.close();
    await arena.close();
    await store.close();
  };
  return { store, worker, lookups, pool, scheduler, block, run, close };
}

const hasher = new BlockHasher({ blockSize: 16 });

function request(requestId: string, tokens: readonly number[]): StoreRequest {
  return {
    requestId,
    numPromptTokens: tokens.length,
    numTokens: tokens.length,
    numComputedTokens: 0,
    blockHashes: [...hasher.hash(tokens)],
    allTokenIds: tokens,
  };
}

const PROMPT = Array.from({ length: 50 }, (_, index) => index * 3);

async function savedFirst() {
  const made = await engine();
  const table = [[1, 2, 3, 4]];
  for (const id of table[0]!) for (const layer of [0, 1]) made.block(id, layer).fill(id * 10 + layer);
  made.scheduler.updateStateAfterAlloc(request("a", PROMPT), table, 0);
  await made.run({
    new: [{ reqId: "a", blockIds: table, numComputedTokens: 0 }],
    scheduled: { a: 50 },
    tables: { a: table },
  });
  assert.is(made.pool.references.size, 0, "the blocks were given back");
  return made;
}

async function lookedUp({ scheduler, lookups }: Awaited<ReturnType<typeof engine>>, next: StoreRequest) {
  assert.equal(scheduler.getNumNewMatchedTokens(next, 0), [null, false]);
  await lookups.settled();
  return scheduler.getNumNewMatchedTokens(next, 0);
}

test("a second turn loads what the first one computed", async () => {
  const made = await savedFirst();
  const next = request("b", [...PROMPT, 1000, 1001, 1002]);
  assert.equal(await lookedUp(made, next), [48, true]);
  made.scheduler.updateStateAfterAlloc(next, [[7, 8, 9]], 48);
  assert.equal(await made.run({}), { finished: ["b"], failed: [], invalid: [], completed: [] });
  for (const [index, id] of [7, 8, 9].entries())
    for (const layer of [0, 1])
      assert.ok(
        made.block(id, layer).every((byte) => byte === (index + 1) * 10 + layer),
        `block ${id}, layer ${layer}`,
      );
  await made.close();
});

test("a block that is gone between lookup and load is reported, the others are there", async () => {
  const made = await savedFirst();
  const next = request("b", PROMPT);
  assert.equal(await lookedUp(made, next), [48, true]);
  const prefix = made.worker.settings.groups!.lookupKeyPrefixes[0]![0]!;
  const gone = `${prefix}@${Buffer.from(next.blockHashes[1]!).toString("hex")}`;
  (await made.store.remove([gone], { force: true })).throwIfFailed();
  made.scheduler.updateStateAfterAlloc(next, [[7, 8, 9]], 48);
  assert.equal(await made.run({}), { finished: ["b"], failed: [], invalid: [8], completed: [] });
  assert.is(made.block(9, 0)[0], 30);
  await made.close();
});

test("an emptied store has nothing to offer", async () => {
  const made = await savedFirst();
  assert.is(await made.scheduler.resetCache(), true);
  assert.equal(await lookedUp(made, request("b", PROMPT)), [0, false]);
  await made.close();
});

test.run();
