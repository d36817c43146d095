import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { run, runJson } from "../helpers/run.js";

const GOOD = { model_name: "m", tp_rank: 0, pcp_rank: 0, dcp_rank: 0, pp_rank: 0 };
const BAD = { ...GOOD, tp_rank: -1 };
const TYPE = ["--type", "KeyMetadata"];

test("a valid value is ok", async () => {
  const result = await run(["validate", "-", ...TYPE], { stdin: JSON.stringify(GOOD) });
  assert.equal(result, { exitCode: 0, stdout: "ok\n", stderr: "" });
});

test("a wrong value: one line with path, value and rule, and status 1", async () => {
  const { exitCode, stdout, stderr } = await run(["validate", "-", ...TYPE], { stdin: JSON.stringify(BAD) });
  assert.equal([exitCode, stderr], [1, ""]);
  assert.match(stdout, /^KeyMetadata of vllm-0\.33 at \$\.tp_rank: -1 is refused: .*\n$/);
});

test("the same as JSON", async () => {
  const { exitCode, value } = await runJson(["validate", "-", ...TYPE], { stdin: JSON.stringify(BAD) });
  assert.is(exitCode, 1);
  const [error] = value["errors"] as Record<string, unknown>[];
  assert.equal(
    { ...value, errors: [] },
    { type: "KeyMetadata", release: "vllm-0.33", total: 1, valid: 0, errors_left_out: 0, errors: [] },
  );
  assert.equal([error!["index"], error!["path"], error!["value"]], [0, "$.tp_rank", -1]);
  assert.type(error!["rule"], "string");
  const good = await runJson(["validate", "-", ...TYPE], { stdin: JSON.stringify(GOOD) });
  assert.equal([good.exitCode, good.value["valid"], good.value["errors"]], [0, 1, []]);
});

test("a field of another release is refused", async () => {
  const stdin = JSON.stringify({ ...GOOD, store_namespace: "@store_pp:1@store_format:x" });
  assert.is((await run(["validate", "-", ...TYPE], { stdin })).exitCode, 0);
  const old = await run(["validate", "-", ...TYPE, "--release", "vllm-0.27"], { stdin });
  assert.is(old.exitCode, 1);
  assert.match(old.stdout, "$.store_namespace");
});

test("many values: an array with --each, a .jsonl file, any input with --lines", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
  try {
    const lines = `${JSON.stringify(GOOD)}\n\n${JSON.stringify(BAD)}\n${JSON.stringify(GOOD)}\n`;
    const file = join(folder, "values.jsonl");
    writeFileSync(file, lines);
    const each = await run(["validate", "-", ...TYPE, "--each"], {
      stdin: JSON.stringify([GOOD, BAD, GOOD]),
    });
    const byName = await run(["validate", file, ...TYPE]);
    const byOption = await run(["validate", "-", ...TYPE, "--lines"], { stdin: lines });
    for (const { exitCode, stdout } of [each, byName, byOption]) {
      assert.is(exitCode, 1);
      assert.match(stdout, /^[^\n]*\$\.tp_rank: -1[^\n]*\n2 of 3 valid\n$/);
    }
    assert.match(each.stdout, /^\[1\]: /);
    assert.match(byName.stdout, /^line 3: /);
    assert.match(byOption.stdout, /^line 3: /);
    const good = await run(["validate", "-", ...TYPE, "--each"], { stdin: JSON.stringify([GOOD, GOOD]) });
    assert.equal([good.exitCode, good.stdout], [0, "ok: 2 valid\n"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an integer that a double can't hold is refused, not rounded", async () => {
  const stdin = '{"model_name":"m","tp_rank":9007199254740993,"pcp_rank":0,"dcp_rank":0,"pp_rank":0}';
  assert.is((await run(["validate", "-", ...TYPE], { stdin })).exitCode, 1);
});

test("what is no object gets an error about its type", async () => {
  for (const type of ["ReqMeta", "BlockIndexGroup", "KeyMetadata"])
    for (const value of ["null", "[]", "3", '"x"', "true"]) {
      const { exitCode, stdout } = await run(["validate", "-", "--type", type], { stdin: value });
      assert.is(exitCode, 1);
      assert.is(stdout, `${type} of vllm-0.33 at $: ${value} is refused: expected the object ${type}\n`);
    }
});

test("a line that is no JSON is named, and the others are checked", async () => {
  const good = JSON.stringify(GOOD);
  const stdin = Buffer.concat([
    Buffer.from(`${good}\n\n{\n`),
    Buffer.from([0xff, 0x0a]),
    Buffer.from(`${good}\r\nnull\n`),
  ]);
  const text = await run(["validate", "-", ...TYPE, "--lines"], { stdin });
  assert.is(text.exitCode, 1);
  assert.match(
    text.stdout,
    /^line 3: not JSON: .*\nline 4: not UTF-8 text\nline 6: .*expected the object KeyMetadata\n2 of 5 valid\n$/,
  );
  const { exitCode, value } = await runJson(["validate", "-", ...TYPE, "--lines"], { stdin });
  assert.is(exitCode, 1);
  const errors = value["errors"] as Record<string, unknown>[];
  assert.equal(
    errors.map(({ index, line }) => [index, line]),
    [
      [1, 3],
      [2, 4],
      [4, 6],
    ],
  );
  assert.equal([value["total"], value["valid"], value["errors_left_out"]], [5, 2, 0]);
});

test("a report as JSON does not grow without bound", async () => {
  const long = `${JSON.stringify("x".repeat(3 << 20))}\n`;
  const { value } = await runJson(["validate", "-", ...TYPE, "--lines"], { stdin: long.repeat(10) });
  const errors = value["errors"] as unknown[];
  assert.ok(errors.length > 0 && errors.length < 10);
  assert.is(value["errors_left_out"], 10 - errors.length);
});

test("what can't be checked at all ends with 2", async () => {
  const cases: readonly (readonly [readonly string[], string, RegExp])[] = [
    [["-", "--type", "KeyMeta"], "{}", /ERR_SCHEMA: there is no type "KeyMeta".*KeyMetadata.*ReqMeta/],
    [
      ["-", "--type", "reqmeta"],
      "{}",
      /there is no type "reqmeta"; did you mean ReqMeta\?; the types of vllm-0\.33/,
    ],
    [["-", "--type", "Nonsense"], "{}", /there is no type "Nonsense"; the types of vllm-0\.33 are/],
    [["-", "--type", "BoundaryPut", "--release", "vllm-0.27"], "{}", /BoundaryPut/],
    [["-"], "{}", /--type/],
    [["-", ...TYPE, "--release", "vllm-0.30"], "{}", /vllm-0\.31/],
    [["-", ...TYPE], "{", /stdin: not JSON/],
    [["-", ...TYPE, "--each"], "{}", /--each needs a JSON array/],
    [["-", ...TYPE, "--each", "--lines"], "[]", /exclude each other/],
    [["/no/such/file.json", ...TYPE], "", /no such file/],
    [["test", ...TYPE], "", /is a folder/],
  ];
  for (const [argv, stdin, message] of cases) {
    const { exitCode, stdout, stderr } = await run(["validate", ...argv], { stdin });
    assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
    assert.match(stderr, message);
  }
});

test.run();
