import { test } from "uvu";
import * as assert from "uvu/assert";
import { LoadReports } from "../../../src/connector/worker/load-reports.js";
import { load, rank, results, save, step } from "../../../src/testing/connector/worker-harness.js";

test("a request is reported when all of its loads have ended, once", () => {
  const reports = new LoadReports(false);
  reports.begin("a");
  reports.begin("a");
  reports.lost("a", [7]);
  reports.end("a");
  assert.equal([...reports.takeFinished()], []);
  assert.equal([...reports.takeInvalidBlockIds()], [7], "lost blocks are told at once");
  reports.end("a");
  assert.equal([...reports.takeFinished()], ["a"]);
  assert.equal([...reports.takeFinished()], []);
});

test("a failure is told together with the end of its request, not before", () => {
  const reports = new LoadReports(true);
  reports.begin("a");
  reports.begin("a");
  reports.lost("a", [7]);
  reports.end("a");
  assert.equal([...reports.takeFailed()], []);
  reports.end("a");
  assert.equal([[...reports.takeFinished()], [...reports.takeFailed()]], [["a"], ["a"]]);
  assert.equal([...reports.takeInvalidBlockIds()], []);
});

test("an end that was not told yet is told with the load that begins meanwhile", () => {
  const reports = new LoadReports(true);
  reports.begin("a");
  reports.lost("a", [7]);
  reports.end("a");
  reports.begin("a");
  assert.equal([[...reports.takeFinished()], [...reports.takeFailed()]], [[], []]);
  reports.end("a");
  assert.equal([[...reports.takeFinished()], [...reports.takeFailed()]], [["a"], ["a"]]);
});

test("two loads under one id: the end of the first does not report the second", async () => {
  const engine = await rank({}, { recvThreads: 2 });
  await step(engine, [save("a", 32, [[1, 2]])]);
  const { getInto } = engine.store;
  const gates: (() => void)[] = [];
  engine.store.getInto = async (...args) => {
    await new Promise<void>((resolve) => gates.push(resolve));
    return getInto.apply(engine.store, args);
  };
  const meta = (blockIds: number[]) =>
    ({ requests: [load("b", 32, [blockIds], { hashBase: 97 })], preemptedReqIds: new Set() }) as never;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  engine.worker.startLoadKv(meta([11, 12]));
  engine.worker.startLoadKv(meta([13, 14]));
  await turn();
  gates[0]!();
  await turn();
  assert.equal(results(engine.worker, meta([])).finished, []);
  gates[1]!();
  await engine.worker.drained();
  assert.equal(results(engine.worker, meta([])).finished, ["b"]);
});

test("a load that the queue refuses does not report one of the same id that runs", async () => {
  const engine = await rank({}, { maxQueuedLoads: 1 });
  await step(engine, [save("a", 32, [[1, 2]])]);
  const jobs = [11, 13].map((block) => load("b", 32, [[block, block + 1]], { hashBase: 97 }));
  engine.worker.startLoadKv({ requests: jobs } as never);
  const none = { preemptedReqIds: new Set<string>() };
  assert.equal(results(engine.worker, none), { finished: [], failed: [], invalid: [13, 14], completed: [] });
  await engine.worker.drained();
  assert.equal(results(engine.worker, none).finished, ["b"]);
});

test.run();
