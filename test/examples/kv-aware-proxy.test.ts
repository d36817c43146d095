import { BlockHasher } from "mooncake-kv";
import * as assert from "uvu/assert";
import { FakeEngine } from "../../examples/helpers/fake-engine.js";
import { KvAwareProxy, type ProxyOptions } from "../../examples/kv-aware-proxy.js";
import { socketSuite } from "../helpers/socket-suite.js";

// The proxy of docs/routing.md in front of engines without a model, which publish what they cache as vLLM does.

const { test, folder, keep } = socketSuite("kv-aware proxy");

/** Engines named a, b, ... and a proxy in front of them. */
async function start(
  shapes: readonly { slidingWindow?: number }[] = [{}, {}],
  options: Partial<ProxyOptions> = {},
): Promise<{ engines: FakeEngine[]; proxy: KvAwareProxy; log: string[] }> {
  const log: string[] = [];
  const engines: FakeEngine[] = [];
  const proxied = [];
  for (const [at, shape] of shapes.entries()) {
    const name = String.fromCodePoint(97 + at);
    const places = { events: `ipc://${folder()}/${name}`, replay: `ipc://${folder()}/${name}-replay` };
    const engine = await FakeEngine.start({ blockSize: 16, ...places, ...shape });
    keep(engine);
    engines.push(engine);
    proxied.push({ name, url: engine.url, ...places });
  }
  const proxy = await KvAwareProxy.start({
    engines: proxied,
    hasher: new BlockHasher({ blockSize: 16, seed: "0" }),
    log: (message) => log.push(message),
    ...options,
  });
  keep(proxy);
  return { engines, proxy, log };
}

const words = (topic: string, count = 64) =>
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
  assert.is(await routed(proxy, words("moon")), "a 48 63");
  assert.is(await routed(proxy, `${words("sun")} ${words("rain")}`), "b 64 64");
  assert.is(await routed(proxy, `${words("moon")} ${words("rain")}`), "a 64 64");
});

test("tokens may come instead of text, and a salt keeps prompts apart", async () => {
  const { proxy } = await start();
  const tokens = Array.from({ length: 65 }, (_, at) => at);
  await ask(proxy, "one");
  const first = await routed(proxy, words("moon"), { cache_salt: "x" });
  assert.is(first, "b 0 0");
  await until(() => proxy.index.size === 4);
  assert.is(await routed(proxy, words("moon"), { cache_salt: "x" }), "b 48 63");
  assert.is((await routed(proxy, words("moon"), { cache_salt: "y" })).split(" ")[1], "0");
  assert.is((await ask(proxy, tokens)).status, 200);
});

test("an engine that empties its cache has nothing any more", async () => {
  const { engines, proxy } = await start();
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  await engines[0]!.clear();
  await until(() => proxy.index.blocksOf("a") === 0);
  assert.is((await routed(proxy, words("moon"))).split(" ")[1], "0");
});

test("engines of different shapes are each asked by their own rules", async () => {
  const { proxy } = await start([{ slidingWindow: 33 }, {}]);
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 8);
  assert.is(await routed(proxy, `${words("moon")} ${words("rain")}`), "a 64 64");
  assert.equal(
    proxy.index.explain([], "a").groups.map(({ kind }) => kind),
    ["full", "swa"],
  );
});

test("an engine that is overloaded or gone is passed over, and left alone for a while", async () => {
  const { engines, proxy, log } = await start([{}, {}, {}]);
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  engines[0]!.trouble = "503";
  const [engine] = (await routed(proxy, words("moon"))).split(" ");
  assert.is.not(engine, "a");
  engines[0]!.trouble = "none";
  await engines[1]!.close();
  for (let count = 0; count < 6; count++) assert.is((await ask(proxy, words(`topic${count}`))).status, 200);
  assert.ok(
    log.some((message) => /b could not be reached/.test(message)),
    log.join("\n"),
  );
  for (const each of engines) await each.close();
  assert.is((await ask(proxy, "nobody")).status, 503);
});

test("without tokens a request goes to the engine with least to do", async () => {
  const { engines, proxy } = await start();
  for (const engine of engines) engine.trouble = "tokenizer";
  const answered = [];
  for (let count = 0; count < 4; count++)
    answered.push((await ask(proxy, words("moon"))).headers.get("x-routed-to"));
  assert.equal(answered, ["a", "b", "a", "b"]);
});

test("requests that run outweigh a hit", async () => {
  const { engines, proxy } = await start([{}, {}], { loadPenalty: 40 });
  assert.is(await routed(proxy, words("moon")), "a 0 0");
  await until(() => proxy.index.size === 4);
  engines[0]!.trouble = "held";
  // 48 tokens are worth one running request, but not two.
  const held = [ask(proxy, words("moon"))];
  await new Promise((resolve) => setTimeout(resolve, 50));
  held.push(ask(proxy, words("moon")));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.is((await routed(proxy, words("moon"))).split(" ")[0], "b");
  engines[0]!.release();
  for (const reply of await Promise.all(held)) assert.is(reply.headers.get("x-routed-to"), "a");
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

test("what makes no sense is answered, and costs nobody else anything", async () => {
  const { proxy } = await start();
  const post = (body: string | Uint8Array<ArrayBuffer>) =>
    fetch(`${proxy.url}/v1/completions`, { method: "POST", body });
  assert.is((await post("{")).status, 400);
  assert.is((await post(new Uint8Array(17 << 20)).catch(() => ({ status: 413 }))).status, 413);
  assert.is((await fetch(`${proxy.url}/nowhere`)).status, 404);
  assert.is((await fetch(`${proxy.url}/health`)).status, 200);
  const controller = new AbortController();
  const gone = fetch(`${proxy.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ prompt: words("moon") }),
    signal: controller.signal,
  });
  controller.abort();
  assert.ok(await gone.catch((error: Error) => error.name === "AbortError"));
  assert.is(await routed(proxy, words("sun")).then((text) => text.split(" ")[1]), "0");
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

test.run();
