import { test } from "uvu";
import * as assert from "uvu/assert";
import { type ErrorCode, isMooncakeKvError } from "../../../src/errors.js";
import {
  FULL,
  HYBRID,
  output,
  request,
  scheduler,
} from "../../../src/testing/connector/scheduler-harness.js";

function throws(call: () => unknown, code: ErrorCode, message: RegExp): void {
  assert.throws(call, (error: unknown) => isMooncakeKvError(error, code) && message.test(error.message));
}

/** A scheduler with request r of 16-token blocks, scheduled for its first `tokens` tokens. */
function started(tokens: number, prompt: number = tokens, config: Parameters<typeof scheduler>[0] = {}) {
  const made = scheduler(config);
  const table = Array.from({ length: Math.ceil(tokens / 16) }, (_, index) => index + 1);
  made.scheduler.updateStateAfterAlloc(request("r", prompt), [table], 0);
  const meta = made.scheduler.buildConnectorMeta(
    output({
      new: [{ reqId: "r", blockIds: [table], numComputedTokens: 0 }],
      scheduled: { r: tokens },
      tables: { r: [table] },
    }),
  );
  return { ...made, meta, table };
}

const running = (numComputedTokens: number, newBlockIds: number[][] | null = null) => [
  { reqId: "r", resumed: false, newBlockIds, numComputedTokens },
];

test("a new request saves its whole blocks, and holds all of its blocks", () => {
  const { meta, pool, scheduler: made } = started(40);
  assert.equal(
    meta.requests.map(({ reqId, tokenLenChunk, canSave, storeJobId }) => [
      reqId,
      tokenLenChunk,
      canSave,
      storeJobId,
    ]),
    [["r", 32, true, 0]],
  );
  assert.equal(pool.touched, [1, 2, 3]);
  assert.ok(made.hasPendingPushWork());
  made.updateConnectorOutput({ completedSaves: new Map([[0, 1]]) });
  assert.equal(pool.freed, [3, 2, 1], "tail first, so that a shared prefix is evicted last");
  assert.not(made.hasPendingPushWork());
});

test("the store adds what it has beyond the local hit, never less than nothing", () => {
  const { scheduler: made, client } = scheduler();
  for (const [hit, computed, needed] of [
    [48, 20, 28],
    [16, 32, 0],
    [32, 32, 0],
  ] as const) {
    client.reply = { hitLength: hit, tailKeyBoundaries: [] };
    assert.equal(made.getNumNewMatchedTokens(request("r", 48), computed), [needed, needed > 0]);
  }
});

test("a pending lookup is null, which is not a miss", () => {
  const { scheduler: made, client } = scheduler();
  client.reply = null;
  assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), [null, false]);
  client.reply = { hitLength: 0, tailKeyBoundaries: [] };
  assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), [0, false]);
  made.buildConnectorMeta(output({ finished: ["r"] }));
  assert.equal(client.discarded, ["r"]);
});

test("prompts below a block are not looked up, unless hits may end inside one", () => {
  const coarse = scheduler();
  coarse.client.reply = { hitLength: 8, tailKeyBoundaries: [] };
  assert.equal(coarse.scheduler.getNumNewMatchedTokens(request("r", 12), 0), [0, false]);
  assert.is(coarse.client.calls, 0);
  const fine = scheduler(HYBRID);
  fine.client.reply = { hitLength: 8, tailKeyBoundaries: [] };
  assert.equal(fine.scheduler.getNumNewMatchedTokens(request("r", 12, { hashBlockSize: 4 }), 0), [8, true]);
});

test("without lookup the client is not asked; an answer that is none counts as a miss", () => {
  const off = scheduler({ extraConfig: { enable_lookup: false } });
  assert.equal(off.scheduler.getNumNewMatchedTokens(request("r", 48), 0), [0, false]);
  assert.is(off.client.calls, 0);
  const odd = scheduler();
  odd.client.reply = { hitLength: Number.NaN, tailKeyBoundaries: [] };
  assert.equal(odd.scheduler.getNumNewMatchedTokens(request("r", 48), 0), [0, false]);
});

test("a parked request loads, and does not save in the same step", () => {
  const { scheduler: made, client, pool } = scheduler();
  client.reply = { hitLength: 48, tailKeyBoundaries: [{ groupId: 0, numTokens: 48 }] };
  made.getNumNewMatchedTokens(request("r", 64), 0);
  made.updateStateAfterAlloc(request("r", 64), [[1, 2, 3]], 48);
  const [job, ...more] = made.buildConnectorMeta(output({})).requests;
  assert.equal(more, []);
  assert.equal([job!.canSave, job!.tokenLenChunk, job!.blockIds], [false, 48, [[1, 2, 3]]]);
  assert.is(job!.loadSpec!.kvpoolCachedTokens, 48);
  assert.equal(pool.touched, []);
  assert.equal(made.buildConnectorMeta(output({})).requests, [], "a load is handed out once");
});

test("a hit that the engine refused leaves nothing behind: no load, no job", () => {
  const { scheduler: made, client } = scheduler();
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  made.getNumNewMatchedTokens(request("r", 52), 0);
  made.updateStateAfterAlloc(request("r", 52), [[1, 2, 3, 4]], 0);
  assert.equal(made.buildConnectorMeta(output({})).requests, []);
  assert.is(made.loadSpecs.size, 0);
});

test("blocks for another number of tokens than was offered are refused", () => {
  const { scheduler: made, client } = scheduler();
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  made.getNumNewMatchedTokens(request("r", 52), 0);
  throws(
    () => made.updateStateAfterAlloc(request("r", 52), [[1]], 16),
    "ERR_REQUEST",
    /16 external tokens.*offered 32/,
  );
  assert.not(made.loadSpecs.get("r")!.canLoad);
});

test("draft tokens count only once they exist", () => {
  const { scheduler: made } = started(30, 30, { extraConfig: { save_decode_cache: true } });
  // 34 tokens are scheduled, 3 of them drafts: the request has 31, which is one whole block and no new one.
  made.updateStateAfterAlloc(request("r", 30, { numTokens: 31 }), [[1, 2]], 0);
  const meta = made.buildConnectorMeta(
    output({ cached: running(30), scheduled: { r: 4 }, tables: { r: [[1, 2]] } }),
  );
  assert.equal(meta.requests, []);
  made.updateStateAfterAlloc(request("r", 30, { numTokens: 32 }), [[1, 2]], 0);
  const [job] = made.buildConnectorMeta(
    output({ cached: running(31), scheduled: { r: 4 }, tables: { r: [[1, 2]] } }),
  ).requests;
  assert.is(job!.tokenLenChunk, 32);
});

test("decoded tokens are saved only where that is asked for, earlier chunks first", () => {
  const plain = started(40);
  assert.equal(
    plain.scheduler.buildConnectorMeta(
      output({ cached: running(40), scheduled: { r: 1 }, tables: { r: [[1, 2, 3]] } }),
    ).requests,
    [],
  );
  const consumer = started(40, 40, { kvRole: "kv_consumer" });
  assert.equal(consumer.meta.requests, [], "a consumer saves nothing");
  const decoding = started(40, 40, { kvRole: "kv_consumer", extraConfig: { save_decode_cache: true } });
  assert.equal(decoding.meta.requests, []);
  decoding.scheduler.updateStateAfterAlloc(request("r", 40, { numTokens: 70 }), [[1, 2, 3]], 0);
  const [job] = decoding.scheduler.buildConnectorMeta(
    output({ cached: running(40, [[4, 5]]), scheduled: { r: 30 }, tables: { r: [[1, 2, 3, 4, 5]] } }),
  ).requests;
  assert.equal([job!.tokenLenChunk, job!.tokenIdsStart], [64, 0]);
});

test("new blocks are appended, those of a resumed request replace the table", () => {
  const { scheduler: made } = started(48, 96);
  made.updateStateAfterAlloc(request("r", 96), [[1, 2, 3]], 0);
  const appended = made.buildConnectorMeta(
    output({ cached: running(48, [[4]]), scheduled: { r: 16 }, tables: { r: [[1, 2, 3, 4]] } }),
  );
  assert.equal(appended.requests[0]!.blockIds, [[1, 2, 3, 4]]);
  made.buildConnectorMeta(output({ preempted: ["r"] }));
  made.updateStateAfterAlloc(request("r", 96), [[9, 10]], 0);
  const [job] = made.buildConnectorMeta(
    output({
      cached: [{ reqId: "r", resumed: true, newBlockIds: [[9, 10]], numComputedTokens: 0 }],
      scheduled: { r: 32 },
      tables: { r: [[9, 10]] },
    }),
  ).requests;
  assert.equal([job!.blockIds, job!.tokenLenChunk, job!.tokenIdsStart], [[[9, 10]], 32, 0]);
});

test("a late report of an old life neither ends nor releases the new one", () => {
  const { scheduler: made, pool } = started(32);
  made.buildConnectorMeta(output({ preempted: ["r"] }));
  made.updateStateAfterAlloc(request("r", 32), [[7, 8]], 0);
  made.buildConnectorMeta(
    output({
      new: [{ reqId: "r", blockIds: [[7, 8]], numComputedTokens: 0 }],
      scheduled: { r: 32 },
      tables: { r: [[7, 8]] },
    }),
  );
  assert.equal(
    made.pinnedSaves.map(({ storeJobId, blockIds }) => [storeJobId, blockIds]),
    [
      [0, [1, 2]],
      [1, [7, 8]],
    ],
  );
  made.updateConnectorOutput({ completedSaves: new Map([[0, 1]]) });
  assert.equal(pool.freed, [2, 1]);
  assert.equal([...pool.references.keys()], [7, 8]);
});

test("preempted and admitted again in one step: the new life's load is handed out", () => {
  const { scheduler: made, client } = started(70);
  client.reply = { hitLength: 64, tailKeyBoundaries: [] };
  made.getNumNewMatchedTokens(request("r", 70), 0);
  made.updateStateAfterAlloc(request("r", 70), [[5, 6, 7, 8]], 64);
  const meta = made.buildConnectorMeta(output({ preempted: ["r"] }));
  assert.equal([...meta.preemptedReqIds], ["r"]);
  assert.equal(
    meta.requests.map(({ loadSpec, blockIds }) => [loadSpec!.kvpoolCachedTokens, blockIds]),
    [[64, [[5, 6, 7, 8]]]],
  );
});

test("preempted and admitted again in one step: the new life is saved from its start", () => {
  for (const resumed of [false, true]) {
    const { scheduler: made } = started(32);
    made.updateStateAfterAlloc(request("r", 32), [[7, 8]], 0);
    const [job] = made.buildConnectorMeta(
      output({
        preempted: ["r"],
        new: resumed ? [] : [{ reqId: "r", blockIds: [[7, 8]], numComputedTokens: 0 }],
        cached: resumed ? [{ reqId: "r", resumed, newBlockIds: [[7, 8]], numComputedTokens: 0 }] : [],
        scheduled: { r: 32 },
        tables: { r: [[7, 8]] },
      }),
    ).requests;
    assert.equal([job!.tokenLenChunk, job!.blockIds, job!.tokenIdsStart], [32, [[7, 8]], 0]);
  }
});

test("a preemption after the allocation takes the load with it", () => {
  const { scheduler: made, client } = scheduler();
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  made.getNumNewMatchedTokens(request("r", 48), 0);
  made.updateStateAfterAlloc(request("r", 48), [[1, 2, 3]], 32);
  assert.equal(made.buildConnectorMeta(output({ preempted: ["r"] })).requests, []);
  assert.is(made.loadSpecs.size, 0);
});

test("a job ends when every rank has reported, and an extra report is refused", () => {
  const { scheduler: made, pool } = started(32, 32, { worldSize: 3 });
  made.updateConnectorOutput({ completedSaves: new Map([[0, 2]]) });
  assert.equal(pool.freed, []);
  throws(
    () => made.updateConnectorOutput({ completedSaves: new Map([[0, 2]]) }),
    "ERR_REQUEST",
    /job 0.*2 ranks.*only 1/,
  );
  made.updateConnectorOutput({ completedSaves: new Map([[0, 1]]) });
  assert.equal(pool.freed, [2, 1]);
  made.updateConnectorOutput({ completedSaves: new Map([[0, 1]]) });
  assert.equal(pool.freed, [2, 1], "a job that is over is passed over");
});

test("a step that can't be right is refused as a whole", () => {
  const { scheduler: made } = started(32);
  throws(
    () => made.buildConnectorMeta(output({ cached: running(32).map((each) => ({ ...each, reqId: "x" })) })),
    "ERR_REQUEST",
    /x goes on, but was never scheduled/,
  );
  const fresh = { new: [{ reqId: "n", blockIds: [[1]], numComputedTokens: 0 }], scheduled: { n: 16 } };
  throws(() => made.buildConnectorMeta(output(fresh)), "ERR_REQUEST", /n is scheduled, but holds no blocks/);
  made.updateStateAfterAlloc(request("n", 16), [[1]], 0);
  throws(() => made.buildConnectorMeta(output(fresh)), "ERR_REQUEST", /blockTables does not list it/);
  throws(
    () => made.buildConnectorMeta(output({ ...fresh, noBlockState: true })),
    "ERR_REQUEST",
    /kvConnectorBlockState/,
  );
  throws(
    () => made.buildConnectorMeta(output({ new: fresh.new, tables: { n: [[1]] } })),
    "ERR_REQUEST",
    /numScheduledTokens does not list it/,
  );
  const [job] = made.buildConnectorMeta(output({ ...fresh, tables: { n: [[1]] } })).requests;
  assert.is(job!.storeJobId, 1, "the failed steps used no job id up");
});

test("a pool that fails leaves no reference and no job", () => {
  const { scheduler: made, pool } = scheduler();
  made.updateStateAfterAlloc(request("a", 16), [[1]], 0);
  made.updateStateAfterAlloc(request("b", 16), [[2]], 0);
  const step = output({
    new: ["a", "b"].map((reqId, index) => ({ reqId, blockIds: [[index + 1]], numComputedTokens: 0 })),
    scheduled: { a: 16, b: 16 },
    tables: { a: [[1]], b: [[2]] },
  });
  const touch = pool.touch.bind(pool);
  pool.touch = (blockIds) => {
    if (blockIds.includes(2)) throw new Error("no such block");
    touch(blockIds);
  };
  assert.throws(() => made.buildConnectorMeta(step), /no such block/);
  assert.is(pool.references.size, 0);
  assert.equal(made.pinnedSaves, []);
});

test("a Mamba state rides the job of its step, or gets one of its own; a consumer stores none", () => {
  const hybrid = (kvRole: "kv_both" | "kv_consumer") => {
    const made = scheduler({ ...HYBRID, kvRole });
    made.scheduler.updateStateAfterAlloc(request("r", 13, { hashBlockSize: 4 }), [[0], [7]], 0);
    const meta = made.scheduler.buildConnectorMeta(
      output({
        new: [{ reqId: "r", blockIds: [[0], [7]], numComputedTokens: 0 }],
        scheduled: { r: 13 },
        tables: { r: [[0], [7]] },
        offloads: { r: [[1, 7, 12]] },
      }),
    );
    return { ...made, meta };
  };
  const { meta, pool } = hybrid("kv_both");
  assert.equal(
    meta.requests.map(({ tokenLenChunk, canSave, boundaryPuts }) => [
      tokenLenChunk,
      canSave,
      boundaryPuts!.map((put) => [put.groupId, put.blockId, put.numTokens]),
    ]),
    [[0, true, [[1, 7, 12]]]],
  );
  assert.equal(pool.touched, [7]);
  assert.equal(hybrid("kv_consumer").meta.requests, []);
});

test("group ids of states become those of the store; states past the prefill are dropped", () => {
  const { scheduler: made } = scheduler({
    ...HYBRID,
    blockSize: 800,
    kvCacheGroups: [
      { kvCacheSpec: { kind: "full", blockSize: 800 } },
      { kvCacheSpec: { kind: "circular", blockSize: 8 } },
      { kvCacheSpec: { kind: "mamba", blockSize: 800, mambaCacheMode: "align" } },
    ],
  });
  assert.equal(made.settings.storeGroupIds, [0, 2]);
  assert.equal(made.settings.blockSize, 800);
  made.updateStateAfterAlloc(request("r", 900, { hashBlockSize: 4 }), [[1, 2], [3], [4, 5]], 0);
  const tables = [[1, 2], [3], [4, 5]];
  const [job] = made.buildConnectorMeta(
    output({
      new: [{ reqId: "r", blockIds: tables, numComputedTokens: 0 }],
      scheduled: { r: 900 },
      tables: { r: tables },
      offloads: {
        r: [
          [2, 4, 800],
          [0, 1, 800],
          [2, 5, 1600],
        ],
      },
    }),
  ).requests;
  const mamba = job!.boundaryPuts!.filter(({ groupId }) => groupId === 1);
  assert.equal(
    mamba.map(({ blockId, numTokens }) => [blockId, numTokens]),
    [[4, 800]],
  );
  assert.equal(job!.blockIds, [
    [1, 2],
    [4, 5],
  ]);
});

test("boundary blocks are held before the others, each block once", () => {
  const { scheduler: made, pool } = scheduler(HYBRID);
  const tables = [
    [7, 2, 0, 6],
    [24, 0, 25, 8],
  ];
  made.updateStateAfterAlloc(request("r", 64, { hashBlockSize: 4 }), tables, 0);
  made.buildConnectorMeta(
    output({
      new: [{ reqId: "r", blockIds: tables, numComputedTokens: 0 }],
      scheduled: { r: 48 },
      tables: { r: tables },
      offloads: { r: [[1, 8, 48]] },
    }),
  );
  assert.equal(pool.touched, [8, 7, 2, 6]);
});

test("the tail of a request that ends is held at once, and handed out in the next step", () => {
  const { scheduler: made, pool } = scheduler(HYBRID);
  const whole = request("r", 13, { computed: 13, hashBlockSize: 4 });
  made.updateStateAfterAlloc(whole, [[3], [4]], 0);
  made.buildConnectorMeta(
    output({
      new: [{ reqId: "r", blockIds: [[3], [4]], numComputedTokens: 0 }],
      scheduled: { r: 12 },
      tables: { r: [[3], [4]] },
    }),
  );
  assert.is(made.registerFinishedPartialTail(whole, [[3], [4]], [[1, 9, 12]]), false);
  assert.equal(pool.touched, [3, 9]);
  throws(
    () => made.registerFinishedPartialTail(whole, [[3], [4]], [[1, 9, 12]]),
    "ERR_REQUEST",
    /partial tail already/,
  );
  const [job] = made.buildConnectorMeta(output({ finished: ["r"] })).requests;
  assert.equal(
    job!.boundaryPuts!.map((put) => [put.groupId, put.blockId, put.numTokens]),
    [
      [0, 3, 12],
      [1, 9, 12],
    ],
  );
  made.updateConnectorOutput({ completedSaves: new Map([[job!.storeJobId!, 1]]) });
  assert.is(pool.references.size, 0);
});

test("a capacity-only instance is told to do nothing", () => {
  const { scheduler: made } = scheduler({ kvRole: "kv_consumer", extraConfig: { enable_lookup: false } });
  assert.ok(made.settings.capacityOnly);
  assert.equal(made.getNumNewMatchedTokens(request("r", 64), 0), [0, false]);
});

test("emptying the store forgets what was offered, and never throws", async () => {
  const { scheduler: made, client } = scheduler();
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  made.getNumNewMatchedTokens(request("r", 48), 0);
  assert.is(await made.resetCache(), true);
  assert.is(made.loadSpecs.size, 0);
  client.reset = () => {
    throw new Error("nobody there");
  };
  assert.is(await made.resetCache(), false);
});

test("configurations that make no sense are refused with both values", () => {
  throws(() => scheduler({ kvRole: "kv_none" as never }), "ERR_CONFIG", /kv_none.*kv_producer/);
  throws(() => scheduler({ extraConfig: { load_async: "yes" } }), "ERR_CONFIG", /load_async is "yes"/);
  throws(() => scheduler({ kvCacheGroups: [] }), "ERR_CONFIG", /no cache group/);
  throws(() => scheduler({ ...FULL, worldSize: 0 }), "ERR_REQUEST", /worldSize is 0/);
});

test.run();
