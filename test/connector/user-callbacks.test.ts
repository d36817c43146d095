import { test } from "uvu";
import * as assert from "uvu/assert";
import { callUser, guardedLogger } from "../../src/connector/user-callbacks.js";
import { scheduler } from "../../src/testing/connector/scheduler-harness.js";
import { load, rank, save, step } from "../../src/testing/connector/worker-harness.js";
import { rejects } from "../store/helpers.js";

const THROWING = {
  "throws an error": () => {
    throw new Error("no disk");
  },
  "throws nothing": () => {
    throw undefined;
  },
  rejects: () => Promise.reject(new Error("no disk")),
} as const;

/** What nobody has handled while `work` ran. */
async function unhandledIn(work: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  await work();
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.off("unhandledRejection", note);
  return unhandled;
}

for (const [kind, warn] of Object.entries(THROWING))
  test(`a logger that ${kind} costs no request, no job and no report`, async () => {
    const unhandled = await unhandledIn(async () => {
      const logger = { warn, info: warn } as never;
      const engine = await rank({}, { logger, tierLog: true, maxQueuedLoads: 1, maxQueuedSaves: 1 });
      await step(engine, [save("a", 32, [[1, 2]])]);
      engine.store.faults.getInto.push(new Error("connection lost"));
      const loads = ["b", "c"].map((reqId) => load(reqId, 32, [[11, 12]], { hashBase: 97 }));
      const lost = await step(engine, loads);
      assert.equal(
        [lost.finished, lost.invalid],
        [
          ["b", "c"],
          [11, 12],
        ],
      );
      engine.store.faults.getInto.push({ 0: -704 });
      assert.equal((await step(engine, [load("d", 32, [[11, 12]], { hashBase: 97 })])).finished, ["d"]);
      engine.store.faults.putFrom.push({ 0: -200 });
      const saves = [save("e", 16, [[3]]), save("f", 16, [[4]])];
      assert.is((await step(engine, saves)).completed.length, 2);
      engine.store.removeAll = () => Promise.reject(new Error("nobody there"));
      assert.is(await engine.worker.reset(), false);
      engine.store.unregisterBuffer = async () => -600;
      await engine.worker.close();
    });
    assert.equal(unhandled, []);
  });

test("a lookup client that throws from discard costs no step", async () => {
  const { scheduler: made, client } = scheduler();
  client.discard = THROWING["throws an error"];
  const meta = made.buildConnectorMeta({
    scheduledNewReqs: [],
    scheduledCachedReqs: [],
    numScheduledTokens: new Map(),
    finishedReqIds: ["r"],
    preemptedReqIds: [],
    kvConnectorBlockState: null,
  });
  assert.equal(meta.requests, []);
});

test("what a callback throws goes to onError alone, and so does what its promise rejects with", async () => {
  const unhandled = await unhandledIn(async () => {
    const errors: unknown[] = [];
    for (const callback of Object.values(THROWING)) callUser(callback, (error) => errors.push(error));
    await new Promise((resolve) => setImmediate(resolve));
    assert.is(errors.length, 3);
  });
  assert.equal(unhandled, []);
});

test("a logger keeps its this, may lack info, and must be one", async () => {
  const told: string[] = [];
  class Logger {
    prefix = ">";
    warn(message: string): void {
      told.push(this.prefix + message);
    }
  }
  const guarded = guardedLogger(new Logger());
  guarded.warn("a", {});
  guarded.info("b", {});
  guardedLogger(undefined).warn("c", {});
  assert.equal(told, [">a"]);
  await rejects(() => rank({}, { logger: {} as never }), "ERR_CONFIG", /logger is .*function warn/);
});

test.run();
