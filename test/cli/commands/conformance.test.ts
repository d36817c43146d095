import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { ownLibrary } from "../../store/mooncake-native/own-library.js";
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

test("on a terminal the lines are counted, on stderr only", async () => {
  const many = file("many.jsonl", ...Array.from({ length: 3 }, () => GOOD));
  const { exitCode, stdout, stderr } = await run(["conformance", many, many], { terminal: true });
  assert.is(exitCode, 0);
  assert.ok(stderr.startsWith("\r\u001b[K"));
  assert.match(stderr, "many.jsonl (1 of 2): line 1");
  assert.ok(stderr.endsWith("\r\u001b[K"));
  assert.not.match(stdout, "\r");
  assert.is((await run(["conformance", many])).stderr, "");
});

test("the store is checked before any file; a line beyond the limit ends with 2", async () => {
  const store = await run(["conformance", file("good.jsonl", GOOD), "--store", "foo:"]);
  assert.is(store.exitCode, 2);
  assert.match(store.stderr, /ERR_CONFIG: scenarios can't run against "foo:"/);
  const long = await run(["conformance", file("long.jsonl", GOOD, "x".repeat((16 << 20) + 1))]);
  assert.equal([long.exitCode, long.stdout], [2, ""]);
  assert.match(long.stderr, /long\.jsonl" line 2: more than 16 MiB, the limit of a line/);
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

test("more lines than can be reported on are an error; nothing is shown beside JSON", async () => {
  const many = join(folder, "very-many.jsonl");
  writeFileSync(many, "\n".repeat(1_000_001));
  const { exitCode, stderr } = await run(["conformance", many]);
  assert.is(exitCode, 2);
  assert.match(stderr, /very-many\.jsonl": more than 1000000 lines, the limit of a run/);
  const silent = await run(["conformance", KEYS, "--json"], { terminal: true });
  assert.equal([silent.exitCode, silent.stderr], [0, ""]);
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

const SCENARIOS = readFileSync("test/vectors/mooncake_contract.jsonl", "utf8").split("\n");
const wheel = findMooncake();

test("scenarios need a store that can be opened afresh: anything else is refused with what can", async () => {
  const scenario = file("refused.jsonl", SCENARIOS[0]!);
  for (const store of [
    "other:",
    "mooncake-admin:http://127.0.0.1:1",
    "embedded:x",
    "mooncake:x",
    "embedded",
  ]) {
    const { exitCode, value } = await runJson(["conformance", scenario, "--store", store]);
    assert.is(exitCode, 2, store);
    const { code, message } = value["error"] as { code: string; message: string };
    assert.is(code, "ERR_CONFIG");
    assert.match(message, "use embedded: or mooncake: or mooncake-native:/path/libmooncake_store.so");
  }
});

test("without Mooncake's wheel or library: ERR_CONFIG that says what is needed", async () => {
  const scenario = file("without.jsonl", SCENARIOS[0]!);
  for (const [store, env, needed] of [
    [
      "mooncake:",
      { MOONCAKE_KV_PYTHON: "/no/python" },
      /MOONCAKE_KV_PYTHON.*mooncake-transfer-engine-non-cuda/,
    ],
    ["mooncake-native:", {}, /MOONCAKE_STORE_LIBRARY/],
    ["mooncake-native:/no/lib.so", {}, /there is no library "\/no\/lib\.so"/],
  ] as const) {
    const { exitCode, stderr } = await run(["conformance", scenario, "--store", store], { env });
    assert.is(exitCode, 2, store);
    assert.match(stderr, /^mooncake-kv: ERR_CONFIG: /);
    assert.match(stderr, needed);
  }
});

test("scenarios on the library of the path, or of the environment", async () => {
  const scenarios = file("native.jsonl", ...SCENARIOS.slice(0, 3));
  const library = ownLibrary();
  const before = process.env["MOONCAKE_KV_MASTER_FLAGS"];
  for (const [store, env] of [
    [`mooncake-native:${library}`, {}],
    ["mooncake-native:", { MOONCAKE_STORE_LIBRARY: library }],
  ] as const) {
    const command = ["conformance", scenarios, "--store", store];
    const { exitCode, value } = await runJson<{ files: Report["files"] }>(command, { env });
    assert.equal(value.files[0]!.failures, []);
    assert.equal([exitCode, value.files[0]!.passed], [0, 3]);
  }
  assert.is(process.env["MOONCAKE_KV_MASTER_FLAGS"], before);
});

if (wheel)
  test("a scenario on the real Mooncake", async () => {
    const env = { MOONCAKE_KV_PYTHON: wheel.python };
    const command = ["conformance", file("real.jsonl", SCENARIOS[0]!), "--store", "mooncake:"];
    const { exitCode, value } = await runJson<Report>(command, { env });
    assert.equal(value.files[0]!.failures, []);
    assert.equal([exitCode, value.files[0]!.passed], [0, 1]);
  });

test.after(() => rmSync(folder, { recursive: true }));

test.run();
