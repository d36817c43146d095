import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { run, runJson } from "../helpers/run.js";

const KEYS = "test/vectors/keys.jsonl";

interface Report {
  readonly files: readonly {
    readonly file: string;
    readonly total: number;
    readonly passed: number;
    readonly failed: number;
    readonly failures: readonly Record<string, unknown>[];
  }[];
}

const vector = (id: string, op: string, input: object, expected: unknown) =>
  JSON.stringify({ id, source: "vllm-0.33.0", op, input, expected });

const GOOD = vector("a-1", "build_key_string", { key_prefix: "p", chunk_hash: "ab" }, "p@ab");
const WRONG = vector("a-2", "build_key_string", { key_prefix: "p", chunk_hash: "ab" }, "p@cd");
const UNKNOWN = vector("a-3", "no_such_op", {}, null);

const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
const file = (name: string, ...lines: readonly string[]) => {
  const path = join(folder, name);
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
  return path;
};

test("a recorded file passes: a table by file and op, and status 0", async () => {
  const { exitCode, stdout, stderr } = await run(["conformance", KEYS]);
  assert.equal([exitCode, stderr], [0, ""]);
  assert.match(stdout, /^file +op +total +passed +failed\n/);
  assert.match(stdout, /keys\.jsonl +build_prefix +(\d+) +\1 +0\n/);
  assert.match(stdout, /keys\.jsonl +all +(\d+) +\1 +0\n/);
  assert.match(stdout, /\n(\d+) of \1 passed, 0 failed\n$/);
});

test("JSON has exactly the published members", async () => {
  const good = file("good.jsonl", GOOD);
  const mixed = file("mixed.jsonl", GOOD, WRONG, UNKNOWN);
  const { exitCode, value } = await runJson(["conformance", good, mixed]);
  assert.is(exitCode, 1);
  assert.equal(value, {
    files: [
      { file: good, total: 1, passed: 1, failed: 0, deviations: {}, failures: [] },
      {
        file: mixed,
        total: 3,
        passed: 1,
        failed: 2,
        deviations: {},
        failures: [
          { id: "a-2", path: "$ (vllm-0.33)", expected: "p@cd", actual: "p@ab" },
          { id: "a-3", path: "$.op", expected: "an op of this implementation", actual: "no_such_op" },
        ],
      },
    ],
  });
});

test("each failed id has a line with the first differing path", async () => {
  const { exitCode, stdout } = await run(["conformance", file("wrong.jsonl", GOOD, WRONG, UNKNOWN)]);
  assert.is(exitCode, 1);
  assert.match(stdout, 'failed a-2: $ (vllm-0.33): expected "p@cd", got "p@ab"\n');
  assert.match(stdout, 'failed a-3: $.op: expected "an op of this implementation", got "no_such_op"\n');
  assert.match(stdout, "1 of 3 passed, 2 failed\n");
});

test("broken lines count as failed, empty files don't pass", async () => {
  const broken = await runJson<Report>(["conformance", file("broken.jsonl", GOOD, "{")]);
  assert.equal([broken.exitCode, broken.value.files[0]!.failed], [1, 1]);
  const empty = await run(["conformance", file("empty.jsonl")]);
  assert.is(empty.exitCode, 1);
  assert.match(empty.stdout, "no vector in this file");
});

test("an unreadable file ends the command before anything runs", async () => {
  for (const [path, reason] of [
    ["/no/such/file.jsonl", "no such file"],
    ["test/vectors", "is a folder"],
  ] as const) {
    const { exitCode, stdout, stderr } = await run(["conformance", KEYS, path]);
    assert.equal([exitCode, stdout], [2, ""]);
    assert.is(stderr, `mooncake-kv: ERR_USAGE: cannot read "${path}": ${reason}\n`);
  }
  const { exitCode, value } = await runJson(["conformance", "/no/such/file.jsonl"]);
  assert.is(exitCode, 2);
  assert.is((value["error"] as { code: string }).code, "ERR_USAGE");
});

test("progress is shown on a terminal only", async () => {
  const { stdout, stderr } = await run(["conformance", KEYS], { terminal: true });
  assert.match(stderr, "keys.jsonl");
  assert.not.match(stdout, "\u001b");
});

test.after(() => rmSync(folder, { recursive: true }));

test.run();
