import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import { EventHashes } from "../../../src/events/event-hashes.js";
import { MooncakeStoreKVEvents } from "../../../src/events/kv-event-aggregator.js";
import { blockStored } from "../../../src/events/kv-events.js";
import { output, request, scheduler } from "../../../src/testing/connector/scheduler-harness.js";

/** A scheduler of two ranks with jobs 0 and 1 open, of blocks 1 and 2. */
function twoJobs() {
  const made = scheduler({ worldSize: 2, enableKvEvents: true });
  for (const [block, reqId] of [
    [1, "a"],
    [2, "b"],
  ] as const) {
    made.scheduler.updateStateAfterAlloc(request(reqId, 16), [[block]], 0);
    made.scheduler.buildConnectorMeta(
      output({
        new: [{ reqId, blockIds: [[block]], numComputedTokens: 0 }],
        scheduled: { [reqId]: 16 },
        tables: { [reqId]: [[block]] },
      }),
    );
  }
  return made;
}

const stored = (groupIdx: number) =>
  blockStored({ blockHashes: EventHashes.from([7n]), blockSize: 16, groupIdx });

function events(factors: number[], ...list: Parameters<MooncakeStoreKVEvents["addEvents"]>[0][]) {
  const container = new MooncakeStoreKVEvents(1, factors);
  for (const each of list) container.addEvents(each);
  return container;
}

test("a report with a lie in it changes nothing, names it, and counts without it", () => {
  for (const count of [3, -1, Number.NaN, 0.5, undefined, "1", 1n]) {
    const { scheduler: made, pool } = twoJobs();
    const before = made.pinnedSaves;
    let culprit: unknown;
    const completedSaves = new Map<number, number>([
      [0, 2],
      [1, count as number],
    ]);
    assert.throws(
      () => made.updateConnectorOutput({ completedSaves }, events([1], [stored(0)])),
      (error: unknown) => {
        culprit = isMooncakeKvError(error, "ERR_REQUEST") && error.details["storeJobId"];
        return true;
      },
    );
    assert.is(culprit, 1);
    assert.equal([made.pinnedSaves, pool.freed, made.takeEvents()], [before, [], []]);
    completedSaves.delete(1);
    made.updateConnectorOutput({ completedSaves });
    assert.equal(pool.freed, [1]);
  }
});

test("jobs that nobody knows, or that are done, are passed over", () => {
  const { scheduler: made, pool } = twoJobs();
  const all = new Map([
    [0, 2],
    [1, 2],
    [99, 50],
  ]);
  made.updateConnectorOutput({ completedSaves: all });
  made.updateConnectorOutput({ completedSaves: all });
  assert.equal([pool.freed, pool.references.size], [[1, 2], 0]);
});

test("reports and events that are none are refused before anything is counted", () => {
  for (const bad of [
    [{ completedSaves: [[0, 2]] }, null],
    [{ completedSaves: undefined }, null],
    [{ completedSaves: new Map([[0, 2]]) }, { getAllEvents: () => [] }],
    [{ completedSaves: new Map([[0, 2]]) }, events([1, 1], [stored(1)])],
  ]) {
    const { scheduler: made, pool } = twoJobs();
    made.updateConnectorOutput(null, events([1], [stored(0)]));
    assert.throws(
      () => made.updateConnectorOutput(bad[0] as never, bad[1] as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_REQUEST"),
    );
    assert.equal(pool.freed, []);
    assert.is(made.takeEvents().length, 1, "what was there comes out");
  }
});

test("a pool that throws when it takes blocks back has been told everything, and once", () => {
  const { scheduler: made, pool } = twoJobs();
  pool.freeBlocks = (blockIds) => {
    pool.freed.push(...blockIds);
    throw new Error("the pool is broken");
  };
  const report = { completedSaves: new Map([[0, 2]]) };
  assert.throws(() => made.updateConnectorOutput(report, events([1], [stored(0)])), /the pool is broken/);
  assert.equal([made.pinnedSaves.map(({ storeJobId }) => storeJobId), pool.freed], [[1], [1]]);
  assert.is(made.takeEvents().length, 1);
});

test.run();
