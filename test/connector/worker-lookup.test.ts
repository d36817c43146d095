import { test } from "uvu";
import * as assert from "uvu/assert";
import { hashes, rank, save, step } from "../../src/testing/connector/worker-harness.js";

test("a key that the store does not answer makes a lookup of a worker a failure, and no miss", async () => {
  const engine = await rank();
  await step(engine, [save("a", 48, [[1, 2, 3]])]);
  engine.store.faults.exists.push({ 1: -900 });
  const { hitLength, failure } = await engine.worker.lookup(49, hashes(3));
  assert.equal([hitLength, failure?.reason], [0, "store"]);
  assert.match(failure!.error.message, /answered -900 for 1 of 3 keys/);
  assert.is((await engine.worker.lookup(49, hashes(3))).hitLength, 48);
});

test.run();
