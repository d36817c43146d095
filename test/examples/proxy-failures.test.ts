import { once } from "node:events";
import { connect } from "node:net";
import { BlockHasher } from "mooncake-kv";
import * as assert from "uvu/assert";
import { ask, proxySuite, raw, routed, summary, until, words } from "./proxy-suite.js";

// What the proxy of docs/routing.md does when engines fail and clients misbehave.

const { test, start } = proxySuite("kv-aware proxy, failures");

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

test("a stream that an engine breaks off is broken off for the client too", async () => {
  const { engines, proxy, log } = await start([{}]);
  engines[0]!.trouble = "cut";
  const reply = await ask(proxy, words("moon"), { stream: true });
  assert.is(reply.status, 200);
  assert.is(await reply.text().catch((error: Error) => error.message), "terminated");
  assert.match(log[0]!, /^a fails: /);
  engines[0]!.trouble = "none";
  assert.is((await ask(proxy, words("moon"))).status, 200);
});

test("clients that break off, or speak no HTTP, cost nobody else anything", async () => {
  const { engines, proxy } = await start([{}]);
  const { port } = new URL(proxy.url);
  const post = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n";
  for (const text of [
    post,
    `${post}{"prompt": "a`,
    "\0\x01\x02\r\n\r\n",
    "GET /v1/models",
    `${post}${"x".repeat(300)}`,
  ]) {
    const socket = connect(Number(port), "127.0.0.1");
    socket.on("error", () => {}).write(text);
    await once(socket, "connect");
    // By the time another client has its answer, what was sent before has come.
    assert.is((await fetch(`${proxy.url}/health`)).status, 200);
    socket.destroy();
  }
  assert.is((await ask(proxy, words("sun"))).status, 200);
  assert.is(engines[0]!.answered, 1);
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

test.run();
