import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { FileReport } from "../../src/conformance/index.js";
import { browserBundle } from "./bundle.js";

// The golden vectors of hashes and keys in a real browser, where the digests are another library's.

const FILES = ["hashing", "hashing_vllm-0.27", "hashing_vllm-0.31", "keys", "pickle", "chunk_hashes"];

const PROGRAM = `
  import { chunkHandlers } from "./dist/src/conformance/vectors/chunk.js";
  import { hashHandlers } from "./dist/src/conformance/vectors/hash.js";
  import { keyHandlers } from "./dist/src/conformance/vectors/key.js";
  import { runVectorLines } from "./dist/src/conformance/vectors/runner.js";
  ${FILES.map((file, index) => `import file${index} from "./test/vectors/${file}.jsonl";`).join("\n")}
  const handlers = { ...hashHandlers, ...keyHandlers, ...chunkHandlers };
  const reports = [];
  for (const [name, text] of [${FILES.map((file, index) => `["${file}", file${index}]`).join()}])
    reports.push(await runVectorLines(name, text.split("\\n"), handlers).catch((error) => String(error.stack)));
  await fetch("/reports", { method: "POST", body: JSON.stringify(reports) });
`;

/** The browser's program on this machine; undefined where there is none. */
function findChromium(): string | undefined {
  return ["chromium", "chromium-browser", "google-chrome"]
    .flatMap((name) => (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name)))
    .find((file) => existsSync(file));
}

/** What a page that runs the program in the browser reports, within a minute. */
async function reportsOf(chromium: string, program: string): Promise<(FileReport | string)[]> {
  const profile = mkdtempSync(join(tmpdir(), "mooncake-kv-chromium-"));
  let told: (body: string) => void;
  let failed: (error: Error) => void;
  const reports = new Promise<string>((resolve, reject) => {
    told = resolve;
    failed = reject;
  });
  const server = createServer((request, response) => {
    if (request.method === "POST") {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        response.end();
        told(Buffer.concat(parts).toString());
      });
    } else if (request.url === "/main.js")
      response.writeHead(200, { "content-type": "text/javascript; charset=utf-8" }).end(program);
    else
      response
        .writeHead(200, { "content-type": "text/html" })
        .end('<!doctype html><script type="module" src="/main.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
  const browser = spawn(chromium, [...flags, `--user-data-dir=${profile}`, url], { stdio: "ignore" });
  browser.once("error", (error) => failed(error));
  const timer = setTimeout(() => failed(new Error("the page reported nothing within a minute")), 60_000);
  try {
    return JSON.parse(await reports) as (FileReport | string)[];
  } finally {
    clearTimeout(timer);
    const ended = new Promise((resolve) => browser.once("close", resolve));
    browser.kill("SIGKILL");
    await ended;
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

const chromium = findChromium();
if (chromium === undefined && process.env["CI"] !== "true")
  console.log("no Chromium on this machine: the vectors are not run in a browser");
else
  test("the golden vectors of hashes, keys and chunks pass in Chromium", async () => {
    assert.ok(chromium, "CI must have Chromium");
    const { code } = await browserBundle(PROGRAM, {
      splitting: false,
      stubbed: ["node:fs"],
      textFiles: ".jsonl",
    });
    const reports = await reportsOf(chromium, code);
    for (const [index, report] of reports.entries()) {
      assert.ok(typeof report === "object", String(report));
      const text = readFileSync(`test/vectors/${FILES[index]}.jsonl`, "utf8");
      const lines = text.split("\n").filter((line) => line.trim() !== "").length;
      assert.equal([report.failures, report.passed], [[], lines], FILES[index]);
    }
    assert.is(reports.length, FILES.length);
  });

test.run();
