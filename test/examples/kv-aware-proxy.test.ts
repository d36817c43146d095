import { spawn } from "node:child_process";
import { once } from "node:events";
import { blockStored, EventHashes, EventLog } from "mooncake-kv/events";
import * as assert from "uvu/assert";
import { FakeEngine } from "../../examples/helpers/fake-engine.js";
import { tokenize } from "../../examples/helpers/fake-tokenizer.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { ask, hasher, proxySuite, routed, summary, until, words } from "./proxy-suite.js";

// Where the proxy of docs/routing.md sends prompts: to engines without a model, which publish what they cache as vLLM does.

const { test, keep, places, start, startProxy } = proxySuite("kv-aware proxy");

test("a prompt goes to the engine that has its beginning, and a hit is what the engine finds", async () => {
  const { proxy } = await start();
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  assert.is(await routed(proxy, words("sun")), "b 0 0");
  await until(() => proxy.index.size === 8);
  for (let time = 0; time < 2; time++) assert.is(await routed(proxy, words("moon")), "a 64 64");
  assert.is(await routed(proxy, `${words("sun", 64)} ${words("rain")}`), "b 64 64");
  assert.is(await routed(proxy, `${words("moon", 64)} ${words("rain")}`), "a 64 64");
  // The last token is always computed: of 64 tokens, three blocks.
  assert.is(await routed(proxy, words("moon", 64)), "a 48 48");
  assert.is(await routed(proxy, tokenize(words("moon"))), "a 64 64", "tokens instead of text");
  assert.is((await routed(proxy, words("moon"), { cache_salt: "x" })).slice(1), " 0 0", "a salt");
});

test("salts, adapters and images keep prompts apart, as in the engine", async () => {
  const { proxy } = await start([{}, {}], {
    adapters: new Map([["poet", "/adapters/poet"]]),
  });
  await ask(proxy, words("moon"), { cache_salt: "x" });
  await until(() => proxy.index.size === 4);
  assert.is(await routed(proxy, words("moon"), { cache_salt: "x" }), "a 64 64");
  await ask(proxy, words("sun"));
  await until(() => proxy.index.size === 8);
  assert.is((await ask(proxy, words("sun"), { model: "none" })).headers.get("x-prefix-hit-tokens"), "64");
  assert.is((await ask(proxy, words("sun"), { model: "poet" })).headers.get("x-prefix-hit-tokens"), "0");
  // An image over tokens 32 to 40: what is before it is the same.
  const features = {
    mm_hashes: { image: ["cat"] },
    mm_placeholders: { image: [{ offset: 32, length: 8 }] },
  };
  const image = await ask(proxy, words("sun"), { fake_features: features });
  assert.is(image.headers.get("x-prefix-hit-tokens"), "32");
});

test("tokens come from /tokenize where an engine can't render", async () => {
  const { engines, proxy } = await start([{ renders: false }, { renders: false }]);
  const chat = { messages: [{ role: "user", content: words("moon") }] };
  const post = () =>
    fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(chat) });
  assert.is(summary(await post()), "200 a 0");
  await until(() => proxy.index.size === 4);
  assert.is(summary(await post()), "200 a 64");
  assert.is(engines[0]!.askedForTokens + engines[1]!.askedForTokens, 1, "the second time it is known");
});

test("an engine that empties its cache has nothing any more", async () => {
  const { engines, proxy } = await start();
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  await engines[0]!.clear();
  await until(() => proxy.index.blocksOf("a") === 0);
  assert.is(await routed(proxy, words("moon")), "b 0 0");
});

test("another engine in the place of one has nothing of what that had", async () => {
  const { engines, proxy } = await start();
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  await engines[0]!.close();
  keep(await FakeEngine.start({ blockSize: 16, ...places("a") }));
  await until(() => proxy.index.blocksOf("a") === 0);
});

test("nothing is known of an engine whose events are lost", async () => {
  const engine = keep(await FakeEngine.start({ blockSize: 16, ...places("unheard") }));
  const { XPublisher } = await loadZeroMq();
  const socket = keep(new XPublisher({ linger: 0 }));
  await socket.bind(places("a").events);
  const log = new EventLog();
  const stored = (topic: string) => {
    const blockHashes = EventHashes.from(hasher.hash(tokenize(words(topic))));
    const events = [blockStored({ blockHashes, blockSize: 16, medium: "GPU" })];
    return log.publish({ ts: 0, events, dataParallelRank: null });
  };
  const { proxy } = await startProxy({
    engines: [{ name: "a", url: engine.url, events: places("a").events }],
  });
  await socket.receive();
  await socket.send(stored("moon"));
  await until(() => proxy.index.size === 4);
  assert.is(summary(await ask(proxy, words("moon"))), "200 a 64");
  stored("rain");
  await socket.send(stored("sun"));
  await until(() => proxy.index.counters.cleared === 1 && proxy.index.blocksOf("a") === 4);
  assert.is(summary(await ask(proxy, words("moon"))), "200 a 0");
  assert.is(summary(await ask(proxy, words("sun"))), "200 a 64");
});

test("engines of different shapes are each asked by their own rules", async () => {
  const { engines, proxy } = await start([{ slidingWindow: 33 }, {}], { loadPenalty: 0 });
  const [windowed, full] = engines;
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  // While a is out of order, b learns the prompt too.
  windowed!.trouble = "overloaded";
  assert.is((await ask(proxy, words("moon"))).headers.get("x-routed-to"), "b");
  await until(() => proxy.index.blocksOf("a") === 8 && proxy.index.blocksOf("b") === 4);
  windowed!.trouble = "none";
  const hits = () => {
    const hashes = hasher.hash(tokenize(words("moon")));
    const matches = proxy.index.match(hashes, { maxTokens: 64 });
    return matches.map(({ engine, tokens }) => `${engine} ${tokens}`);
  };
  assert.equal(hits(), ["a 64", "b 64"]);
  // The window of 33 tokens sees two blocks: what lies before them is not needed there.
  await windowed!.evict(words("moon"), 1, [0, 1]);
  await until(() => proxy.index.blocksOf("a") === 6);
  assert.equal(hits(), ["a 64", "b 64"]);
  await windowed!.evict(words("moon"), 1, [3]);
  await full!.evict(words("moon"), 0, [3]);
  await until(() => proxy.index.blocksOf("a") === 5 && proxy.index.blocksOf("b") === 3);
  assert.equal(hits(), ["b 48"]);
  assert.is(await routed(proxy, words("moon")), "b 48 48");
});

test("requests that run outweigh a hit", async () => {
  const { engines, proxy } = await start([{}, {}], { loadPenalty: 40 });
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  engines[0]!.trouble = "held";
  // 64 tokens outweigh one running request, but not two.
  const held = [ask(proxy, words("moon"))];
  await until(() => engines[0]!.held === 1);
  held.push(ask(proxy, words("moon")));
  await until(() => engines[0]!.held === 2);
  assert.is(await routed(proxy, words("moon")), "b 0 0");
  engines[0]!.release();
  for (const reply of await Promise.all(held)) assert.is(reply.headers.get("x-routed-to"), "a");
});

test("many prompts at once go to all engines", async () => {
  const { engines, proxy } = await start([{}, {}, {}]);
  const replies = await Promise.all(Array.from({ length: 30 }, (_, at) => ask(proxy, words(`topic${at}`))));
  assert.ok(replies.every(({ status }) => status === 200));
  const answered = engines.map((engine) => engine.answered);
  assert.is(
    answered.reduce((sum, count) => sum + count, 0),
    30,
  );
  assert.ok(
    answered.every((count) => count >= 5),
    `${answered}`,
  );
});

test("ranks of one engine are engines of their own, and asked for by a header", async () => {
  const engine = keep(await FakeEngine.start({ blockSize: 16, ...places("a") }));
  const tcp = "tcp://127.0.0.1:9";
  const { proxy } = await startProxy({
    engines: [0, 1].map((dataParallelRank) => ({
      name: `a-dp${dataParallelRank}`,
      url: engine.url,
      events: tcp,
      dataParallelRank,
    })),
  });
  const ranks = [];
  for (let count = 0; count < 2; count++) {
    ranks.push((await ask(proxy, `prompt ${count}`)).headers.get("x-routed-to"));
    ranks.push(engine.headers["x-data-parallel-rank"]);
  }
  assert.equal(ranks, ["a-dp0", "0", "a-dp1", "1"]);
});

test("/routing says where a prompt would go, and why", async () => {
  const { engines, proxy } = await start();
  await ask(proxy, words("moon"));
  await until(() => proxy.index.size === 4);
  const reply = await fetch(`${proxy.url}/routing/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ prompt: `${words("moon", 40)} ${words("sun")}` }),
  });
  const said = (await reply.json()) as {
    tokens: number;
    engines: { name: string; blocks: number; match: { tokens: number } }[];
    events: Record<string, { batches: number; replayed: number }>;
  };
  assert.is(said.tokens, 105);
  assert.equal(
    said.engines.map(({ name, blocks, match }) => [name, blocks, match.tokens]),
    [
      ["a", 4, 32],
      ["b", 0, 0],
    ],
  );
  assert.is(said.events["a"]!.batches + said.events["a"]!.replayed, 1);
  assert.is(engines[0]!.answered + engines[1]!.answered, 1, "nothing was computed for it");
  const plain = (await (await fetch(`${proxy.url}/routing`)).json()) as { tokens: null };
  assert.is(plain.tokens, null);
});

test("the program serves the engines of its command line", async () => {
  const engine = keep(await FakeEngine.start({ blockSize: 16, ...places("a") }));
  const { events, replay } = places("a");
  const program = [...process.execArgv, "examples/kv-aware-proxy.ts", "--port", "0", "--seed", "0"];
  const child = spawn(process.execPath, [...program, "--engine", `a=${engine.url},${events},${replay}`]);
  keep({ close: () => child.kill() });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const [, url] = /^listening at (.*), in front of a\n$/.exec(line.toString()) ?? [];
  const ask = () =>
    fetch(`${url}/v1/completions`, { method: "POST", body: `{"prompt": "${words("moon")}"}` });
  assert.is(summary(await ask()), "200 a 0");
  for (let turn = 0; summary(await ask()) !== "200 a 64"; turn++) assert.ok(turn < 1000);
});

test("engines that can't be told apart or followed are refused", async () => {
  const engine = { name: "a", url: "http://127.0.0.1:9", ...places("a") };
  for (const [engines, message] of [
    [[engine, engine], /names of their own/],
    [[{ ...engine, name: "a b" }], /names of their own/],
    [[{ ...engine, events: "tcp://*:5557" }], /where an engine binds/],
    [[], /maxEngines/],
  ] as const)
    assert.match(String(await startProxy({ engines }).catch((error: Error) => error.message)), message);
});

test.run();
