import * as assert from "uvu/assert";
import type { Dealer } from "zeromq";
import { sequenceFrame as numberFrame } from "../../src/events/event-log.js";
import { blockStored, EventHashes, EventLog } from "../../src/events/index.js";
import { ReplayServer, type ReplayServerLimits } from "../../src/events/replay-server.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { socketSuite } from "../helpers/socket-suite.js";

// Who asks for replays, and does not behave.

const { test, keep } = socketSuite("replay server");
const END = "ffffffffffffffff";
const FROM_FIRST = ["", new Uint8Array(8)];

/** Batches of 2 KB each. */
function logOf(batches: number): EventLog {
  const log = new EventLog();
  const blockHashes = EventHashes.from(Array.from({ length: 250 }, (_, id) => 2n ** 60n + BigInt(id)));
  const events = [blockStored({ blockHashes, blockSize: 16, medium: "GPU" })];
  for (let ts = 0; ts < batches; ts++) log.publish({ ts, events, dataParallelRank: null });
  return log;
}

/** Some megabytes of batches: more than sockets, pipes and the system keep for one who does not read. */
const big = logOf(6_000);

async function serve(log: EventLog, limits?: ReplayServerLimits) {
  const reports: string[] = [];
  let told = (): void => {};
  const report = (message: string) => {
    reports.push(message);
    told();
  };
  const server = keep(await ReplayServer.bind("tcp://127.0.0.1:*", log, report, limits));
  return {
    server,
    reports,
    /** Resolves once there were so many reports. */
    reported: async (count: number) => {
      while (reports.length < count)
        await new Promise<void>((resolve) => {
          told = resolve;
        });
    },
    ask: async (highWaterMark = 1_000): Promise<Dealer> => {
      const { Dealer } = await loadZeroMq();
      const dealer = keep(
        new Dealer({ linger: 0, receiveHighWaterMark: highWaterMark, receiveTimeout: 20_000 }),
      );
      dealer.connect(server.endpoint);
      await dealer.send(FROM_FIRST);
      return dealer;
    },
  };
}

/** Reads a replay to its end; returns how many batches it had, all of them in order. */
async function readAll(dealer: Dealer): Promise<number> {
  for (let count = 0; ; count++) {
    const number = (await dealer.receive())[2]!;
    if (number.toString("hex") === END) return count;
    assert.is(number.readBigUInt64BE(), BigInt(count));
  }
}

test("one who asks and never reads is given up, and the others get all meanwhile", async () => {
  const { server, ask, reports, reported } = await serve(big, { askers: 10, stallMs: 1_500 });
  const greedy = await ask(1);
  assert.is(await readAll(await ask()), 6_000);
  await reported(1);
  assert.match(reports[0]!, /a replay ended early: the asker has read nothing for 1500 ms/);
  assert.is(server.counters.abandonedReplays, 1);
  assert.is(await readAll(await ask()), 6_000);
  greedy.close();
});

test("one who reads late gets all, however little is kept for it", async () => {
  const { server, ask } = await serve(big);
  const late = await ask(1);
  // Until the server has sent all that there is room for.
  assert.is(await readAll(await ask()), 6_000);
  assert.is(await readAll(late), 6_000);
  assert.is(server.counters.abandonedReplays, 0);
});

test("askers beyond the most are refused, and there is room again afterwards", async () => {
  const { server, ask, reports, reported } = await serve(big, { askers: 1, stallMs: 1_500 });
  const greedy = await ask(1);
  await greedy.receive();
  await ask();
  await reported(1);
  assert.match(reports[0]!, /a replay was refused: 1 are under way/);
  assert.is(server.counters.refusedReplays, 1);
  await reported(2);
  assert.is(await readAll(await ask()), 6_000);
});

test("of the requests that come during a replay, the last one is answered behind it", async () => {
  const { ask, reported } = await serve(big);
  const dealer = await ask(1);
  for (let from = 5_900n; from < 6_000n; from++) await dealer.send(["", numberFrame(from)]);
  await dealer.send(["no request"]);
  // All of them have come by now, and the first replay can't have ended.
  await reported(1);
  assert.is(await readAll(dealer), 6_000);
  await dealer.send(["", numberFrame(6_000n)]);
  const numbers = [];
  for (let count = 0; count < 3; count++) numbers.push((await dealer.receive())[2]!.toString("hex"));
  assert.equal(numbers, [Buffer.from(numberFrame(5_999n)).toString("hex"), END, END]);
});

test("a replay ends with its asker", async () => {
  const { server, ask, reported, reports } = await serve(big, { askers: 10, stallMs: 60_000 });
  const dealer = await ask(1);
  await dealer.receive();
  dealer.close();
  await reported(1);
  assert.match(reports[0]!, /a replay ended early: Host unreachable/);
  assert.is(server.counters.abandonedReplays, 1);
});

test("closing ends replays under way at once", async () => {
  const { server, ask } = await serve(big);
  const dealer = await ask(1);
  await dealer.receive();
  await server.close();
  assert.equal(server.counters.abandonedReplays, 0);
});

test("requests of a thousand frames make a short message, and none is answered", async () => {
  const { server, ask, reported, reports } = await serve(logOf(1));
  const dealer = await ask();
  await readAll(dealer);
  await dealer.send(Array.from({ length: 1_000 }, () => "x"));
  await reported(1);
  assert.match(reports[0]!, /a replay request of 1001 frames \(5, 1, 1, 1, 1, 1, 1, 1, \.\.\. bytes\)/);
  assert.is(server.counters.malformedReplays, 1);
});

test("a socket that can't receive is asked ever more rarely, and works again when it can", async () => {
  const { Router } = await loadZeroMq();
  let calls = 0;
  Object.defineProperty(Router.prototype, "receive", {
    configurable: true,
    value: () => {
      calls++;
      return Promise.reject(new Error("no memory"));
    },
  });
  try {
    const { ask, reported, reports } = await serve(logOf(5));
    const times = [performance.now()];
    for (let count = 0; count < 4; count++) {
      await reported(count + 1);
      times.push(performance.now());
    }
    assert.ok(times[4]! - times[3]! > 30, `waits grow: ${times}`);
    assert.ok(calls <= 6);
    assert.match(reports[0]!, /requests can't be received: no memory/);
    Reflect.deleteProperty(Router.prototype, "receive");
    assert.is(await readAll(await ask()), 5);
  } finally {
    Reflect.deleteProperty(Router.prototype, "receive");
  }
});

test.run();
