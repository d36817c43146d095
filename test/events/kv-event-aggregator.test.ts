import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  blockStored,
  EventHashes,
  type KVCacheEvent,
  KvEventQuorum,
  MooncakeStoreKVEvents,
} from "../../src/events/index.js";

const event = (id: number, more: object = {}) =>
  blockStored({ blockHashes: EventHashes.from([BigInt(id)]), blockSize: 16, groupIdx: 0, ...more });
const ids = (events: readonly KVCacheEvent[]) =>
  events.map((each) => (each.type === "BlockStored" ? Number(each.blockHashes.ids[0]) : -1));
const report = (...events: KVCacheEvent[]) => {
  const container = new MooncakeStoreKVEvents(1);
  container.addEvents(events);
  return container;
};

test("an event is common once every worker has reported it, be it in different polls", () => {
  const quorum = new KvEventQuorum();
  assert.equal(ids(quorum.poll([report(event(1), event(2)), report(event(2))])), [2]);
  assert.is(quorum.pending?.hasEvents(), true);
  assert.equal(ids(quorum.poll([report(), report(event(1))])), [1]);
  assert.is(quorum.pending, undefined);
  assert.equal(quorum.poll([]), []);
  assert.equal(quorum.poll([null, null]), []);
});

test("a worker without events counts, one without a container does not", () => {
  assert.equal(new KvEventQuorum().poll([report(event(1)), report()]), []);
  assert.equal(ids(new KvEventQuorum().poll([report(event(1)), null])), [1]);
});

test("events are the same only with the same members, hashes in the same form included", () => {
  const container = new MooncakeStoreKVEvents(2);
  container.addEvents([
    event(1),
    event(1, { medium: "cpu" }),
    event(1, { blockHashes: EventHashes.from([Uint8Array.of(1)]) }),
    event(1, { tokenIds: Uint32Array.of(1) }),
  ]);
  assert.equal(container.popCommonEvents(), []);
  container.addEvents([
    event(1, { medium: "cpu" }),
    { type: "AllBlocksCleared" },
    { type: "AllBlocksCleared" },
  ]);
  assert.equal(
    container.popCommonEvents().map(({ type }) => type),
    ["BlockStored", "AllBlocksCleared"],
  );
  assert.is(container.getAllEvents().length, 3);
});

test("aggregate leaves the common events, of one worker", () => {
  const container = report(event(1), event(2));
  container.addEvents([event(2)]);
  container.incrementWorkers();
  assert.equal(ids(container.aggregate().getAllEvents()), [2]);
  assert.is(container.numWorkers, 1);
  container.clearEvents();
  assert.not(container.hasEvents());
});

test("numbers below 1, and a group without a factor, are refused", () => {
  for (const fail of [
    () => new MooncakeStoreKVEvents(0),
    () => new MooncakeStoreKVEvents(1.5),
    () => new MooncakeStoreKVEvents(1, [1, 0]),
    () => report().incrementWorkers(0),
    () => report(event(1, { groupIdx: 1 })).popCommonEvents(),
  ])
    assert.throws(fail, (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"));
});

test.run();
