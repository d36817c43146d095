import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { askStoreAt } from "../../src/cli/lookup/ask-store.js";
import { lookupEngine } from "../../src/cli/lookup/engine-groups.js";
import { MooncakeKvError } from "../../src/errors.js";
import { BlockHasher } from "../../src/hash/index.js";
import { type KvStore, openStore } from "../../src/store/index.js";
import { run, runJson } from "./helpers/run.js";

// An outage of the store is never a miss: the command says why nothing is known, and ends with 1, in time.

const test = suite("mooncake-kv lookup, outages");
const servers: Server[] = [];
/** Loaded once and before the clock runs: a busy machine needs longer for that than a question may take here. */
let embedded: KvStore;
test.before(async () => {
  embedded = await openStore("embedded:?capacity=1MiB");
  await (await openStore("mooncake-admin:http://127.0.0.1:1")).close();
});
test.after(() => embedded.close());
test.after.each(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** The admin URI of a server that answers every request with one status; without one, with nothing at all. */
async function adminUri(status?: number): Promise<string> {
  const server = createServer((_request, response) => {
    if (status !== undefined) response.writeHead(status).end("{}");
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `mooncake-admin:http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const PROMPT = ["--model-name", "m", "--seed", "0", "--block-size", "1", "1", "2", "3", "4"];

for (const [name, timeout, uri, expected] of [
  [
    "nobody listens",
    5_000,
    () => "mooncake-admin:http://127.0.0.1:1",
    /RPC_FAIL, -900\): .*ECONNREFUSED 127\.0\.0\.1:1$/,
  ],
  ["HTTP 500", 5_000, () => adminUri(500), /^unknown: .*-900\): .*\b500\b/],
  ["HTTP 401", 5_000, () => adminUri(401), /^unknown: .*-900\): .*\b401\b/],
  ["no answer", 500, () => adminUri(), /^unknown: the master did not answer in time \(RPC_TIMEOUT, -901\)/],
] as const)
  test(`${name}: unknown, 1, in time, as text and as JSON`, async () => {
    const argv = ["lookup", "--store", await uri(), "--timeout", String(timeout), ...PROMPT];
    const started = performance.now();
    const { stdout, stderr, exitCode } = await run(argv);
    assert.equal([exitCode, stderr], [1, ""], stdout);
    assert.match(stdout, /^unknown: [^\n]+\n$/);
    assert.match(stdout.trimEnd(), expected);
    const json = await runJson(argv);
    assert.is(json.exitCode, 1);
    assert.equal([json.value["hit_tokens"], json.value["questions"]], [null, 1]);
    // What was left for the question differs.
    const shown = (text: string) => text.trimEnd().replace(/\d+ ms$/, "ms");
    assert.is(shown(`unknown: ${String(json.value["unknown"])}`), shown(stdout));
    assert.ok(performance.now() - started < 5_000);
  });

const engine = lookupEngine(
  { modelName: "m", cachePrefix: "", tpSize: 1, ppSize: 1, pcpSize: 1, dcpSize: 1, kvCacheLayout: "LBNHC" },
  1,
);
const prompt = {
  blockHashes: new BlockHasher({ blockSize: 1, seed: "0" }).hash([1, 2, 3, 4]),
  blockSize: 1,
  numTokens: 4,
};
const never = new Promise<never>(() => {});
const ask = (open: () => Promise<KvStore>, timeoutMs = 30) =>
  askStoreAt("x:", engine, prompt, { timeoutMs, open });
/** The embedded store with other members. */
const storeWith = async (members: Partial<KvStore>): Promise<KvStore> =>
  ({
    exists: (keys, options) => embedded.exists(keys, options),
    close: async () => {},
    ...members,
  }) as KvStore;

test("a store that does not open is unknown, and closed when it opens after all", async () => {
  let opened: (store: KvStore) => void = () => {};
  const { hitTokens, unknown, failed } = await ask(() => new Promise((resolve) => (opened = resolve)));
  assert.equal([hitTokens, unknown, failed], [null, "the store was not open within 30 ms", true]);
  await new Promise<void>((resolve) => opened({ close: async () => resolve() } as unknown as KvStore));
  const broken = await ask(() => Promise.reject(new MooncakeKvError("ERR_STORE", "no master")));
  assert.equal([broken.unknown, broken.failed], ["no master", true]);
});

test("a store that ignores its deadline is not waited for", async () => {
  let closed = false;
  const close = async () => {
    closed = true;
  };
  const { hitTokens, unknown } = await ask(() => storeWith({ exists: () => never, close }));
  assert.equal([hitTokens, unknown, closed], [null, "the store did not answer within 30 ms", true]);
});

test("a store that does not close holds nobody up", async () => {
  assert.is((await ask(() => storeWith({ close: () => never }), 5_000)).hitTokens, 0);
});

test("each question has what is left of the time", async () => {
  const deadlines: number[] = [];
  const exists: KvStore["exists"] = (keys, options) => {
    deadlines.push(options!.deadlineMs!);
    return embedded.exists(keys, options);
  };
  const open = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return storeWith({ exists });
  };
  assert.is((await ask(open, 5_000)).hitTokens, 0);
  assert.is(deadlines.length, 1);
  assert.ok(Number.isInteger(deadlines[0]) && deadlines[0]! >= 1 && deadlines[0]! < 5_000, `${deadlines[0]}`);
});

test("what is written wrong of the engine is told first, even where there is nothing to ask", async () => {
  const { stderr, exitCode } = await run([
    "lookup",
    "--store",
    "embedded:",
    "--model-name",
    "m",
    "--group",
    "bogus",
    "1",
  ]);
  assert.is(exitCode, 2);
  assert.match(stderr, /--group "bogus"/);
});

test("a timeout beyond what a timer takes is no timeout of a millisecond", async () => {
  const { stdout, exitCode } = await run([
    ...["lookup", "--store", "embedded:?capacity=1MiB", "--timeout", "99999999999"],
    ...PROMPT,
  ]);
  assert.is(exitCode, 0, stdout);
});

test.run();
