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

test("an event that can't be counted is refused when it comes, and takes none of the others with it", () => {
  const odd = [
    event(3, { groupIdx: 1 }),
    event(3, { groupIdx: "0" }),
    event(3, { groupIdx: -1 }),
    { type: "?" },
  ];
  for (const bad of odd as KVCacheEvent[]) {
    const container = report(event(1));
    assert.throws(
      () => container.addEvents([event(2), bad]),
      (error: unknown) => isMooncakeKvError(error),
    );
    assert.equal(ids(container.popCommonEvents()), [1]);
    assert.equal(ids(container.popCommonEvents()), []);
    container.addEvents([event(2)]);
    assert.equal(ids(container.popCommonEvents()), [2]);
  }
});

test("an event that its reporter changes afterwards still comes out", () => {
  const changing = { ...event(1) };
  const container = report(changing);
  Object.assign(changing, { groupIdx: 9 });
  assert.is(container.popCommonEvents().length, 1);
});

test("of a poll with a report of a foreign group nothing is counted", () => {
  const foreign = new MooncakeStoreKVEvents(1, [1, 1]);
  foreign.addEvents([event(2, { groupIdx: 1 })]);
  const quorum = new KvEventQuorum();
  quorum.poll([report(event(1)), report()]);
  assert.throws(() => quorum.poll([report(event(1)), foreign]), /group 1/);
  assert.equal(ids(quorum.pending!.getAllEvents()), [1]);
  assert.equal(ids(quorum.poll([report(), report(event(1))])), [1]);
  const fresh = new KvEventQuorum();
  assert.throws(() => fresh.poll([report(event(1)), foreign]), /group 1/);
  assert.is(fresh.pending, undefined);
});

test("events that wait for a worker which never reports are bounded", () => {
  const container = new MooncakeStoreKVEvents(2);
  const most = 131_072;
  for (let at = 0; at < most + 5; at += 1_000)
    container.addEvents(Array.from({ length: Math.min(1_000, most + 5 - at) }, (_, i) => event(at + i)));
  assert.is(container.dropped, 5);
  assert.equal(ids(container.getAllEvents().slice(0, 1)), [5]);
});

test.run();
