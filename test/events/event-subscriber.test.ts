import * as assert from "uvu/assert";
import type { Router } from "zeromq";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  blockStored,
  EventHashes,
  EventLog,
  EventSubscriber,
  type EventSubscriberOptions,
  type SubscribedMessage,
  type SubscriberProblem,
} from "../../src/events/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { socketSuite } from "../helpers/socket-suite.js";

// What can go wrong between an engine and who follows it. The engines are sockets whose frames a test writes.

const { test, folder, keep } = socketSuite("event subscriber");
const batch = (id: number) => ({
  ts: id,
  events: [blockStored({ blockHashes: EventHashes.from([BigInt(id)]), blockSize: 16, medium: "GPU" })],
  dataParallelRank: null,
});

type Answer = (router: Router, identity: Uint8Array, start: Uint8Array) => Promise<void>;

const fromLog =
  (log: EventLog): Answer =>
  async (router, identity, start) => {
    for (const frames of log.replay(start)) await router.send([identity, ...frames]);
  };

/** An engine's sockets. The PUB socket learns of subscribers, so that a test can wait until one listens. */
async function engine(answer?: Answer) {
  const { XPublisher, Router } = await loadZeroMq();
  const pub = keep(new XPublisher({ linger: 0 }));
  await pub.bind(`ipc://${folder()}/pub`);
  const router = keep(new Router({ linger: 0 }));
  const asked: bigint[] = [];
  if (answer !== undefined) {
    await router.bind(`ipc://${folder()}/replay`);
    void (async () => {
      while (!router.closed) {
        const request = await router.receive().catch(() => undefined);
        if (request === undefined) return;
        asked.push(Buffer.from(request[2]!).readBigUInt64BE());
        void answer(router, request[0]!, request[2]!).catch(() => {});
      }
    })();
  }
  return {
    pub,
    router,
    asked,
    /** Resolves once somebody listens. */
    listened: () => pub.receive(),
    close: async () => {
      await pub.unbind(`ipc://${folder()}/pub`).catch(() => {});
      pub.close();
      router.close();
    },
  };
}

function follow(options: Partial<EventSubscriberOptions> = {}) {
  const problems: SubscriberProblem[] = [];
  const subscriber = keep(
    new EventSubscriber({
      endpoint: `ipc://${folder()}/pub`,
      replayEndpoint: `ipc://${folder()}/replay`,
      from: "now",
      onProblem: (problem) => problems.push(problem),
      ...options,
    }),
  );
  const iterator = subscriber[Symbol.asyncIterator]();
  const next = async (): Promise<SubscribedMessage> => (await iterator.next()).value!;
  return { subscriber, next, problems };
}

/** A message in short: `b3` a live batch, `r3` a replayed one, `gap3-4` lost ones. */
function short(message: SubscribedMessage): string {
  if (message.kind === "lost") return `${message.reason}${message.from}-${message.to}`;
  return `${message.replayed ? "r" : "b"}${message.sequence}`;
}

test("another engine that has passed the due number before the subscriber is back is another engine", async () => {
  const old = new EventLog();
  const first = await engine(fromLog(old));
  const { next, subscriber } = follow();
  const pending = next();
  await first.listened();
  for (let id = 0; id < 3; id++) await first.pub.send(old.publish(batch(id)));
  assert.equal([short(await pending), short(await next()), short(await next())], ["b0", "b1", "b2"]);
  const after = next();
  await first.close();
  const young = new EventLog();
  for (let id = 0; id < 5; id++) young.publish(batch(100 + id));
  const second = await engine(fromLog(young));
  assert.is(short(await after), "restart0--1");
  const seen = [];
  for (let count = 0; count < 5; count++) seen.push(short(await next()));
  assert.equal(seen, ["r0", "r1", "r2", "r3", "r4"]);
  assert.equal(
    second.asked.slice(0, 2),
    [2n, 0n],
    "it asked for the last batch that it had seen, to compare",
  );
  assert.is(subscriber.counters.restarts, 1);
});

test("the same engine that comes back is believed, and only what was missed is replayed", async () => {
  const log = new EventLog();
  const first = await engine(fromLog(log));
  const { next, subscriber } = follow();
  const pending = next();
  await first.listened();
  await first.pub.send(log.publish(batch(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  log.publish(batch(1));
  await engine(fromLog(log));
  assert.is(short(await after), "r1");
  assert.equal([subscriber.counters.restarts, subscriber.counters.unprovenReconnects], [0, 0]);
});

test("without a replay endpoint nobody can say who came back", async () => {
  const log = new EventLog();
  const first = await engine();
  const { next, subscriber } = follow({ replayEndpoint: undefined });
  const pending = next();
  await first.listened();
  await first.pub.send(log.publish(batch(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  const second = await engine();
  assert.is(short(await after), "reconnect1-0");
  const live = next();
  await second.listened().catch(() => {});
  await second.pub.send(log.publish(batch(1)));
  assert.is(short(await live), "b1");
  assert.is(subscriber.counters.unprovenReconnects, 1);
});

test("a replay that has forgotten the last batch proves nothing", async () => {
  const log = new EventLog({ bufferSteps: 1 });
  const first = await engine(fromLog(log));
  const { next } = follow();
  const pending = next();
  await first.listened();
  await first.pub.send(log.publish(batch(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  log.publish(batch(1));
  log.publish(batch(2));
  await engine(fromLog(log));
  assert.equal(
    [short(await after), short(await next()), short(await next())],
    ["restart0--1", "gap0-1", "r2"],
  );
});

test("a replay whose numbers do not grow ends at once, and live batches go on", async () => {
  const log = new EventLog();
  const [zero] = [log.publish(batch(0))];
  // The same old batch, again and again, as long as anybody listens.
  const host = await engine(async (router, identity) => {
    while (!router.closed) {
      await router.send([identity, "", ...zero]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const { next, subscriber, problems } = follow();
  const pending = next();
  await host.listened();
  await host.pub.send(zero);
  assert.is(short(await pending), "b0");
  log.publish(batch(1));
  await host.pub.send(log.publish(batch(2)));
  assert.equal([short(await next()), short(await next())], ["gap1-1", "b2"]);
  assert.equal([subscriber.counters.replayFailures.misbehaved, subscriber.counters.failedReplays], [1, 1]);
  assert.match(problems[0]!.message, /sent batch 0 where 1 or a later one was due/);
});

test("a replay is bounded in batches and in time, whatever it sends", async () => {
  let sent = 0;
  const endless: Answer = async (router, identity, start) => {
    const from = Buffer.from(start).readBigUInt64BE();
    const [, , payload] = new EventLog().publish(batch(0));
    for (let at = from; !router.closed && sent < 100_000; at++, sent++) {
      const number = Buffer.alloc(8);
      number.writeBigUInt64BE(at);
      await router.send([identity, "", "", number, payload!]);
      if (sent % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const host = await engine(endless);
  for (const [options, reason] of [
    [{ replayMaxBatches: 20 }, "too-many"],
    [{ replayTotalMs: 100 }, "too-long"],
  ] as const) {
    sent = 0;
    const { next, subscriber } = follow({ from: "beginning", ...options });
    while (subscriber.counters.failedReplays === 0)
      await Promise.race([next(), new Promise((resolve) => setTimeout(resolve, 20))]);
    assert.is(
      subscriber.counters.replayFailures[reason],
      1,
      JSON.stringify(subscriber.counters.replayFailures),
    );
    subscriber.close();
  }
  assert.is(host.asked.length, 2);
});

test("frames that are no batch are told with what an engine sends", async () => {
  const host = await engine();
  const { next, subscriber, problems } = follow({ replayEndpoint: undefined });
  const pending = next();
  await host.listened();
  await host.pub.send(["one"]);
  await host.pub.send(["one", "two"]);
  await host.pub.send(new EventLog().publish(batch(0)));
  assert.is(short(await pending), "b0");
  assert.equal(
    problems.map(({ reason }) => reason),
    ["frames", "frames"],
  );
  assert.match(problems[1]!.message, /2 frames \(3, 3 bytes\).*three, topic, number of 8 bytes and payload/);
  assert.is(subscriber.counters.malformed, 2);
});

test("an event that can't be read is told, and costs neither its batch nor the subscription", async () => {
  const host = await engine();
  const { next, subscriber } = follow({
    replayEndpoint: undefined,
    onProblem: () => {
      throw new Error("a listener that throws");
    },
  });
  const pending = next();
  await host.listened();
  const [topic, number] = new EventLog().publish(batch(0));
  // A batch at time 1 of [["BlockRemoved", 5], ["AllBlocksCleared"]].
  const payload = Buffer.from(
    "920192" + "92ac426c6f636b52656d6f76656405" + "91b0416c6c426c6f636b73436c6561726564",
    "hex",
  );
  await host.pub.send([topic!, number!, payload]);
  const message = await pending;
  assert.ok(message.kind === "batch");
  assert.equal([message.batch.events.length, message.batch.malformedEvents], [1, 1]);
  assert.is(subscriber.counters.malformedEvents, 1);
});

test("options that nobody knows, and values that are none, are refused at once", () => {
  const endpoint = "tcp://127.0.0.1:5557";
  for (const options of [
    undefined,
    {},
    { endpoint: "tcp://*:5557" },
    { endpoint, replayEndpoint: "tcp://*:5558" },
    { endpoint, replayEndpont: "tcp://127.0.0.1:5558" },
    { endpoint, topic: 5 },
    { endpoint, from: "end" },
    { endpoint, highWaterMark: Number.NaN },
    { endpoint, replayTimeoutMs: 0 },
    { endpoint, replayTotalMs: "5" },
    { endpoint, replayMaxBatches: -1 },
    { endpoint, maxMessageBytes: 0.5 },
    { endpoint, onProblem: 5 },
    { endpoint, signal: {} },
  ])
    assert.throws(
      () => new EventSubscriber(options as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
      JSON.stringify(options),
    );
  new EventSubscriber({
    endpoint,
    topic: undefined,
    from: undefined,
    signal: undefined,
    highWaterMark: undefined,
  });
});

test.run();
