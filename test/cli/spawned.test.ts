import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { E1 } from "./helpers/examples.js";

interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the command as a process. `headOnly` closes its output after the first piece, as `head` does. */
async function start(argv: readonly string[], stdin: string, headOnly: boolean = false): Promise<Ended> {
  const { PYTHONHASHSEED: _seed, ...env } = process.env;
  const child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", ...argv], { env });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (headOnly) child.stdout.destroy();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const [exitCode] = (await once(child, "close")) as [number | null];
  return { exitCode, stdout, stderr };
}

test("hashes what a pipe brings", async () => {
  const { exitCode, stdout, stderr } = await start(["hash", "--seed", "0"], JSON.stringify(E1.tokens));
  assert.equal([exitCode, stderr], [0, ""]);
  assert.is(stdout, `0 16 ${E1.sha256[0]}\n16 32 ${E1.sha256[1]}\n`);
});

test("a long output goes through a pipe whole", async () => {
  const tokens = JSON.stringify(Array.from({ length: 50_000 }, (_, token) => token));
  const { exitCode, stdout } = await start(["hash", "--block-size", "1"], tokens);
  assert.is(exitCode, 0);
  const lines = stdout.trimEnd().split("\n");
  assert.is(lines.length, 50_000);
  assert.match(lines.at(-1)!, /^49999 50000 [0-9a-f]{64}$/);
});

test("a reader that stops early ends the command quietly", async () => {
  const tokens = JSON.stringify(Array.from({ length: 50_000 }, (_, token) => token));
  const { exitCode, stdout, stderr } = await start(["hash", "--block-size", "1"], tokens, true);
  assert.equal([exitCode, stderr], [0, ""]);
  assert.match(stdout, /^0 1 [0-9a-f]{64}\n/);
});

test("errors end the process with their status", async () => {
  const wrong = await start(["hash", "x"], "");
  assert.equal([wrong.exitCode, wrong.stdout], [2, ""]);
  assert.match(wrong.stderr, /^mooncake-kv: ERR_HASH: [^\n]*\n$/);
  const failed = await start(["validate", "-", "--type", "KeyMetadata"], "{}");
  assert.is(failed.exitCode, 1);
});

test.run();
