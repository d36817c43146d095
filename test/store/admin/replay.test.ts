import { test } from "uvu";
import * as assert from "uvu/assert";
import { KeyTable } from "../../../src/key/key-table.js";
import { keysLimit } from "../../../src/store/admin/answer-limits.js";
import { readHealth, readSegments } from "../../../src/store/admin/answers.js";
import { AdminFailure } from "../../../src/store/admin/failure.js";
import { jsonObject, refusal } from "../../../src/store/admin/json-answer.js";
import { readBatchQuery, readKeyQuery } from "../../../src/store/admin/key-answers.js";
import { LineSplitter } from "../../../src/store/admin/line-splitter.js";
import { MasterMetrics } from "../../../src/store/admin/metrics.js";
import { adminStore } from "./admin-store.js";
import { closing } from "./closing.js";
import { type Answer, type FakeMaster, fakeMaster, type Request } from "./fake-master.js";
import { decodedKeys, type RecordedExchange, recordedExchanges, recordedSamples } from "./recorded.js";

// Every exchange that was recorded with the real master, read with this client.

const close = closing(test);
const exchanges = recordedExchanges();
const scenario = (id: string): RecordedExchange[] => exchanges.filter((exchange) => exchange.scenario === id);

/** Answers GET requests as the master of one scenario did, the last time it was asked the same. */
function replay(recorded: readonly RecordedExchange[]): Promise<FakeMaster> {
  const byPath = new Map<string, RecordedExchange>();
  const byKeys = new Map<string, RecordedExchange>();
  for (const exchange of recorded.filter(({ method }) => method === "GET")) {
    byPath.set(Buffer.from(exchange.path).toString("latin1"), exchange);
    if (exchange.path.startsWith("/batch_query_keys?")) {
      const keys = JSON.stringify(decodedKeys(exchange.path));
      // Encodings that the master read as something else share no decoded form with good ones.
      byKeys.set(keys, exchange);
    }
  }
  const answer = ({ path }: Request): Answer =>
    byPath.get(path) ??
    byKeys.get(JSON.stringify(decodedKeys(path))) ?? { status: 404, body: "404 Not Found" };
  return fakeMaster(answer).then(close);
}

function metricsOf(body: Buffer): MasterMetrics {
  const metrics = new MasterMetrics();
  for (const line of new LineSplitter().linesOf(body)) metrics.read(line);
  return metrics;
}

test("all exchanges are there", () => {
  assert.is(exchanges.length, 315);
});

test("every recorded answer is read as what it is, or refused with the master's own code", () => {
  const seen = { read: 0, refused: 0 };
  for (const { path, status, body: text, method } of exchanges) {
    const answer = { status, body: Buffer.from(text) };
    const what = `${method} ${path}`;
    const endpoint = path.split("?")[0]!;
    const json: unknown = (() => {
      try {
        return JSON.parse(text);
      } catch {
        return undefined;
      }
    })();
    try {
      if (endpoint === "/query_key") {
        const replicas = readKeyQuery(answer, keysLimit(1, 0).values);
        const { data } = json as { data: { size_: number; transport_endpoint_: string }[] };
        assert.equal(
          replicas.map((replica) => [Number(replica.size), replica.endpoint]),
          data.map((replica) => [replica.size_, replica.transport_endpoint_]),
          what,
        );
      } else if (endpoint === "/batch_query_keys") {
        const { data } = (json ?? {}) as { data?: Record<string, { ok: boolean; error: string | null }> };
        const keys = Object.keys(data ?? {});
        const answers = readBatchQuery(answer, keys, keysLimit(keys.length, 0).values);
        assert.equal([...answers.keys()], keys, what);
        for (const [key, { code }] of answers)
          assert.is(code, data![key]!.ok ? 0 : data![key]!.error === "OBJECT_NOT_FOUND" ? -704 : -703, what);
      } else if (endpoint === "/get_segments_detail") {
        assert.is(readSegments(answer).length, (json as { total_segments: number }).total_segments, what);
      } else if (endpoint === "/health") {
        assert.equal(readHealth(answer).ready, true, what);
      } else if (endpoint === "/metrics") {
        assert.is(metricsOf(answer.body).keys, 1n, what);
      } else {
        if (status !== 200) throw refusal(endpoint, answer);
        if (json !== undefined && typeof json === "object")
          assert.ok(jsonObject(endpoint, answer, 1000) instanceof Map);
      }
      assert.is(status, 200, `${what} was read`);
      seen.read++;
    } catch (error) {
      assert.ok(error instanceof AdminFailure, `${what}: ${String(error)}`);
      assert.is.not(status, 200, `${what}: ${error.message}`);
      const code = (json as { error_code?: number } | undefined)?.error_code;
      assert.is(error.storeCode, code ?? (status === 400 && json !== undefined ? -600 : -900), what);
      seen.refused++;
    }
  }
  const read = exchanges.filter(({ status }) => status === 200).length;
  assert.equal(seen, { read, refused: exchanges.length - read });
});

test("keys of any kind are asked for so that the master finds them, or refused by name", async () => {
  const recorded = scenario("admin-key-encoding");
  const master = await replay(recorded);
  const store = close(adminStore({ url: master.url }));
  const keys = [
    "a@b",
    "a/b",
    "a b",
    "a%b",
    "a%25b",
    "a,b",
    "ключ",
    "a&b",
    "a=b",
    "a+b",
    "a#b",
    "a?b",
    "a:b;c",
  ];
  keys.push("line\nbreak", "nul\0key", 'q"uote', "back\\slash", "<tag>", "a'b", "🔑", "tab\tkey", " lead");
  keys.push("trail ", "%", "%2", "%zz", "%41");
  const sizes = await Promise.all(keys.map((key) => store.size([key])));
  assert.equal(
    sizes.map(({ codes }) => Number(codes[0])),
    keys.map((key, index) => (key === "a,b" ? -600 : 50 + index)),
  );
  assert.match(sizes[5]!.failures()[0]!.reason!, /splits its parameter at commas/);
  for (const [index, key] of keys.entries()) {
    const { codes } = await store.get([key], { deadlineMs: 10_000 });
    const carried = !/[ &\n\0\t]/.test(key);
    // A key that is carried gets as far as the owner, who is gone.
    assert.is(Number(codes[0]), carried ? -800 : -600, `${JSON.stringify(key)} (${index})`);
  }
});

test("a key that is not UTF-8 is refused by the lease-free calls", async () => {
  const master = await replay(scenario("admin-key-encoding"));
  const store = close(adminStore({ url: master.url }));
  const { codes } = await store.exists({
    bytes: Uint8Array.of(0xff, 0x80, 0x61, 0x40, 0x62),
    offsets: Uint32Array.of(0, 2, 5),
  });
  assert.equal([...codes], [-600, 1]);
});

test("objects, unfinished and absent ones, replicas, segments and keys come as recorded", async () => {
  const master = await replay([
    ...scenario("admin-objects").filter(
      ({ path, status, body }) => path !== "/get_all_keys" || (status === 200 && body !== ""),
    ),
    ...scenario("admin-unfinished").filter(
      ({ path, body }) => !path.includes("all_keys") && body.includes("READY"),
    ),
    ...scenario("admin-replicas").slice(0, 4),
  ]);
  const store = close(adminStore({ url: master.url }));
  const vllm = `Qwen3-8B@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${"ab".repeat(32)}`;
  const ask = async (key: string) => [
    (await store.exists([key])).codes[0],
    Number((await store.size([key])).codes[0]),
    (await store.replicas([key])).codes[0],
  ];
  assert.equal(await ask(vllm), [1, 1000, 1]);
  assert.equal(await ask("plain"), [1, 1001, 1]);
  assert.equal(await ask("half"), [0, -703, -703]);
  assert.equal(await ask("two"), [1, 1000, 2]);
  assert.equal(await ask(""), [0, -704, -704]);
  const { replicas } = await store.replicas(["two"]);
  assert.equal(
    replicas[0]!.map(({ kind, status, size, segment, address }) => [kind, status, size, segment, address]),
    [
      ["memory", "COMPLETE", 1000n, "127.0.0.1:16558", 139954093031424n],
      ["memory", "COMPLETE", 1000n, "127.0.0.1:16873", 140467828162560n],
    ],
  );
  const listed: string[] = [];
  for await (const key of store.list()) listed.push(key);
  assert.equal(listed, [vllm, "multi", "plain"]);
});

test("segments, usage and health come as recorded", async () => {
  const master = await replay([...scenario("admin-objects"), ...scenario("admin-metrics")]);
  const store = close(adminStore({ url: master.url }));
  assert.equal(await store.segments(), [
    {
      name: "127.0.0.1:13413",
      id: "8523447232580460334-9923462533369948307",
      clientId: "12556272665325295018-2151229320678678454",
      baseAddress: 0x7fcedc000000n,
      size: 16777216n,
      used: 2129n,
      capacity: 16777216n,
      endpoint: "127.0.0.1:15291",
      protocol: "tcp",
      status: "OK",
    },
  ]);
  assert.equal(await store.usage(), { capacity: 16777216n, used: 2129n, keys: 1n });
  assert.equal(await store.health(), {
    code: 0,
    healthy: true,
    message: `the master at ${master.url} is leader, serving`,
  });
  await store.close();
  assert.is((await store.health()).code, 1);
  await master.close();
});

test("the counters of the master are read of its metrics", async () => {
  // Two puts of "a", one of "b", a read of "a", "b" removed.
  const metrics = metricsOf(Buffer.from(`${recordedSamples().join("\n")}\n`));
  const counters = { hits: 1n, misses: 0n, stored: 2n, evicted: 0n, evictedBytes: 0n, refusals: 0n };
  assert.equal(metrics.usage, { keys: 1n, counters });
  const later = Buffer.from(`# HELP total_get_nums_ Total number
valid_get_nums_ 5
total_get_nums_ 7.0\r
valid_get_nums_{tenant="t"} 9
master_put_end_requests_total 3
master_evicted_key_count 99999999999999999999
master_evicted_size_bytes -1
master_key_count NaN
`);
  assert.equal(metricsOf(later).usage, { counters: { hits: 5n, misses: 2n } });
  assert.equal(metricsOf(Buffer.from("nothing\n")).usage, {});
});

test("usage asks for the metrics once", async () => {
  const segments = scenario("admin-objects").findLast(({ path }) => path === "/get_segments_detail")!;
  const master = close(
    await fakeMaster(({ path }) =>
      path === "/metrics" ? { status: 200, body: recordedSamples().join("\n") } : segments,
    ),
  );
  const usage = await close(adminStore({ url: master.url })).usage();
  assert.equal([usage.capacity, usage.keys, usage.counters?.stored], [16777216n, 1n, 2n]);
  assert.equal(
    master.requests.map(({ path }) => path),
    ["/get_segments_detail", "/metrics"],
  );
});

test("a long batch is cut into queries that the master takes, and every key keeps its answer", async () => {
  const answer = ({ path }: Request): Answer => {
    const entries = decodedKeys(path).map((key) => {
      const present = Number(key.slice(2)) % 3 === 0;
      const values = `[{"size_":7,"buffer_address_":1,"protocol_":"tcp","transport_endpoint_":"h:1"}]`;
      return `${JSON.stringify(key)}:{"ok":${present},"error":${present ? null : '"OBJECT_NOT_FOUND"'},"values":${present ? values : null}}`;
    });
    return { status: 200, body: `{"success":true,"data":{${entries.sort().join(",")}}}` };
  };
  const master = close(await fakeMaster(answer));
  const store = close(adminStore({ url: master.url, concurrency: 3 }));
  const keys = Array.from({ length: 2_000 }, (_, index) => `é-${index}`);
  const { codes } = await store.exists(KeyTable.fromTexts([...keys, ...keys]));
  for (let index = 0; index < 4_000; index++) assert.is(codes[index], (index % 2_000) % 3 === 0 ? 1 : 0);
  assert.ok(master.connections() <= 3, `${master.connections()} connections`);
  assert.ok(master.requests.length >= 16);
  assert.ok(master.requests.every(({ path }) => path.length < 40_000));
});

test.run();
