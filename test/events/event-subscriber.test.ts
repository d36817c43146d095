import { existsSync, readFileSync } from "node:fs";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  EventLog,
  EventSubscriber,
  type EventSubscriberOptions,
  type SubscribedMessage,
  type SubscriberProblem,
} from "../../src/events/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { batchOf, fromLog, type ReplayAnswer, replaySocket, short } from "../helpers/event-engine.js";
import { socketSuite } from "../helpers/socket-suite.js";

// What can go wrong between an engine and who follows it. The engines are sockets whose frames a test writes.

const { test, folder, keep } = socketSuite("event subscriber");

/** An engine's sockets. The PUB socket learns of subscribers, so that a test can wait until one listens. */
async function engine(answer?: ReplayAnswer, { endpoint = `ipc://${folder()}/pub`, linger = 0 } = {}) {
  const { XPublisher } = await loadZeroMq();
  const pub = keep(new XPublisher({ linger }));
  await pub.bind(endpoint);
  const replays =
    answer === undefined ? undefined : keep(await replaySocket(`ipc://${folder()}/replay`, answer));
  return {
    pub,
    asked: replays?.asked ?? [],
    request: () => replays!.request(),
    /** Resolves once somebody listens. */
    listened: () => pub.receive(),
    close: async () => {
      await pub.unbind(endpoint).catch(() => {});
      pub.close();
      replays?.close();
    },
  };
}

function follow(options: Partial<EventSubscriberOptions> = {}) {
  const problems: SubscriberProblem[] = [];
  const listeners: (() => void)[] = [];
  const subscriber = keep(
    new EventSubscriber({
      endpoint: `ipc://${folder()}/pub`,
      replayEndpoint: `ipc://${folder()}/replay`,
      from: "now",
      onProblem: (problem) => {
        problems.push(problem);
        for (const listener of listeners.splice(0)) listener();
      },
      ...options,
    }),
  );
  const iterator = subscriber[Symbol.asyncIterator]();
  const next = async (): Promise<SubscribedMessage> => (await iterator.next()).value!;
  /** Resolves with the next problem. */
  const problem = () => new Promise<void>((resolve) => listeners.push(resolve));
  return { subscriber, next, problems, problem };
}

test("another engine that has passed the due number before the subscriber is back is another engine", async () => {
  const old = new EventLog();
  const first = await engine(fromLog(old));
  const { next, subscriber } = follow();
  const pending = next();
  await first.listened();
  for (let id = 0; id < 3; id++) await first.pub.send(old.publish(batchOf(id)));
  assert.equal([short(await pending), short(await next()), short(await next())], ["b0", "b1", "b2"]);
  const after = next();
  await first.close();
  const young = new EventLog();
  for (let id = 0; id < 5; id++) young.publish(batchOf(100 + id));
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
  await first.pub.send(log.publish(batchOf(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  log.publish(batchOf(1));
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
  await first.pub.send(log.publish(batchOf(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  const second = await engine();
  assert.is(short(await after), "reconnect1-0");
  const live = next();
  await second.listened().catch(() => {});
  await second.pub.send(log.publish(batchOf(1)));
  assert.is(short(await live), "b1");
  assert.is(subscriber.counters.unprovenReconnects, 1);
});

test("a replay that has forgotten the last batch proves nothing", async () => {
  const log = new EventLog({ bufferSteps: 1 });
  const first = await engine(fromLog(log));
  const { next } = follow();
  const pending = next();
  await first.listened();
  await first.pub.send(log.publish(batchOf(0)));
  assert.is(short(await pending), "b0");
  const after = next();
  await first.close();
  log.publish(batchOf(1));
  log.publish(batchOf(2));
  await engine(fromLog(log));
  assert.equal(
    [short(await after), short(await next()), short(await next())],
    ["restart0--1", "gap0-1", "r2"],
  );
});

test("a replay whose numbers do not grow ends at once, and live batches go on", async () => {
  const log = new EventLog();
  const [zero] = [log.publish(batchOf(0))];
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
  log.publish(batchOf(1));
  await host.pub.send(log.publish(batchOf(2)));
  assert.equal([short(await next()), short(await next())], ["gap1-1", "b2"]);
  assert.equal([subscriber.counters.replayFailures.misbehaved, subscriber.counters.failedReplays], [1, 1]);
  assert.match(problems[0]!.message, /sent batch 0 where 1 or a later one was due/);
});

test("a replay is bounded in batches and in time, whatever it sends", async () => {
  let sent = 0;
  const endless: ReplayAnswer = async (router, identity, start) => {
    const from = Buffer.from(start).readBigUInt64BE();
    const [, , payload] = new EventLog().publish(batchOf(0));
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
    assert.ok(sent < 100_000, "it had not ended by itself");
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
  await host.pub.send(new EventLog().publish(batchOf(0)));
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
  const [topic, number] = new EventLog().publish(batchOf(0));
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

test("what a dead engine has sent is read before anything of the new one, however slow the reader is", async () => {
  const old = new EventLog();
  const first = await engine(undefined, { linger: 5_000 });
  const { next, problem, subscriber } = follow();
  const pending = next();
  await first.listened();
  for (let id = 0; id < 200; id++) await first.pub.send(old.publish(batchOf(id)));
  assert.is(short(await pending), "b0");
  await first.close();
  const young = new EventLog();
  young.publish(batchOf(1_000));
  young.publish(batchOf(1_001));
  const second = await engine(fromLog(young));
  const broken = problem();
  const listened = second.listened();
  let heard = false;
  void listened.then(() => {
    heard = true;
  });
  const seen = [];
  for (let count = 1; count < 200; count++) {
    seen.push(short(await next()));
    // Time to reconnect in. A socket looks after its connections with each hundredth frame.
    if (count > 100 && count <= 150) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.not(heard, "nobody listens to the new one before the old one is read to its end");
  assert.equal(
    seen,
    Array.from({ length: 199 }, (_, at) => `b${at + 1}`),
  );
  assert.equal([short(await next()), short(await next()), short(await next())], ["restart0--1", "r0", "r1"]);
  await broken;
  const live = next();
  await listened;
  await second.pub.send(young.publish(batchOf(1_002)));
  assert.is(short(await live), "b2");
  assert.is(subscriber.counters.connections, 2);
});

test("a socket that can't receive is given up for another, ever more rarely, and closing waits for nothing", async () => {
  const { Subscriber } = await loadZeroMq();
  const host = await engine(fromLog(new EventLog()));
  let calls = 0;
  Object.defineProperty(Subscriber.prototype, "receive", {
    configurable: true,
    value: () => {
      calls++;
      return Promise.reject(new Error("no memory"));
    },
  });
  try {
    const { next, subscriber, problem, problems } = follow();
    const pending = next();
    const times = [];
    for (let count = 0; count < 4; count++) {
      await problem();
      times.push(performance.now());
    }
    assert.ok(times[3]! - times[2]! > times[1]! - times[0]! + 100, `waits grow: ${times}`);
    assert.is(calls, 4);
    assert.is(subscriber.counters.receiveErrors, 4);
    assert.match(problems[0]!.message, /the socket can't receive: no memory/);
    // The wait has begun.
    await new Promise((resolve) => setTimeout(resolve, 20));
    subscriber.close();
    assert.is(await pending, undefined);
    assert.ok(performance.now() - times[3]! < 500, "the next wait would have been of 800 ms");

    const other = follow();
    const first = other.next();
    await other.problem();
    Reflect.deleteProperty(Subscriber.prototype, "receive");
    await host.listened();
    const log = new EventLog();
    while (other.subscriber.counters.connections < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await host.pub.send(log.publish(batchOf(0)));
    assert.is(short(await first), "b0");
  } finally {
    Reflect.deleteProperty(Subscriber.prototype, "receive");
  }
});

test("an engine that is not there is told once, and followed when it comes", async () => {
  const { next, problem, problems, subscriber } = follow({ from: "beginning" });
  const pending = next();
  await problem();
  assert.is(problems[0]!.reason, "connection");
  assert.match(problems[0]!.message, /nobody answers at ipc:.*\/pub/);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const log = new EventLog();
  log.publish(batchOf(0));
  await engine(fromLog(log));
  assert.is(short(await pending), "r0");
  assert.equal([problems.length, subscriber.counters.connections], [1, 1]);
});

test("a batch that is larger than one may be ends the connection, and is lost", async () => {
  const log = new EventLog();
  const host = await engine(fromLog(log));
  const { next, problems, subscriber } = follow({ maxMessageBytes: 2_000, replayTimeoutMs: 5_000 });
  const pending = next();
  await host.listened();
  await host.pub.send(log.publish(batchOf(0)));
  assert.is(short(await pending), "b0");
  const events = Array.from({ length: 100 }, (_, id) => batchOf(id).events[0]!);
  const after = next();
  await host.pub.send(log.publish({ ts: 1, events, dataParallelRank: null }));
  // It goes, and comes back.
  await host.listened();
  await host.listened();
  await host.pub.send(log.publish(batchOf(2)));
  assert.equal([short(await after), short(await next())], ["gap1-1", "b2"]);
  const { connections, replayFailures, restarts } = subscriber.counters;
  assert.equal([connections, replayFailures.disconnected, restarts], [2, 2, 0]);
  assert.match(problems[0]!.message, /the connection to .* broke/);
});

test("a peer that is gone without a word is noticed: the system asks for it", async () => {
  if (!existsSync("/proc/net/tcp")) return;
  const host = await engine(undefined, { endpoint: "tcp://127.0.0.1:*" });
  const endpoint = host.pub.lastEndpoint!;
  const { next } = follow({ endpoint, replayEndpoint: undefined });
  const pending = next();
  await host.listened();
  await host.pub.send(new EventLog().publish(batchOf(0)));
  await pending;
  const port = Number(endpoint.split(":").at(-1)).toString(16).toUpperCase().padStart(4, "0");
  const connections = readFileSync("/proc/net/tcp", "utf8").split("\n");
  const own = connections.filter((line) => new RegExp(`^ *\\d+: \\w+:\\w+ \\w+:${port} 01 `).test(line));
  assert.is(own.length, 1);
  assert.match(own[0]!, / 02:\w{8} /, "its timer is that of keepalive");
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
