import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { EventLog, type PublisherProblem, ZmqEventPublisher } from "../../src/events/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { socketSuite } from "../helpers/socket-suite.js";

const { test, folder, keep } = socketSuite("event publisher");
const configError = (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG");
const batch = { ts: 1, events: [], dataParallelRank: null };

test("a replay request is exactly 8 bytes: others are refused, and the publisher goes on", async () => {
  const problems: PublisherProblem[] = [];
  const publisher = keep(
    await ZmqEventPublisher.open({
      endpoint: `ipc://${folder()}/pub`,
      replayEndpoint: `ipc://${folder()}/replay`,
      onProblem: (problem) => {
        problems.push(problem);
        throw new Error("a listener that throws");
      },
    }),
  );
  await publisher.publish(batch);
  const { Dealer } = await loadZeroMq();
  const dealer = keep(new Dealer({ linger: 0, receiveTimeout: 5000 }));
  dealer.connect(publisher.replayEndpoint!);
  for (const bytes of [0, 7, 9, 1000]) await dealer.send(["", new Uint8Array(bytes)]);
  await dealer.send(["", new Uint8Array(8)]);
  assert.equal((await dealer.receive()).length, 4, "the batch");
  assert.equal((await dealer.receive())[2]!.toString("hex"), "ffffffffffffffff");
  assert.is(publisher.malformedReplays, 4);
  assert.match(problems[1]!.message, /\(5, 0, 7 bytes\) makes no sense/);
  // A larger frame is not even taken into memory: whoever sends it is cut off.
  const greedy = keep(new Dealer({ linger: 0, receiveTimeout: 200, reconnectInterval: 60_000 }));
  greedy.connect(publisher.replayEndpoint!);
  await greedy.send(["", new Uint8Array(256 << 10)]);
  await greedy.send(["", new Uint8Array(8)]);
  assert.is(await greedy.receive().catch((error: NodeJS.ErrnoException) => error.code), "EAGAIN");
  assert.is(publisher.malformedReplays, 4);
});

test("a log replays from a number of 8 bytes and nothing else", () => {
  const log = new EventLog();
  for (const bytes of [0, 7, 9, 256 << 10])
    assert.throws(
      () => [...log.replay(new Uint8Array(bytes))],
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
});

test("a closed publisher publishes nothing, and says so", async () => {
  const publisher = await ZmqEventPublisher.open({ endpoint: `ipc://${folder()}/pub` });
  assert.is(await publisher.publish(batch), 0n);
  await publisher.close();
  await publisher.close();
  const error = await publisher.publish(batch).catch((caught: unknown) => caught);
  assert.ok(configError(error));
  assert.match((error as Error).message, /closed/);
});

test("a batch that can't be sent is counted and told, and its number stays its own", async () => {
  const problems: PublisherProblem[] = [];
  const publisher = keep(
    await ZmqEventPublisher.open({
      endpoint: `ipc://${folder()}/pub`,
      onProblem: (problem) => problems.push(problem),
    }),
  );
  const { Publisher } = await loadZeroMq();
  Object.defineProperty(Publisher.prototype, "send", {
    configurable: true,
    value: () => Promise.reject(new Error("no route")),
  });
  try {
    assert.is(await publisher.publish(batch), 0n);
  } finally {
    Reflect.deleteProperty(Publisher.prototype, "send");
  }
  assert.is(await publisher.publish(batch), 1n);
  assert.equal([publisher.failedSends, problems.length], [1, 1]);
  assert.match(problems[0]!.message, /batch 0 could not be sent: no route/);
});

test("batches beyond the high-water mark that wait to be sent are counted, told, and kept for replay", async () => {
  const problems: PublisherProblem[] = [];
  const publisher = keep(
    await ZmqEventPublisher.open({
      endpoint: `ipc://${folder()}/pub`,
      replayEndpoint: `ipc://${folder()}/replay`,
      highWaterMark: 2,
      onProblem: (problem) => problems.push(problem),
    }),
  );
  const numbers = await Promise.all(Array.from({ length: 5 }, () => publisher.publish(batch)));
  assert.equal(numbers, [0n, 1n, 2n, 3n, 4n]);
  assert.equal([publisher.failedSends, problems.length], [3, 3]);
  assert.match(problems[0]!.message, /batch 2 could not be sent: 2 others wait to be sent/);
  await publisher.publish(batch);
  assert.is(publisher.failedSends, 3, "there is room again");
  const { Dealer } = await loadZeroMq();
  const dealer = keep(new Dealer({ linger: 0, receiveTimeout: 5000 }));
  dealer.connect(publisher.replayEndpoint!);
  await dealer.send(["", new Uint8Array(8)]);
  for (let count = 0; count < 6; count++) assert.is((await dealer.receive())[2]!.at(-1), count);
});

test("where it can't publish is told with the endpoint and the reason", async () => {
  const endpoint = `ipc://${folder()}/pub`;
  for (const [options, pattern] of [
    [{ endpoint: "tcp://host" }, /endpoint is "tcp:\/\/host": a port is missing/],
    [{ endpoint: "udp://host:5557" }, /only tcp, ipc and inproc/],
    [{ endpoint: "" }, /must be like tcp/],
    [{ endpoint, replayEndpoint: "tcp://*:70000" }, /replayEndpoint is .*1 to 65535, or 0 for any/],
    [{ endpoint, replayEndpoint: `ipc://${folder()}/no/such/folder` }, /can't publish at ipc:.*\/no\/such/],
    [{ endpoint: `ipc:///${"x".repeat(200)}` }, /its path has 201 bytes; sockets take up to 107/],
  ] as const) {
    const error = await ZmqEventPublisher.open(options).catch((caught: unknown) => caught);
    assert.ok(configError(error), JSON.stringify(options));
    assert.match((error as Error).message, pattern);
  }
});

test("what was bound before something failed is free again", async () => {
  const first = await ZmqEventPublisher.open({ endpoint: "tcp://*:0" });
  const endpoint = first.endpoint.replace("0.0.0.0", "*");
  await first.close();
  const until = performance.now() + 2_000;
  const open = async (options: object): Promise<unknown> => {
    // The system gives a port back a moment later.
    for (;;) {
      const opened = await ZmqEventPublisher.open({ endpoint, ...options }).catch((error: Error) => error);
      if (!(opened instanceof Error)) return keep(opened);
      if (!opened.message.includes(endpoint) || performance.now() > until) return opened;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const failed = await open({ replayEndpoint: `ipc://${folder()}/no/such/folder` });
  assert.ok(configError(failed), String(failed));
  assert.match((failed as Error).message, /no\/such\/folder/);
  const again = await open({});
  assert.instance(again, ZmqEventPublisher);
});

test("it binds wildcards and names, and connects where a host is named, as vLLM's does", async () => {
  const bound = keep(await ZmqEventPublisher.open({ endpoint: `ipc://${folder()}/pub` }));
  const connected = keep(await ZmqEventPublisher.open({ endpoint: "tcp://127.0.0.1:25557" }));
  assert.equal([bound.bound, connected.bound], [true, false]);
});

test("options that nobody knows, and values that are none, are refused", async () => {
  const endpoint = `ipc://${folder()}/pub`;
  for (const options of [
    null,
    { endpont: endpoint },
    { endpoint: 5 },
    { endpoint, highWaterMark: Number.NaN },
    { endpoint, bufferSteps: Number.NaN },
    { endpoint, dataParallelRank: -1 },
    { endpoint, release: "vllm-9" },
    { endpoint, eventForm: "list" },
    { endpoint, batchForm: "list" },
    { endpoint, topic: 5 },
    { endpoint, onProblem: "log" },
    { endpoint: "tcp://*:65535", dataParallelRank: 1 },
  ]) {
    const error = await ZmqEventPublisher.open(options as never).catch((caught: unknown) => caught);
    assert.ok(configError(error), `${JSON.stringify(options)}: ${String(error)}`);
  }
  assert.throws(() => new EventLog({ bufferStep: 5 } as never), configError);
});

test.run();
