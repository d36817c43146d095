import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { installation } from "./setup.js";

// What a user runs, against a real Mooncake: the demo, and every example that takes a store.

const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-programs-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Examples that open the store named by STORE. */
const EXAMPLES = ["save-and-load.ts", "prompt-lookup.ts"];

async function withCluster(run: (uri: string) => Promise<void>): Promise<void> {
  assert.ok(installation);
  await using cluster = await MooncakeCluster.start(installation, { segmentBytes: 768 << 20 });
  const config = join(folder, "mooncake.json");
  writeFileSync(
    config,
    JSON.stringify({
      metadata_server: "P2PHANDSHAKE",
      master_server_address: cluster.masterAddress,
      protocol: "tcp",
      mode: "standalone-store",
      global_segment_size: 0,
      local_buffer_size: "64MB",
    }),
  );
  await run(`mooncake:${config}`);
}

test("every example with a store is tried here", () => {
  assert.equal(readdirSync("examples").filter((name) => EXAMPLES.includes(name)).length, EXAMPLES.length);
});

if (installation === undefined)
  test("without the wheel there is nothing to run, which CI does not allow", () => {
    assert.not.ok(process.env["CI"]);
  });
else {
  test("the demo works on a real Mooncake", () =>
    withCluster(async (uri) => {
      const output = await run(["src/cli/main.ts", "demo", "--json", "--store", uri], {});
      const result = JSON.parse(output) as {
        store: string;
        differences: number;
        first: { hitTokens: number };
      };
      assert.is(result.store, "mooncake");
      assert.is(result.differences, 0);
      assert.is(result.first.hitTokens, 2256);
    }));

  test("the examples work on a real Mooncake", () =>
    withCluster(async (uri) => {
      for (const example of EXAMPLES) await run([join("examples", example)], { STORE: uri });
    }));
}

async function run(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { execFile } = await import("node:child_process");
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ["--import", "tsx", ...args],
      { env: { ...process.env, ...env }, timeout: 120_000, maxBuffer: 1 << 24 },
      (error, stdout, stderr) => {
        if (error) reject(new Error(`${args.join(" ")}: ${stderr || stdout}`));
        else resolve(stdout);
      },
    );
  });
}

test.run();
