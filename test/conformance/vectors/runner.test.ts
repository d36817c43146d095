import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { JsonObject, JsonValue, VectorHandlers } from "../../../src/conformance/vectors/handler.js";
import { vectorHandlers } from "../../../src/conformance/vectors/index.js";
import { runVectorFile, runVectorLines } from "../../../src/conformance/vectors/runner.js";
import { isMooncakeKvError, MooncakeKvError } from "../../../src/errors.js";

// The runner must be able to fail: each way to be wrong is one failed line with a path.

const line = (change: Record<string, unknown> = {}) =>
  JSON.stringify({
    id: "k-1",
    source: "vllm-0.33.0",
    op: "build_key_string",
    input: { key_prefix: "p", chunk_hash: "00ff" },
    expected: "p@00ff",
    ...change,
  });
const run = (lines: readonly string[], handlers: VectorHandlers = vectorHandlers) =>
  runVectorLines("file", lines, handlers);

test("a right vector passes, and counts by its op", async () => {
  assert.equal(await run([line(), "", line({ id: "k-2" })]), {
    file: "file",
    total: 2,
    passed: 2,
    failed: 0,
    skipped: 0,
    ops: { build_key_string: { total: 2, passed: 2, failed: 0, skipped: 0 } },
    deviations: {},
    failures: [],
  });
});

const failing: readonly [string, string, string, JsonValue, RegExp][] = [
  ["a flipped digit", line({ expected: "p@00fe" }), "$ (vllm-0.33)", "p@00fe", /^p@00ff$/],
  ["an unknown op", line({ op: "no_such_op" }), "$.op", "an op of this implementation", /^no_such_op$/],
  [
    "an op that every object has",
    line({ op: "toString" }),
    "$.op",
    "an op of this implementation",
    /^toString$/,
  ],
  ["an unknown source", line({ source: "vllm-9.9" }), "$.source", "a known source", /^vllm-9\.9$/],
  [
    "an unknown source among others",
    line({ same_in: ["vllm-9.9"] }),
    "$.source",
    "a known source",
    /^vllm-9\.9$/,
  ],
  [
    "input that the handler does not understand",
    line({ input: {} }),
    "$ (vllm-0.33)",
    "p@00ff",
    /TypeError.*key_prefix/,
  ],
];
for (const [name, text, path, expected, actual] of failing)
  test(`${name} fails its line`, async () => {
    const report = await run([line(), text]);
    assert.equal([report.total, report.passed, report.failed], [2, 1, 1]);
    const [failure] = report.failures;
    assert.equal([failure?.id, failure?.path, failure?.expected], ["k-1", path, expected]);
    assert.match(String(failure?.actual), actual);
  });

for (const [name, text] of [
  ["garbage", "{not json"],
  ["a line without an id", line({ id: undefined })],
  ["a line without an outcome", line({ expected: undefined })],
  ["a JSON null", "null"],
  ["a JSON number", "5"],
  ["an input of null", line({ input: null })],
  ["a same_in that is no list", line({ same_in: 5 })],
] as const)
  test(`${name} fails as unreadable, with its line number`, async () => {
    const report = await run([line(), text]);
    assert.equal([report.total, report.failed, report.ops["(unreadable)"]?.failed], [2, 1, 1]);
    assert.equal([report.failures[0]?.id, report.failures[0]?.path], ["line 2", "$"]);
  });

const throwing = (error: unknown): VectorHandlers => ({
  build_key_string: () => {
    throw error;
  },
});
const ours = new MooncakeKvError("ERR_KEY", "no");
const python = { error: { type: "ValueError", message: "no" } };

test("an error of ours is right where the vector has an error, and wrong where it has a value", async () => {
  const refused = line({ expected: undefined, ...python });
  assert.is((await run([refused], throwing(ours))).failed, 0);
  assert.is((await run([line()], throwing(ours))).failures[0]?.actual, "ERR_KEY: no");
});

test("a crash is never right, not even where the vector has an error", async () => {
  const refused = line({ id: "k-1-int64-wrap", expected: undefined, ...python });
  for (const error of [new TypeError("oops"), new RangeError("oops"), "oops"])
    for (const text of [refused, line(), line({ id: "k-1-int64-wrap" })]) {
      const report = await run([text], throwing(error));
      assert.is(report.failed, 1);
      assert.match(String(report.failures[0]?.actual), /oops/);
    }
});

test("a value where the vector has an error is wrong", async () => {
  const report = await run([line({ expected: undefined, ...python })]);
  assert.equal([report.failed, report.failures[0]?.actual], [1, "p@00ff"]);
});

test("a corner that no sane input reaches may be refused, but a wrong value is wrong", async () => {
  const corner = line({ id: "k-1-int64-wrap" });
  assert.is((await run([corner], throwing(ours))).failed, 0);
  assert.is((await run([corner], { build_key_string: () => "wrong" })).failed, 1);
});

test("a line is checked for its source and for every release of same_in", async () => {
  const seen: string[] = [];
  const handlers: VectorHandlers = {
    build_key_string: (_input: JsonObject, { release }) => {
      seen.push(release);
      return release === "vllm-0.27" ? "other" : "p@00ff";
    },
  };
  const report = await run([line({ same_in: ["seed-new", "seed-old"] })], handlers);
  assert.equal(seen, ["vllm-0.33", "vllm-0.31", "vllm-0.27"]);
  assert.equal(
    report.failures.map(({ path, actual }) => [path, actual]),
    [["$ (vllm-0.27)", "other"]],
  );
});

test("a handler may take its time", async () => {
  const later = { build_key_string: async () => "p@00ff" };
  assert.is((await run([line()], later)).passed, 1);
  const rejecting = { build_key_string: async () => Promise.reject(new TypeError("late")) };
  assert.is((await run([line()], rejecting)).failed, 1);
});

// Answers of vLLM 0.33.0 and CPython to inputs that the golden vectors have no like of.
const loadSpec = { vllm_cached_tokens: 0, kvpool_cached_tokens: 8, can_load: true };
const job = { req_id: "r", token_len_chunk: 0, block_ids: [], block_hashes: [] };
const inputs: readonly [string, string, JsonObject, JsonObject][] = [
  [
    "a repeated text is one object where it is named",
    "serialise",
    { value: [{ text_repeat: ["ab", 2], obj: 0 }, { ref: 0 }] },
    {
      pickle: "8005950c000000000000008c046162616294680086942e",
      frames: [[11, 12]],
      opcode_count: 8,
      cbor: "8264616261626461626162",
      sha256: "073c5a135a0fea1262e82cc1578d7453f6d52b3e2296ffa029567620d63a6956",
      sha256_cbor: "650d4503ebad6166a0fe60273b5d3f2744eefd2880c1e61c3b1f29e5716983f5",
      xxhash: "993c12243601866938939c9f53aee94d",
      xxhash_cbor: "74cc0cb5c8ed875b560ddf620ec13a20",
    },
  ],
  [
    "the event switch is a number",
    "event_hash",
    { block_hash: "0102", VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES: "00" },
    { bytes: "0102" },
  ],
  [
    "the load spec of a job is complete",
    "record",
    { class: "ReqMeta", fields: { ...job, load_spec: loadSpec } },
    {
      ...job,
      can_save: null,
      load_spec: { ...loadSpec, token_len: 0, tail_key_boundaries: [] },
      current_event: null,
      token_ids: null,
      token_ids_start: 0,
      num_prompt_tokens: null,
      prefill_end_tokens: null,
      store_job_id: null,
      boundary_puts: null,
      completed_token_len: null,
      publish_partial_tail: false,
    },
  ],
];
for (const [name, op, input, expected] of inputs)
  test(name, async () => {
    assert.equal((await run([line({ op, input, expected })])).failures, []);
  });

test("with only some ops the lines of others are skipped and counted", async () => {
  const lines = [line(), line({ id: "k-2", op: "no_such_op" }), line({ id: "k-3", expected: "wrong" })];
  const report = await runVectorLines("file", lines, vectorHandlers, { only: ["build_key_string"] });
  assert.equal([report.total, report.passed, report.failed, report.skipped], [2, 1, 1, 1]);
  assert.equal(report.ops["no_such_op"], { total: 0, passed: 0, failed: 0, skipped: 1 });
  assert.is((await run(lines)).failed, 2);
});

for (const [name, options, message] of [
  ["an op without a handler", { only: ["buld_key_string"] }, /no handler for the op "buld_key_string"/],
  ["an op of which the file has no line", { only: ["serialise"] }, /file has no line of the op "serialise"/],
  ["no op at all", { only: [] }, /only is \[\]/],
  ["a text", { only: "serialise" }, /only is "serialise"; it is a list of ops/],
  ["a misspelt option", { onyl: ["serialise"] }, /no option "onyl"/],
] as const)
  test(`${name} is refused`, async () => {
    let error: unknown;
    await runVectorLines("file", [line()], vectorHandlers, options as never).catch((reason: unknown) => {
      error = reason;
    });
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), String(error));
    assert.match(error.message, message);
  });

test("files are read as they are: with CRLF, and none at all is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
  try {
    const path = join(folder, "vectors.jsonl");
    writeFileSync(path, `${line()}\r\n${line({ expected: "wrong" })}`);
    const report = await runVectorFile(path, vectorHandlers);
    assert.equal([report.file, report.total, report.failed], [path, 2, 1]);
    let error: unknown;
    await runVectorFile(join(folder, "absent.jsonl"), vectorHandlers).catch((reason: unknown) => {
      error = reason;
    });
    assert.instance(error, Error);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
