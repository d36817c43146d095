import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  answersOf,
  unansweredKeys,
  unfilledRows,
  unstoredRows,
} from "../../../src/connector/worker/store-answers.js";
import type { WorkerStore } from "../../../src/connector/worker/store-calls.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import {
  BLOCK_BYTES,
  hashes,
  load,
  type Rank,
  rank,
  save,
  step,
} from "../../../src/testing/connector/worker-harness.js";

/** Lets one method of a rank's store answer with these codes, whatever they are. */
function lie(engine: Rank, method: "exists" | "putFrom" | "getInto", answer: unknown): void {
  const store = engine.store as unknown as Record<string, unknown>;
  const honest = store[method];
  store[method] = async () => {
    store[method] = honest;
    return answer;
  };
}

/** Blocks 1 and 2 stored as request a. */
async function stored(): Promise<Rank> {
  const engine = await rank();
  await step(engine, [save("a", 32, [[1, 2]])]);
  return engine;
}

test("a key exists by exactly 1, an object is stored by exactly 0, a row filled by exactly its bytes", () => {
  const odd = [0, 1, 2, -1, Number.NaN, undefined, null, "1", 1n, 0n, true, 64, 64n, -0];
  assert.equal([...unansweredKeys(odd)], [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.equal([...unstoredRows(odd)], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const segments = SegmentTable.fromRows(odd.map(() => [{ address: 0n, size: 64n }]));
  assert.equal([...unfilledRows(odd, segments)], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13]);
});

test("a result that has not one code a key says nothing of any", () => {
  for (const result of [undefined, null, {}, 7, { codes: null }, { codes: [0] }, { codes: [0, 0, 0] }])
    assert.throws(
      () => answersOf(result, 2),
      (error: unknown) => isMooncakeKvError(error, "ERR_STORE") && /results for 2 keys/.test(error.message),
    );
});

for (const code of [BLOCK_BYTES / 2, 0, 1, 1n, 32n, Number.NaN, undefined, null, "64", -704, 65, 128n])
  test(`a get that gives ${typeof code} ${code} has not filled its block`, async () => {
    const engine = await stored();
    lie(engine, "getInto", { codes: [code, BigInt(BLOCK_BYTES)] });
    const result = await step(engine, [load("b", 32, [[11, 12]], { hashBase: 97 })]);
    assert.equal(result, { finished: ["b"], failed: [], invalid: [11], completed: [] });
  });

test("too many codes of a get, too few and no result leave every block unfilled", async () => {
  for (const answer of [{ codes: [64] }, { codes: [64, 64, 64] }, {}, undefined]) {
    const engine = await stored();
    lie(engine, "getInto", answer);
    const result = await step(engine, [load("b", 32, [[11, 12]], { hashBase: 97 })]);
    assert.equal([result.finished, result.invalid], [["b"], [11, 12]]);
  }
});

for (const code of [1, 5, Number.NaN, undefined, null, 0n, "0", false])
  test(`a put that gives ${typeof code} ${code} has not stored: the offset stays`, async () => {
    const engine = await rank();
    lie(engine, "putFrom", { codes: [0, code] });
    const { completed } = await step(engine, [save("a", 32, [[1, 2]])]);
    assert.is(completed.length, 1, "the blocks come back");
    assert.is(engine.worker.snapshot()!.savedOffsets.get("a"), undefined);
    const [record] = engine.worker.getKvConnectorStats()!.data.get("save_put")!;
    assert.equal([record!.status, record!.numFailedKeys], ["partial_failure", 1]);
    await step(engine, [save("a", 32, [[1, 2]])]);
    assert.is(engine.worker.snapshot()!.savedOffsets.get("a"), 32);
  });

for (const code of [-900, Number.NaN, undefined, 2, true, "1", 1n])
  test(`exists gives ${typeof code} ${code}: a save puts the key, a lookup fails`, async () => {
    const engine = await stored();
    lie(engine, "exists", { codes: [code, 1] });
    engine.store.calls.length = 0;
    await step(engine, [save("b", 32, [[1, 2]], { hashBase: 97 })]);
    assert.equal(
      engine.store.calls.map(({ method, keys }) => [method, keys.length]),
      [["putFrom", 1]],
    );
    engine.worker.getKvConnectorStats();
    lie(engine, "exists", { codes: [code, 1] });
    const { hitLength, failure } = await engine.worker.lookup(33, hashes(2));
    assert.equal([hitLength, failure?.reason], [0, "store"]);
    const [record] = engine.worker.getKvConnectorStats()!.data.get("lookup_exists")!;
    assert.equal([record!.status, record!.numFailedKeys], ["partial_failure", 1]);
  });

test("a memory region is accepted by exactly 0", async () => {
  for (const code of [Number.NaN, 1, undefined, 0n]) {
    const warnings: string[] = [];
    const engine = await rank({}, { registerMemory: false });
    const { worker } = engine;
    assert.ok(worker.canSave);
    const store: WorkerStore = engine.store;
    store.registerBuffer = async () => code as number;
    const told = await rank({}, { store, logger: { warn: (message) => warnings.push(message) } });
    assert.equal(warnings, ["the store does not accept a memory region"]);
    store.unregisterBuffer = () => Promise.reject(new Error("must not be called"));
    await told.worker.close();
    assert.is(warnings.length, 1, "what was not accepted is not given back");
  }
});

test.run();
