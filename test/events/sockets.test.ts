import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  BlockIndex,
  blockStored,
  EventHashes,
  EventLog,
  EventSubscriber,
  type EventSubscriberOptions,
  type SubscribedMessage,
  ZmqEventPublisher,
  type ZmqEventPublisherOptions,
} from "../../src/events/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { socketSuite } from "../helpers/socket-suite.js";

// Real sockets, in a folder of their own; everything is closed in the end, or the test would not end.

const { test, folder, keep } = socketSuite("event sockets");
const endpoint = () => `ipc://${folder()}/pub`;
const replayEndpoint = () => `ipc://${folder()}/replay`;
const publisher = async (options: ZmqEventPublisherOptions = {}) =>
  keep(await ZmqEventPublisher.open({ endpoint: endpoint(), replayEndpoint: replayEndpoint(), ...options }));
const subscriber = (options: Partial<EventSubscriberOptions> = {}) =>
  keep(new EventSubscriber({ endpoint: endpoint(), replayTimeoutMs: 300, ...options }));

const batch = (id: number) => ({
  ts: id,
  events: [blockStored({ blockHashes: EventHashes.from([BigInt(id)]), blockSize: 16, medium: "GPU" })],
  dataParallelRank: null,
});
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A message in short: `b3` a live batch, `r3` a replayed one, `gap3-4` lost ones. */
function short(message: SubscribedMessage): string {
  if (message.kind === "lost") return `${message.reason}${message.from}-${message.to}`;
  return `${message.replayed ? "r" : "b"}${message.sequence}`;
}

/** Reads until there were `count` messages. */
async function take(iterator: AsyncIterator<SubscribedMessage>, count: number): Promise<string[]> {
  const messages: string[] = [];
  while (messages.length < count) {
    const { value, done } = await iterator.next();
    if (done) return [...messages, "end"];
    messages.push(short(value));
  }
  return messages;
}

/** Publishes until a subscriber that joins late has certainly seen something. */
async function publishUntil(to: ZmqEventPublisher, seen: () => boolean): Promise<void> {
  for (let id = 0; !seen() && id < 500; id++) {
    await to.publish(batch(id));
    await sleep(5);
  }
}

test("a subscriber gets what was kept before it came, then what is published", async () => {
  const engine = await publisher();
  for (let id = 0; id < 3; id++) await engine.publish(batch(id));
  const events = subscriber({ replayEndpoint: replayEndpoint() });
  const iterator = events[Symbol.asyncIterator]();
  assert.equal(await take(iterator, 3), ["r0", "r1", "r2"]);
  await sleep(50);
  const next = iterator.next();
  assert.is(await engine.publish(batch(3)), 3n);
  assert.is(short((await next).value!), "b3");
  assert.equal([events.counters.replayed, events.counters.batches, events.due], [3, 1, 4n]);
});

test("more was published than is kept: the rest is lost, and said so", async () => {
  const engine = await publisher({ bufferSteps: 2 });
  for (let id = 0; id < 5; id++) await engine.publish(batch(id));
  const iterator = subscriber({ replayEndpoint: replayEndpoint() })[Symbol.asyncIterator]();
  assert.equal(await take(iterator, 3), ["gap0-2", "r3", "r4"]);
});

/** A publisher that a test writes the frames of; its replays come from a log. */
async function rawPublisher() {
  const { XPublisher, Router } = await loadZeroMq();
  // This kind of publisher learns of its subscribers.
  const raw = keep(new XPublisher({ linger: 0 }));
  await raw.bind(endpoint());
  const router = keep(new Router({ linger: 0 }));
  await router.bind(replayEndpoint());
  const log = new EventLog({ topic: "kv" });
  const serving = { replays: 0 };
  void (async () => {
    for (;;) {
      const request = await router.receive().catch(() => undefined);
      if (request === undefined) return;
      serving.replays++;
      for (const frames of log.replay(request[2]!)) await router.send([request[0]!, ...frames]);
    }
  })();
  return { raw, log, serving };
}

test("a gap is filled by a replay, in order", async () => {
  const { raw, log } = await rawPublisher();
  const events = subscriber({ replayEndpoint: replayEndpoint(), from: "now" });
  const iterator = events[Symbol.asyncIterator]();
  const first = iterator.next();
  await raw.receive();
  await raw.send(log.publish(batch(0)));
  assert.is(short((await first).value!), "b0");
  log.publish(batch(1));
  log.publish(batch(2));
  await raw.send(log.publish(batch(3)));
  await raw.send(log.publish(batch(4)));
  assert.equal(await take(iterator, 4), ["r1", "r2", "b3", "b4"]);
  assert.equal([events.counters.gaps, events.counters.lost], [1, 0]);
});

test("without a replay endpoint a gap is lost; a new engine is a restart; garbage is counted", async () => {
  const { raw, log } = await rawPublisher();
  const events = subscriber();
  const iterator = events[Symbol.asyncIterator]();
  const first = iterator.next();
  await raw.receive();
  const messages = [0, 1, 2, 3].map((id) => log.publish(batch(id)));
  await raw.send(messages[0]!);
  assert.is(short((await first).value!), "b0");
  await raw.send(messages[3]!);
  await raw.send(["kv", "no number", "x"]);
  await raw.send(["kv"]);
  await raw.send([messages[0]![0]!, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 4), "no batch"]);
  await raw.send(messages[0]!);
  assert.equal(await take(iterator, 5), ["gap1-2", "b3", "malformed4-4", "restart0--1", "b0"]);
  const { lost, malformed, restarts, gaps } = events.counters;
  assert.equal({ lost, malformed, restarts, gaps }, { lost: 3, malformed: 3, restarts: 1, gaps: 1 });
});

test("a replay that falls silent is given up after its time", async () => {
  const engine = await publisher({ replayEndpoint: undefined });
  const events = subscriber({ replayEndpoint: `ipc://${folder()}/nobody`, replayTimeoutMs: 60 });
  let seen = "";
  const reading = (async () => {
    for await (const message of events) {
      seen = short(message);
      if (message.kind === "batch") return;
    }
  })();
  await publishUntil(engine, () => seen.startsWith("b"));
  await reading;
  assert.ok(events.counters.failedReplays >= 1);
});

test("topics are chosen by their beginning", async () => {
  const engine = await publisher({ topic: "kv@model-a" });
  const [right, wrong] = [subscriber({ topic: "kv@model-a" }), subscriber({ topic: "kv@model-b" })];
  const none = wrong[Symbol.asyncIterator]().next();
  const some = right[Symbol.asyncIterator]().next();
  let seen: SubscribedMessage | undefined;
  void some.then(({ value }) => {
    seen = value as SubscribedMessage;
  });
  await publishUntil(engine, () => seen !== undefined);
  assert.is(seen?.kind === "batch" && seen.topic, "kv@model-a");
  wrong.close();
  assert.equal(await none, { value: undefined, done: true });
});

test("an engine that comes back is followed again, and what was missed is replayed without a new event", async () => {
  const { Publisher } = await loadZeroMq();
  const { raw, log, serving } = await rawPublisher();
  const iterator = subscriber({ replayEndpoint: replayEndpoint(), from: "now" })[Symbol.asyncIterator]();
  const first = iterator.next();
  await raw.receive();
  await raw.send(log.publish(batch(0)));
  await first;
  const second = iterator.next();
  raw.close();
  log.publish(batch(1));
  await sleep(50);
  const back = keep(new Publisher({ linger: 0 }));
  await back.bind(endpoint());
  assert.is(short((await second).value!), "r1");
  assert.ok(serving.replays >= 1);
});

test("a slow reader loses nothing that the publisher still keeps", async () => {
  const engine = await publisher({ highWaterMark: 50 });
  const events = subscriber({ replayEndpoint: replayEndpoint(), highWaterMark: 10 });
  const iterator = events[Symbol.asyncIterator]();
  const first = iterator.next();
  await sleep(50);
  for (let id = 0; id < 2000; id++) await engine.publish(batch(id));
  const seen = [short((await first).value!)];
  // The last message tells the reader of a gap that reaches up to it.
  while (Number(events.due) < 2000) {
    const next = iterator.next();
    const waiting = sleep(100).then(() => undefined);
    if ((await Promise.race([next, waiting])) === undefined) await engine.publish(batch(0));
    seen.push(short((await next).value!));
  }
  assert.equal(
    seen.slice(0, 2000).map((text) => text.slice(1)),
    Array.from({ length: 2000 }, (_, id) => String(id)),
  );
  assert.is(events.counters.lost, 0);
});

test("a signal ends the iteration, before and during it", async () => {
  const early = subscriber({ signal: AbortSignal.abort() });
  assert.equal(await early[Symbol.asyncIterator]().next(), { value: undefined, done: true });
  const controller = new AbortController();
  const late = subscriber({ signal: controller.signal });
  const next = late[Symbol.asyncIterator]().next();
  await sleep(20);
  controller.abort();
  assert.equal(await next, { value: undefined, done: true });
});

test("a loop that is left closes the subscription", async () => {
  const engine = await publisher();
  await engine.publish(batch(1));
  const events = subscriber({ replayEndpoint: replayEndpoint() });
  for await (const message of events) {
    assert.is(message.kind, "batch");
    break;
  }
  const again = await events[Symbol.asyncIterator]()
    .next()
    .catch((error: unknown) => error);
  assert.ok(isMooncakeKvError(again, "ERR_CONFIG"));
});

test("an index follows two engines", async () => {
  const index = new BlockIndex({ blockSize: 16 });
  const names = ["a", "b"];
  for (const name of names) {
    const engine = await publisher({
      endpoint: `ipc://${folder()}/${name}`,
      replayEndpoint: `ipc://${folder()}/${name}r`,
    });
    for (let id = 0; id < (name === "a" ? 2 : 3); id++) await engine.publish(batch(id));
  }
  await Promise.all(
    names.map(async (name) => {
      const events = subscriber({
        endpoint: `ipc://${folder()}/${name}`,
        replayEndpoint: `ipc://${folder()}/${name}r`,
      });
      for await (const message of events) {
        index.applyMessage(name, message);
        if (events.due === (name === "a" ? 2n : 3n)) break;
      }
    }),
  );
  assert.equal(
    index.match(EventHashes.from([0n, 1n, 2n, 3n])).map(({ engine, tokens }) => [engine, tokens]),
    [
      ["b", 48],
      ["a", 32],
    ],
  );
});

test("endpoints that can't be used are refused", async () => {
  for (const options of [
    { endpoint: `ipc://${folder()}/no/such/folder` },
    { endpoint: endpoint(), dataParallelRank: 1 },
    { endpoint: endpoint(), bufferSteps: -1 },
    { endpoint: "tcp://127.0.0.1:0", replayEndpoint: "nonsense" },
  ]) {
    const error = await ZmqEventPublisher.open(options).catch((caught: unknown) => caught);
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), JSON.stringify(options));
  }
  assert.throws(
    () => new EventSubscriber({ endpoint: endpoint(), from: "beginning" }),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
  );
  assert.throws(
    () => new EventSubscriber({ endpoint: "nonsense" }),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
  );
});

test("a wildcard port is told, and malformed replay requests are counted", async () => {
  const engine = await publisher({ endpoint: "tcp://*:0", replayEndpoint: "tcp://127.0.0.1:0" });
  assert.match(engine.endpoint!, /^tcp:\/\/0\.0\.0\.0:\d+$/);
  const { Dealer } = await loadZeroMq();
  const dealer = keep(new Dealer({ linger: 0, receiveTimeout: 1000 }));
  dealer.connect(engine.replayEndpoint!);
  await dealer.send(["one frame"]);
  await dealer.send(["", new Uint8Array(8)]);
  assert.equal(
    (await dealer.receive()).map((frame) => frame.toString("hex")),
    ["", "", "ffffffffffffffff", ""],
  );
  assert.is(engine.malformedReplays, 1);
});

test.run();
