import { test } from "uvu";
import * as assert from "uvu/assert";
import { CallLimit, limited } from "../../src/connector/call-limit.js";
import { checkedTimeLimits, DEFAULT_WORKER_TIME_LIMITS } from "../../src/connector/time-limits.js";
import type { MooncakeStoreWorkerOptions } from "../../src/connector/worker/mooncake-store-worker.js";
import type { CallOptions } from "../../src/store/shared/call-options.js";
import {
  hashes,
  load,
  type Rank,
  rank,
  results,
  save,
  step,
} from "../../src/testing/connector/worker-harness.js";
import { rejects } from "../store/helpers.js";

const LIMITS = {
  loadMs: 20,
  saveMs: 20,
  graceMs: 10,
  lookupMs: 10,
  resetMs: 20,
  registerMs: 20,
  closeMs: 10,
};

const never = () => new Promise<never>(() => {});

/** A rank with short limits, what it warned of, and the store's options of each call. */
async function limitedRank(more: Partial<MooncakeStoreWorkerOptions> = {}) {
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) };
  const engine = await rank({}, { timeLimits: LIMITS, logger, ...more } as never);
  await step(engine, [save("a", 32, [[1, 2]])]);
  return { engine, warnings };
}

const one = (job: unknown) => ({ requests: [job], preemptedReqIds: new Set<string>() }) as never;

test("a get that never settles is given up: its blocks are invalid, and later loads go on", async () => {
  const { engine, warnings } = await limitedRank();
  const { getInto } = engine.store;
  engine.store.getInto = never;
  const result = await step(engine, [load("b", 32, [[11, 12]], { hashBase: 97 })]);
  assert.equal([result.finished, result.invalid], [["b"], [11, 12]]);
  assert.equal(warnings, ["a load failed"]);
  engine.store.getInto = getInto;
  assert.equal((await step(engine, [load("c", 32, [[13, 14]], { hashBase: 97 })])).invalid, []);
});

for (const method of ["exists", "putFrom"] as const)
  test(`${method} of a save that never settles: the job is reported, and the offset stays`, async () => {
    const { engine } = await limitedRank();
    const honest = engine.store[method];
    engine.store[method] = never;
    const job = save("b", 32, [[3, 4]]);
    assert.equal((await step(engine, [job])).completed, [[job.storeJobId!, 1]]);
    assert.is(engine.worker.snapshot()!.savedOffsets.get("b"), undefined);
    engine.store[method] = honest as never;
    await step(engine, [save("b", 32, [[3, 4]])]);
    assert.is(engine.worker.snapshot()!.savedOffsets.get("b"), 32);
  });

test("a job that waits behind one that hangs has no more time than its own", async () => {
  const { engine } = await limitedRank();
  let puts = 0;
  engine.store.putFrom = () => {
    puts++;
    return never();
  };
  const jobs = Array.from({ length: 50 }, (_, index) => save(`r${index}`, 16, [[3]], { hashBase: index }));
  const before = performance.now();
  assert.is((await step(engine, jobs)).completed.length, 50);
  assert.ok(performance.now() - before < 500, "all of them end with the first");
  assert.is(puts, 1, "what has no time left is not begun");
});

test("a fence that never settles, or throws, ends its job without a put", async () => {
  for (const fence of [never, () => Promise.reject(new Error("device lost"))]) {
    const { engine } = await limitedRank();
    engine.store.calls.length = 0;
    engine.worker.waitForSave(one(save("b", 32, [[3, 4]])), fence);
    await engine.worker.drained();
    assert.equal(
      engine.store.calls.map(({ method }) => method),
      ["exists"],
    );
    assert.is(results(engine.worker, one(null)).completed.length, 1);
  }
});

test("the store is told what is left of the time, and is waited for while its copies end", async () => {
  const { engine } = await limitedRank({ timeLimits: { ...LIMITS, graceMs: 10_000 } });
  const told: (CallOptions | undefined)[] = [];
  const { putFrom } = engine.store;
  const order: string[] = [];
  engine.store.putFrom = async (...args) => {
    told.push(args[2] as CallOptions);
    await new Promise((resolve) => setTimeout(resolve, LIMITS.saveMs + 20));
    order.push("the copies have ended");
    return putFrom.apply(engine.store, args);
  };
  await step(engine, [save("b", 32, [[3, 4]])]);
  order.push("the job has ended");
  assert.equal(order, ["the copies have ended", "the job has ended"]);
  assert.ok(told[0]!.deadlineMs! >= 1 && told[0]!.deadlineMs! <= LIMITS.saveMs);
  assert.not(told[0]!.signal!.aborted);
});

test("what a put stores that was given up is removed again when it ends after all", async () => {
  const { engine, warnings } = await limitedRank();
  const { putFrom } = engine.store;
  let end: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    end = resolve;
  });
  const removed = new Promise<readonly string[]>((resolve) => {
    (engine.store as unknown as { remove: unknown }).remove = async (keys: readonly string[]) =>
      resolve(keys);
  });
  engine.store.putFrom = async (...args) => {
    await gate;
    return putFrom.apply(engine.store, args);
  };
  await step(engine, [save("b", 32, [[3, 4]])]);
  assert.equal(warnings, ["a put failed"]);
  end();
  assert.is((await removed).length, 2);
});

test("a lookup of a store that never settles is a failure in time", async () => {
  const { engine } = await limitedRank();
  engine.store.exists = never;
  const { hitLength, failure } = await engine.worker.lookup(33, hashes(2));
  assert.equal([hitLength, failure?.reason], [0, "store"]);
  assert.match(failure!.error.message, /no answer/);
  const [record] = engine.worker.getKvConnectorStats()!.data.get("lookup_exists")!;
  assert.is(record!.status, "error");
});

test("a lookup of a store that rejects, throws or gives nonsense is a failure", async () => {
  const answers = [
    () => Promise.reject(new Error("nobody there")),
    () => {
      throw new Error("nobody there");
    },
    () => undefined,
    () => ({ codes: 7 }),
  ];
  for (const answer of answers) {
    const { engine } = await limitedRank();
    engine.store.exists = answer as never;
    const { hitLength, failure } = await engine.worker.lookup(33, hashes(2));
    assert.equal([hitLength, failure?.reason], [0, "store"]);
  }
});

test("a reset ends in time, whether the store or a job hangs, and only a number of objects is success", async () => {
  for (const method of ["removeAll", "putFrom"] as const) {
    const { engine, warnings } = await limitedRank({ timeLimits: { ...LIMITS, saveMs: 2_000 } });
    const { removeAll } = engine.store;
    let emptied = false;
    engine.store.removeAll = () => {
      emptied = true;
      return removeAll.call(engine.store);
    };
    engine.store[method] = never;
    engine.worker.waitForSave(one(save("b", 32, [[3, 4]])));
    assert.is(await engine.worker.reset(), false);
    assert.ok(warnings.includes("the store could not be emptied"));
    assert.not(emptied, "a store is not emptied while a job may fill it again");
    await engine.worker.close();
  }
  const { engine } = await limitedRank();
  for (const code of [Number.NaN, undefined, 0.5, true, "1", -1]) {
    engine.store.removeAll = async () => code as number;
    assert.is(await engine.worker.reset(), false, String(code));
  }
});

test("close ends in time: what waits is reported without a call, what is under way is told", async () => {
  const { engine } = await limitedRank({ timeLimits: { ...LIMITS, loadMs: 5_000, saveMs: 5_000 } });
  let calls = 0;
  engine.store.getInto = (_keys, _segments, options?: CallOptions) => {
    calls++;
    return new Promise((_resolve, reject) => {
      options!.signal!.addEventListener("abort", () => reject(options!.signal!.reason));
    });
  };
  for (const reqId of ["b", "c"])
    engine.worker.startLoadKv(one(load(reqId, 32, [[11, 12]], { hashBase: 97 })));
  const before = performance.now();
  await Promise.all([engine.worker.close(), engine.worker.close()]);
  assert.ok(performance.now() - before < 1_000);
  assert.equal(results(engine.worker, one(null)).finished, ["b", "c"]);
  assert.is(calls, 1);
});

test("a registration that hangs is given up, and one that comes later is taken back", async () => {
  const engine: Rank = await rank();
  const { store } = engine;
  await engine.worker.close();
  let accept: (code: number) => void = () => {};
  store.registerBuffer = () =>
    new Promise((resolve) => {
      accept = resolve;
    });
  const back = new Promise<bigint>((resolve) => {
    store.unregisterBuffer = async (address) => {
      resolve(address);
      return 0;
    };
  });
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) };
  const late = await rank({}, { store, logger, timeLimits: LIMITS });
  assert.ok(late.worker.canSave);
  assert.equal(warnings, ["the store does not accept a memory region"]);
  accept(0);
  assert.is(typeof (await back), "bigint");
});

test("an answer that is there when the time is over counts", async () => {
  const limit = new CallLimit({ ms: 1 });
  const answer = limit.run("a call", async () => {
    await Promise.resolve();
    const end = performance.now() + 20;
    while (performance.now() < end);
    return 7;
  });
  assert.is(await answer, 7);
  await rejects(() => limit.run("the next", () => 8), "ERR_STORE", /the next was not begun.*1 ms/);
  limit.end();
  await rejects(() => limited({ ms: 1, graceMs: 2 }, "a call", never), "ERR_STORE", /after 3 ms.*after 1 ms/);
});

test("limits are whole milliseconds under names that there are", async () => {
  assert.equal(checkedTimeLimits({ loadMs: 5, saveMs: undefined }, DEFAULT_WORKER_TIME_LIMITS), {
    ...DEFAULT_WORKER_TIME_LIMITS,
    loadMs: 5,
  });
  for (const [limits, message] of [
    [{ loadMS: 5 }, /no time limit "loadMS"; there are loadMs/],
    [{ loadMs: Number.NaN }, /timeLimits.loadMs is NaN/],
    [{ loadMs: 0 }, /is 0/],
    [{ loadMs: 2 ** 31 }, /is 2147483648/],
    [{ loadMs: "5" }, /is "5"/],
    [7, /timeLimits is 7/],
  ] as const)
    await rejects(() => rank({}, { timeLimits: limits as never }), "ERR_CONFIG", message);
});

test.run();
