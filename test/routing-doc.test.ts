import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { runInNewContext } from "node:vm";
import * as assert from "uvu/assert";
import { BlockIndex, blockStored, EventHashes, ZmqEventPublisher } from "../src/events/index.js";
import { BlockHasher } from "../src/hash/index.js";
import { socketSuite } from "./helpers/socket-suite.js";
import { runProcess } from "./runner/process.js";

// What docs/routing.md shows is what happens.

const { test, folder, keep } = socketSuite("docs/routing.md");
const page = readFileSync("docs/routing.md", "utf8");

/** Code blocks of one language, in order. */
function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    (match) => match[1]!,
  );
}

const hasher = new BlockHasher({ blockSize: 16, seed: "0" });
const tokens = Array.from({ length: 200 }, (_, at) => at);
const hashes = hasher.hash(tokens);
const some = (numbers: readonly number[]) => EventHashes.from(numbers.map((at) => hashes.at(at)!));

test("its program follows an engine and finds what it has", async () => {
  const [following, question, ...others] = blocks("ts");
  assert.is(others.length, 0);
  const places = { endpoint: `ipc://${folder()}/pub`, replayEndpoint: `ipc://${folder()}/replay` };
  const engine = keep(await ZmqEventPublisher.open(places));
  const events = [blockStored({ blockHashes: some([0, 1, 2]), blockSize: 16, medium: "GPU" })];
  await engine.publish({ ts: 0, events, dataParallelRank: null });
  const server = createServer((request, response) => {
    response.end(JSON.stringify(request.url === "/v1/chat/completions/render" ? { token_ids: tokens } : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  keep(server);
  const program = `${following}
while (index.size < 3) await new Promise((resolve) => setTimeout(resolve, 5));
${question}
console.log(JSON.stringify(best));
subscriber.close();
await following;
`
    .replace("tcp://10.0.0.1:5557", places.endpoint)
    .replace("tcp://10.0.0.1:6557", places.replayEndpoint)
    .replace("http://10.0.0.1:8000", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  mkdirSync("build", { recursive: true });
  writeFileSync("build/routing-example.mts", program);
  const { code, output } = await runProcess(
    process.execPath,
    ["--import", "tsx", "build/routing-example.mts"],
    30_000,
  );
  assert.is(code, 0, output);
  assert.is(output.trim(), '{"engine":"a","tokens":48,"blocks":3}');
});

test("its explanation is the one of such an engine", () => {
  const [shown] = blocks("js");
  const index = new BlockIndex({ blockSize: 16 });
  const groups = [
    { kind: "full", blockSize: 32 },
    { kind: "swa", blockSize: 16, slidingWindow: 48 },
  ] as const;
  index.engine("a", { groups, eagle: true });
  const full = { blockHashes: some([1, 3, 5, 7, 9]), blockSize: 32, groupIdx: 0, medium: "GPU" };
  const window = { blockHashes: some([0, 1, 2, 3, 4, 5, 6, 7]), blockSize: 16, groupIdx: 1, medium: "GPU" };
  for (const stored of [full, window]) index.apply("a", blockStored(stored));
  const literal = JSON.parse(runInNewContext(`JSON.stringify(${shown})`) as string) as unknown;
  assert.equal(literal, index.explain(hashes, "a", { maxTokens: 199 }));
});

test("its sizes are those of an index", () => {
  const bytes = (maxEngines?: number) => new BlockIndex({ blockSize: 16, maxEngines }).byteLength;
  assert.is(Math.round(bytes() / 2 ** 20), 30);
  assert.equal(
    [24, 49, 74].map((engines) => (bytes(engines) - bytes()) / 2 ** 20),
    [0, 8, 16],
  );
});

test("its demonstration prints what it says", async () => {
  const { code, output } = await runProcess(
    process.execPath,
    ["--import", "tsx", "examples/kv-aware-proxy.ts"],
    60_000,
  );
  assert.is(code, 0, output);
  assert.ok(page.includes(`\n\`\`\`\n${output.trimEnd()}\n\`\`\`\n`), output);
});

test("what it links to is there", () => {
  for (const [, path] of page.matchAll(/\]\(([^)#:]+)\)/g))
    assert.ok(readFileSync(`docs/${path}`, "utf8").length > 0, path);
});

test.run();
