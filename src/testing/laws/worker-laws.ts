import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import { BLOCK_BYTES, load, type Rank, rank, save, step } from "../connector/worker-harness.js";
import fc from "../fast-check.js";

// Laws of the worker side over a store that fails now and then. What is known of a block is its hash; so every block is
// filled with bytes that follow from the hash, and whatever is loaded can be judged.

/** What happens to a request in one step. */
interface RequestStep {
  readonly reqId: "a" | "b" | "c" | "d";
  readonly kind: "save" | "load";
  /** Whole blocks of the prompt. */
  readonly blocks: number;
  /** Whole blocks that the engine has itself, of those to load. */
  readonly local: number;
  /** Positions in the block table that have no block. */
  readonly holes: readonly number[];
}

/** One step, and what the store does to its calls. */
interface WorkerStep {
  readonly requests: readonly RequestStep[];
  readonly preempted: readonly string[];
  readonly finished: readonly string[];
  readonly exists: readonly Fault[];
  readonly puts: readonly Fault[];
  readonly gets: readonly Fault[];
}

type Fault = "none" | "raise" | Readonly<Record<number, number>>;

const fault = (codes: readonly number[]): FastCheck.Arbitrary<Fault> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant("none" as const) },
    { weight: 1, arbitrary: fc.constant("raise" as const) },
    {
      weight: 2,
      arbitrary: fc.dictionary(fc.integer({ min: 0, max: 5 }).map(String), fc.constantFrom(...codes), {
        maxKeys: 2,
      }),
    },
  );

const requestStep: FastCheck.Arbitrary<RequestStep> = fc.record({
  reqId: fc.constantFrom("a" as const, "b" as const, "c" as const),
  kind: fc.constantFrom("save" as const, "load" as const),
  blocks: fc.integer({ min: 1, max: 6 }),
  local: fc.nat(6),
  holes: fc.array(fc.nat(5), { maxLength: 1 }),
});

/** Any steps over any faults. */
export function workerSteps(): FastCheck.Arbitrary<readonly WorkerStep[]> {
  return fc.array(
    fc.record({
      requests: fc.uniqueArray(requestStep, { maxLength: 2, selector: ({ reqId }) => reqId }),
      preempted: fc.subarray(["a", "b"], { maxLength: 1 }),
      finished: fc.subarray(["a", "c"], { maxLength: 1 }),
      exists: fc.array(fault([0, 1, -1, 2].filter((code) => code !== 1)), { maxLength: 1 }),
      puts: fc.array(fault([-200, -500]), { maxLength: 2 }),
      gets: fc.array(fault([-704, -707]), { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 8, size: "max" },
  );
}

/** The bytes that belong under hash `index` of a request. */
function bytesOf(reqId: string, index: number): Uint8Array {
  return new Uint8Array(BLOCK_BYTES).fill(reqId.charCodeAt(0) * 3 + index * 7);
}

/** Every request has blocks of its own: a has 1 to 6, b 7 to 12, c 13 to 18, d only 19; loads go to others. */
function ownBlock(reqId: string, index: number): number {
  return 1 + (reqId.charCodeAt(0) - 97) * 6 + index;
}

async function runStep(
  engine: Rank,
  { requests, preempted, finished, ...faults }: WorkerStep,
): Promise<void> {
  const { store } = engine;
  const queued = (list: readonly Fault[]) =>
    list.map((each) => (each === "raise" ? new Error("told to fail") : each === "none" ? {} : each));
  store.faults.exists = queued(faults.exists);
  store.faults.putFrom = queued(faults.puts);
  store.faults.getInto = queued(faults.gets);
  for (const { reqId } of requests)
    for (let index = 0; ownBlock(reqId, index) < 20 && index < 6; index++)
      engine.block(ownBlock(reqId, index)).set(bytesOf(reqId, index));
  for (let blockId = 20; blockId < 32; blockId++) engine.block(blockId).fill(255);

  const jobs = requests.map(({ reqId, kind, blocks, local, holes }, position) => {
    const base = reqId.charCodeAt(0);
    if (kind === "save") {
      const table = Array.from({ length: blocks }, (_, index) =>
        holes.includes(index) ? 0 : ownBlock(reqId, index),
      );
      return save(reqId, blocks * 16, [table], { hashBase: base });
    }
    const table = Array.from({ length: blocks }, (_, index) => 20 + position * 6 + index);
    return load(reqId, blocks * 16, [table], { hashBase: base, local: Math.min(local, blocks) * 16 });
  });
  const result = await step(engine, jobs, { preempted, finished });

  const saves = jobs
    .filter(({ canSave }) => canSave)
    .map(({ storeJobId }) => [storeJobId!, 1] as [number, number]);
  assert.deepEqual(result.completed, saves, "every job is reported once, whatever became of it");
  const loads = requests.filter(({ kind }) => kind === "load").map(({ reqId }) => reqId);
  assert.deepEqual(result.finished, [...loads].sort(), "every load is reported once");

  for (const [position, { reqId, kind, blocks, local }] of requests.entries()) {
    if (kind !== "load") continue;
    for (let index = Math.min(local, blocks); index < blocks; index++) {
      const blockId = 20 + position * 6 + index;
      const right = Buffer.compare(engine.block(blockId), bytesOf(reqId, index)) === 0;
      assert.ok(right || result.invalid.includes(blockId), `block ${blockId} is neither right nor reported`);
    }
  }
  for (const [key, bytes] of store.objects) {
    const hash = Buffer.from(key.slice(key.lastIndexOf("@") + 1), "hex");
    const expected = bytesOf(String.fromCharCode(hash[0]!), hash.readUInt16BE(1));
    assert.equal(Buffer.compare(bytes, expected), 0, `${key} has other bytes than its hash says`);
  }
}

/**
 * Whatever the store does: every job and every load is reported exactly once, a block that was to be loaded has the right
 * bytes or is reported, and no object ever holds other bytes than its hash says.
 */
export function everythingIsReportedAndNoBytesAreWrong(): FastCheck.IAsyncProperty<unknown[]> {
  return fc.asyncProperty(workerSteps(), fc.constantFrom(undefined, 27_307), async (steps, budget) => {
    const engine = await rank({}, { diskOffloadBufferBudgetBytes: budget });
    for (const each of steps) await runStep(engine, each);
  });
}

/**
 * After faults end, one more save of each request stores everything that has a block: no failure, no pressure and no
 * missing source leaves a hole that caps later hits.
 */
export function noHolesAreLeft(): FastCheck.IAsyncProperty<unknown[]> {
  return fc.asyncProperty(workerSteps(), async (steps) => {
    const engine = await rank();
    for (const each of steps) await runStep(engine, each);
    const calm = { preempted: [], finished: [], exists: [], puts: [], gets: [] };
    const saving = (reqId: RequestStep["reqId"], blocks: number): WorkerStep => ({
      ...calm,
      requests: [{ reqId, kind: "save", blocks, local: 0, holes: [] }],
    });
    // Only a put that succeeds ends the pressure, so a request that nobody has stored comes first.
    await runStep(engine, saving("d", 1));
    assert.equal(engine.worker.snapshot()!.pressure, false);
    for (const reqId of ["a", "b", "c"] as const) await runStep(engine, saving(reqId, 6));
    for (const reqId of ["a", "b", "c"] as const) {
      const { blockHashes } = save(reqId, 96, [[]], { hashBase: reqId.charCodeAt(0) });
      const present = blockHashes.filter((hash) =>
        [...engine.store.objects.keys()].some((key) => key.endsWith(Buffer.from(hash).toString("hex"))),
      );
      assert.equal(present.length, 6, `request ${reqId} has a hole`);
    }
  });
}
