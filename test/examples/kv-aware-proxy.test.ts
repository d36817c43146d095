import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { BlockHasher } from "mooncake-kv";
import { blockStored, EventHashes, EventLog } from "mooncake-kv/events";
import * as assert from "uvu/assert";
import { FakeEngine, type FakeEngineOptions, tokenize } from "../../examples/helpers/fake-engine.js";
import { KvAwareProxy, type ProxiedEngine, type ProxyOptions } from "../../examples/kv-aware-proxy.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";
import { socketSuite } from "../helpers/socket-suite.js";

// The proxy of docs/routing.md in front of engines without a model, which publish what they cache as vLLM does.

const { test, folder, keep } = socketSuite("kv-aware proxy");

const hasher = new BlockHasher({ blockSize: 16, seed: "0" });

const places = (name: string) => ({
  events: `ipc://${folder()}/${name}`,
  replay: `ipc://${folder()}/${name}-replay`,
});

async function startProxy(options: Partial<ProxyOptions>): Promise<{ proxy: KvAwareProxy; log: string[] }> {
  const log: string[] = [];
  const proxy = await KvAwareProxy.start({
    engines: [],
    hasher,
    log: (message) => log.push(message),
    ...options,
  });
  return { proxy: keep(proxy), log };
}

/** Engines named a, b, ... and a proxy in front of them. */
async function start(
  shapes: readonly Partial<FakeEngineOptions>[] = [{}, {}],
  options: Partial<ProxyOptions> = {},
): Promise<{ engines: FakeEngine[]; proxy: KvAwareProxy; log: string[] }> {
  const engines: FakeEngine[] = [];
  const proxied: ProxiedEngine[] = [];
  for (const [at, shape] of shapes.entries()) {
    const name = String.fromCodePoint(97 + at);
    const engine = await FakeEngine.start({ blockSize: 16, ...places(name), ...shape });
    engines.push(keep(engine));
    proxied.push({ name, url: engine.url, ...places(name) });
  }
  return { engines, ...(await startProxy({ engines: proxied, ...options })) };
}

const words = (topic: string, count = 65) =>
  Array.from({ length: count }, (_, at) => `${topic}${at}`).join(" ");

async function ask(proxy: KvAwareProxy, prompt: unknown, more: object = {}): Promise<Response> {
  return fetch(`${proxy.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "none", prompt, ...more }),
  });
}

/** Which engine answered a prompt, and how many tokens of it were expected there and found. */
async function routed(proxy: KvAwareProxy, prompt: unknown, more: object = {}): Promise<string> {
  const reply = await ask(proxy, prompt, more);
  assert.is(reply.status, 200);
  const { usage } = (await reply.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
  const expected = reply.headers.get("x-prefix-hit-tokens");
  return `${reply.headers.get("x-routed-to")} ${expected} ${usage.prompt_tokens_details.cached_tokens}`;
}

/** The same of an answer that is not read. */
const summary = ({ status, headers }: Response) =>
  `${status} ${headers.get("x-routed-to")} ${headers.get("x-prefix-hit-tokens")}`;

/** A request as `fetch` would not send it. */
function raw(
  proxy: KvAwareProxy,
  options: RequestOptions,
  body: string | Buffer = "",
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(proxy.url, options, async (reply) => {
      let text = "";
      for await (const chunk of reply) text += chunk;
      resolve({ status: reply.statusCode!, headers: reply.headers, text });
    });
    request.on("error", reject).end(body);
  });
}

async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    assert.ok(turn < 2000, "it does not come about");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

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

test("an engine that is overloaded is passed over, and comes last for a while", async () => {
  const { engines, proxy, log } = await start([{}, {}], { pauseMs: 300 });
  const longer = `${words("moon", 64)} ${words("rain")}`;
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  assert.is(await routed(proxy, longer), "a 64 64");
  await until(() => proxy.index.size === 8);
  engines[0]!.trouble = "overloaded";
  assert.is(await routed(proxy, words("moon")), "b 0 0");
  engines[0]!.trouble = "none";
  await until(() => proxy.index.blocksOf("b") === 4);
  assert.is(await routed(proxy, longer), "b 64 64", "though a has more of it");
  assert.equal(log, ["a fails: it answers 503"]);
  for (let turn = 0; (await routed(proxy, longer)) !== "a 128 128"; turn++) assert.ok(turn < 1000);
});

test("the answer of the last engine comes through, and when all have failed all are tried", async () => {
  const { engines, proxy } = await start();
  for (const engine of engines) engine.trouble = "overloaded";
  const refused = await ask(proxy, words("moon"));
  assert.is(refused.status, 503);
  assert.match(await refused.text(), /overloaded/);
  engines[0]!.trouble = "none";
  assert.is((await ask(proxy, words("moon"))).status, 200);
});

test("an engine that is gone costs no request", async () => {
  const { engines, proxy, log } = await start([{}, {}, {}]);
  await engines[1]!.close();
  for (let count = 0; count < 6; count++) assert.is((await ask(proxy, words(`topic${count}`))).status, 200);
  assert.is(
    log.filter((line) => /^b (?:fails|gives no tokens): connect ECONNREFUSED/.test(line)).length > 0,
    true,
  );
  for (const each of engines) await each.close();
  const refused = await ask(proxy, "nobody");
  assert.is(refused.status, 503);
  assert.match(await refused.text(), /no engine could serve the request/);
});

test("a request that breaks engines does not break them all", async () => {
  for (const trouble of ["breaking", "failing"] as const) {
    const { engines, proxy } = await start([{}, {}, {}, {}]);
    for (const engine of engines) engine.trouble = trouble;
    assert.is((await ask(proxy, "boom")).status, trouble === "breaking" ? 503 : 500);
    assert.is(engines.filter(({ headers }) => "host" in headers).length, 2, trouble);
    await proxy.close();
    for (const engine of engines) await engine.close();
  }
});

test("without tokens a request goes to the engine with least to do, and nothing is said of hits", async () => {
  for (const trouble of ["no-tokens", "mute-tokens"] as const) {
    const { engines, proxy } = await start([{}, {}], { tokensTimeoutMs: 50 });
    for (const engine of engines) engine.trouble = trouble;
    const answered = [];
    for (let count = 0; count < 4; count++) answered.push(summary(await ask(proxy, words("moon"))));
    assert.equal(answered, ["200 a null", "200 b null", "200 a null", "200 b null"]);
    // One that does not answer is asked once, then left alone.
    if (trouble === "mute-tokens")
      assert.equal(
        engines.map(({ askedForTokens }) => askedForTokens),
        [1, 1],
      );
    await proxy.close();
    for (const engine of engines) await engine.close();
  }
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

test("a stream comes through as it is", async () => {
  const { proxy } = await start();
  const reply = await fetch(`${proxy.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({
      model: "none",
      stream: true,
      messages: [{ role: "user", content: words("moon") }],
    }),
  });
  assert.is(reply.headers.get("content-type"), "text/event-stream");
  const lines = (await reply.text()).split("\n\n").filter((line) => line !== "");
  assert.is(lines.length, 4);
  assert.is(lines.at(-1), "data: [DONE]");
});

test("an engine stops when its client goes away", async () => {
  const { engines, proxy, log } = await start([{}]);
  engines[0]!.trouble = "held";
  const controller = new AbortController();
  const gone = fetch(`${proxy.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ prompt: words("moon") }),
    signal: controller.signal,
  });
  await until(() => engines[0]!.held === 1);
  controller.abort();
  assert.is(await gone.catch((error: Error) => error.name), "AbortError");
  await until(() => engines[0]!.abandoned === 1);
  engines[0]!.release();
  assert.equal(log, [], "neither the engine's fault nor anybody's");
  assert.is((await ask(proxy, words("sun"))).status, 200);
});

test("a client that is gone before its prompt is read costs no engine anything", async () => {
  const { engines, proxy, log } = await start([{}], { tokensTimeoutMs: 60_000 });
  engines[0]!.trouble = "mute-tokens";
  const controller = new AbortController();
  const gone = fetch(`${proxy.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ prompt: words("moon") }),
    signal: controller.signal,
  });
  await until(() => engines[0]!.askedForTokens === 1);
  controller.abort();
  assert.is(await gone.catch((error: Error) => error.name), "AbortError");
  engines[0]!.trouble = "none";
  // It is asked for tokens again, and has got one request in all.
  assert.is(summary(await ask(proxy, words("moon"))), "200 a 0");
  assert.is(engines[0]!.answered, 1);
  assert.equal(log, []);
});

test("what makes no sense is answered, and costs nobody else anything", async () => {
  const { engines, proxy, log } = await start([{}]);
  const post = (body: string | Uint8Array<ArrayBuffer>, path = "/v1/completions") =>
    fetch(`${proxy.url}${path}`, { method: "POST", body });
  for (const body of ["{", "null", "[]", "3", "{}", '{"prompt": {}}', '{"prompt": [-1]}', '{"messages": 5}'])
    assert.is((await post(body)).status, 400, body);
  for (const body of ['{"prompt": [1, 4294967296]}', '{"prompt": [[1], [2]]}'])
    assert.is((await post(body)).status, 400, body);
  const long = await raw(proxy, { method: "POST", path: "/v1/completions" }, Buffer.alloc((16 << 20) + 1));
  assert.is(long.status, 413);
  assert.match(long.text, /longer than 16777216 bytes/);
  assert.is((await fetch(`${proxy.url}/health`)).status, 200);
  assert.equal(log, []);
  assert.is(engines[0]!.answered, 0);
});

test("a salt that can't be hashed is no engine's fault", async () => {
  // The engine of the test hashes it in pickle, where it can be.
  const { proxy, log } = await start([{}], {
    hasher: new BlockHasher({ blockSize: 16, seed: "0", algorithm: "sha256_cbor" }),
  });
  assert.is(summary(await ask(proxy, words("moon"), { cache_salt: "\ud800" })), "200 a null");
  assert.is(summary(await ask(proxy, words("moon"))), "200 a 0");
  assert.equal(log, []);
});

test("clients reach what lies under /v1/, and no other host", async () => {
  const { engines, proxy } = await start([{}]);
  const host = new URL(engines[0]!.url).host;
  for (const path of [
    "/tokenize",
    "/v1/../tokenize",
    "/v1/%2e%2e/tokenize",
    "/sleep",
    `http://${host}/tokenize`,
  ])
    assert.match((await raw(proxy, { method: "POST", path }, "{}")).text, /there is no/, path);
  assert.is((await raw(proxy, { path: `//${host}/v1/completions` })).status, 404);
  const body = JSON.stringify({ prompt: "a b" });
  const reply = await raw(
    proxy,
    {
      method: "POST",
      path: "//v1/completions?x=1",
      headers: { connection: "close, x-hop", "x-hop": "1", "x-end": "2", "transfer-encoding": "chunked" },
    },
    body,
  );
  assert.is(reply.status, 200);
  const { "x-hop": hop, "x-end": end, "content-length": length } = engines[0]!.headers;
  assert.equal([hop, end, length], [undefined, "2", `${body.length}`]);
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
