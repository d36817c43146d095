import * as assert from "uvu/assert";
import { EventFollower } from "../../src/events/event-follower.js";
import {
  EventLog,
  type EventSubscriberOptions,
  type SubscribedMessage,
  type SubscriberProblem,
} from "../../src/events/index.js";
import { checkedSubscriberOptions } from "../../src/events/subscriber-options.js";
import { batchOf, fromLog, type ReplayAnswer, replaySocket, short } from "../helpers/event-engine.js";
import { socketSuite } from "../helpers/socket-suite.js";

// What comes through the connection is handed in; replays are real.

const { test, folder, keep } = socketSuite("event follower");

/** A log with batches of an engine; those of another engine have other times. */
function engineLog(batches: number, engine = 0, bufferSteps = 10_000): EventLog {
  const log = new EventLog({ bufferSteps });
  for (let id = 0; id < batches; id++) log.publish(batchOf(1000 * engine + id));
  return log;
}

/** The messages of an engine, as they come through a connection. */
function live(batches: number, engine = 0): Uint8Array[][] {
  const log = new EventLog();
  return Array.from({ length: batches }, (_, id) => log.publish(batchOf(1000 * engine + id)));
}

async function follow(answer: ReplayAnswer | undefined, options: Partial<EventSubscriberOptions> = {}) {
  const problems: SubscriberProblem[] = [];
  const end = new AbortController();
  const replayEndpoint = answer === undefined ? undefined : `ipc://${folder()}/replay`;
  const current = { answer };
  const replays =
    replayEndpoint === undefined
      ? undefined
      : keep(await replaySocket(replayEndpoint, (...request) => current.answer!(...request)));
  const follower = new EventFollower(
    checkedSubscriberOptions({
      endpoint: "tcp://127.0.0.1:1",
      replayEndpoint,
      from: "now",
      replayTimeoutMs: 200,
      onProblem: (problem) => problems.push(problem),
      ...options,
    }),
    end.signal,
  );
  const all = async (messages: AsyncIterable<SubscribedMessage>): Promise<string[]> => {
    const seen = [];
    for await (const message of messages) seen.push(short(message));
    return seen;
  };
  return {
    follower,
    problems,
    end,
    asked: replays?.asked ?? [],
    /** From now on another engine answers. */
    answerBy: (next: ReplayAnswer) => {
      current.answer = next;
    },
    connected: () => all(follower.connected()),
    received: (frames: Uint8Array[]) => all(follower.received(frames)),
  };
}

test("a new engine that has published less than the old one is another one, and is taken from its first batch", async () => {
  const { received, connected, follower, answerBy, asked } = await follow(fromLog(engineLog(9)));
  assert.equal(await connected(), [], "nothing is known yet, and nothing missed");
  for (const [at, frames] of live(9).entries()) assert.equal(await received(frames), [`b${at}`]);
  answerBy(fromLog(engineLog(2, 1)));
  assert.equal(await connected(), ["restart0--1", "r0", "r1"]);
  assert.equal(asked, [8n, 0n]);
  assert.equal(await received(live(3, 1)[2]!), ["b2"]);
  assert.equal([follower.counters.restarts, follower.counters.lost], [1, 0]);
});

test("a new engine that has published nothing yet is another one too", async () => {
  const { received, connected, answerBy } = await follow(fromLog(engineLog(9)));
  for (const frames of live(3)) await received(frames);
  answerBy(fromLog(engineLog(0, 1)));
  assert.equal(await connected(), ["restart0--1"]);
  assert.equal(await received(live(1, 1)[0]!), ["b0"]);
});

test("a gap whose replay comes from another engine than the live message: neither is believed", async () => {
  const { received, connected, follower } = await follow(fromLog(engineLog(9, 1)));
  const messages = live(6);
  assert.equal(await received(messages[0]!), ["b0"]);
  assert.equal(await received(messages[5]!), ["restart0--1"], "of whom batch 5 is, nobody knows");
  assert.ok(follower.distrusted);
  assert.equal(
    await connected(),
    ["restart0--1", ...Array.from({ length: 9 }, (_, at) => `r${at}`)].slice(1),
  );
  assert.not(follower.distrusted);
});

test("a replay that begins like the engine and goes on otherwise is of another one", async () => {
  const log = new EventLog();
  for (const id of [0, 1, 77]) log.publish(batchOf(id));
  const { received, follower } = await follow(fromLog(log));
  const messages = live(4);
  assert.equal(await received(messages[0]!), ["b0"]);
  assert.equal(await received(messages[2]!), ["r1", "restart0--1"]);
  assert.ok(follower.distrusted);
  assert.is(follower.counters.restarts, 1);
});

test("a gap that the same engine fills is no restart, whether it has kept the last batch or not", async () => {
  const { received, answerBy, follower } = await follow(fromLog(engineLog(4)));
  const messages = live(9);
  assert.equal(await received(messages[0]!), ["b0"]);
  assert.equal(await received(messages[3]!), ["r1", "r2", "b3"]);
  // An engine without a buffer: it says nothing about itself.
  answerBy(fromLog(engineLog(9, 0, 0)));
  assert.equal(await received(messages[8]!), ["gap4-7", "b8"]);
  assert.equal([follower.counters.restarts, follower.counters.lost], [0, 4]);
});

test("after a reconnection that proves nothing, what the engine has kept comes before its next batch", async () => {
  const { received, connected, answerBy, follower, problems } = await follow(fromLog(engineLog(4)));
  const messages = live(4);
  for (const frames of messages.slice(0, 3)) await received(frames);
  answerBy(async () => {});
  assert.equal(await connected(), ["reconnect3-2"]);
  assert.equal(problems.at(-1)?.reason, "replay");
  answerBy(fromLog(engineLog(4)));
  assert.equal(await received(messages[3]!), ["r0", "r1", "r2", "b3"]);
  assert.equal([follower.counters.unprovenReconnects, follower.counters.restarts], [1, 0]);
});

test("a beginning that could not be replayed is missing, not forgotten", async () => {
  const { received, connected, answerBy } = await follow(async () => {}, { from: "beginning" });
  assert.equal(await connected(), []);
  answerBy(fromLog(engineLog(3)));
  assert.equal(await received(live(3)[2]!), ["r0", "r1", "b2"]);
});

test("a message that comes twice is no restart", async () => {
  const { received, follower } = await follow(undefined);
  const messages = live(2);
  await received(messages[0]!);
  await received(messages[1]!);
  assert.equal(await received(messages[1]!), []);
  assert.equal([follower.counters.duplicates, follower.counters.restarts], [1, 0]);
  assert.equal(await received(messages[0]!), ["restart0--1", "b0"]);
});

test("what a slow reader takes for itself is no time of the replay", async () => {
  const { follower, problems } = await follow(fromLog(engineLog(4)), {
    from: "beginning",
    replayTotalMs: 150,
  });
  const seen = [];
  for await (const message of follower.connected()) {
    seen.push(short(message));
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  assert.equal([seen, problems], [["r0", "r1", "r2", "r3"], []]);
});

test("a replay fails with the reason: nobody there, silence, a broken connection", async () => {
  for (const [reason, answer] of [
    ["refused", undefined],
    ["timeout", async () => {}],
    ["disconnected", async (router) => router.close()],
    ["misbehaved", async (router, identity) => router.send([identity, "x"])],
  ] as const satisfies [string, ReplayAnswer | undefined][]) {
    const { connected, problems, follower } = await follow(answer, {
      replayEndpoint: `ipc://${folder()}/${answer === undefined ? "nobody" : "replay"}`,
      from: "beginning",
      replayTimeoutMs: reason === "disconnected" ? 20_000 : 100,
    });
    const began = performance.now();
    assert.equal(await connected(), []);
    assert.ok(performance.now() - began < 5_000, "a broken connection is no silence");
    assert.is(follower.counters.replayFailures[reason], 1, `${reason}: ${problems[0]?.message}`);
    assert.equal(
      problems.map((problem) => problem.reason),
      ["replay"],
    );
  }
});

test("a replay that is waited for ends at once with the subscription", async () => {
  const { connected, end, problems, follower, asked } = await follow(async () => {}, {
    from: "beginning",
    replayTimeoutMs: 60_000,
  });
  const ended = connected();
  while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const began = performance.now();
  end.abort();
  assert.equal(await ended, []);
  assert.ok(performance.now() - began < 5_000);
  assert.equal([problems, follower.counters.failedReplays], [[], 0]);
});

test("frames without end make a short message", async () => {
  const { received, problems } = await follow(undefined);
  await received(Array.from({ length: 5_000 }, () => new Uint8Array(1)));
  assert.match(problems[0]!.message, /5000 frames \(1, 1, 1, 1, 1, 1, 1, 1, \.\.\. bytes\)/);
  assert.ok(problems[0]!.message.length < 300);
});

test("a listener that rejects costs nothing", async () => {
  const { received, follower } = await follow(undefined, {
    onProblem: (async () => {
      throw new Error("a listener that rejects");
    }) as never,
  });
  await received([new Uint8Array(1)]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(follower.counters.malformed, 1);
});

test.run();
