import { test } from "uvu";
import * as assert from "uvu/assert";
import { E1 } from "../helpers/examples.js";
import { run, runJson } from "../helpers/run.js";

const [A0, A1] = ["a0".repeat(16), "a1".repeat(16)];
const KEY = `prod@Llama-3.1-8B-Instruct@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${E1.sha256Cbor[0]}`;

interface ParsedJson {
  readonly key: string;
  readonly ambiguous: boolean;
  readonly model_name: string | null;
  readonly candidates: readonly unknown[];
}

test("builds the key of vLLM's worked example", async () => {
  const argv = ["key", "build", "--model", "meta-llama/Llama-3.1-8B-Instruct", "--cache-prefix", "prod"];
  const { exitCode, stdout, stderr } = await run([...argv, E1.sha256Cbor[0]]);
  assert.equal([exitCode, stdout], [0, `${KEY}\n`]);
  assert.match(stderr, /^mooncake-kv: warning: .*Llama-3\.1-8B-Instruct.*\n$/);
});

test("puts every rank, group and namespace where vLLM has it", async () => {
  const { stdout, stderr } = await run([
    ...["key", "build", A0, A1, "--model-name", "m", "--tp-rank", "1", "--pcp-rank", "2", "--dcp-rank", "3"],
    ...["--pp-rank", "4", "--group-id", "5", "--store-namespace", "@store_pp:1@store_format:tp_shared_mqa"],
  ]);
  const prefix = "m@store_pp:1@store_format:tp_shared_mqa@tp_rank:1@pcp2@dcp3@pp_rank:4@group:5";
  assert.is(stdout, `${prefix}@${A0}\n${prefix}@${A1}\n`);
  assert.is(stderr, "");
});

test("builds keys from all that hash prints", async () => {
  const hash = ["hash", ...E1.tokens.map(String), "--seed", "0"];
  const expected = E1.sha256.map((hex) => `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${hex}\n`).join("");
  for (const more of [[], ["--json"], ["--verbose"]]) {
    const { stdout: stdin } = await run([...hash, ...more]);
    assert.is((await run(["key", "build", "--model-name", "m"], { stdin })).stdout, expected, more.join());
  }
  for (const stdin of [JSON.stringify(E1.sha256), E1.sha256.join(",\n").toUpperCase()])
    assert.is((await run(["key", "build", "--model-name", "m"], { stdin })).stdout, expected);
});

test("prefix, warnings and keys as JSON", async () => {
  const { value } = await runJson(["key", "build", "--model", "/hub/snapshots/0123abcd/", A0]);
  const prefix = "0123abcd@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0";
  assert.is(value["key_prefix"], prefix);
  assert.equal(value["keys"], [`${prefix}@${A0}`]);
  assert.match((value["warnings"] as string[])[0]!, "snapshot id");
});

test("refuses to build what no engine has", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[A0], /either --model/],
    [[A0, "--model", "a", "--model-name", "b"], /either --model/],
    [[A0, "--model", "///"], /ERR_KEY/],
    [[A0, "--model-name", ""], /--model-name is empty/],
    [["abc", "--model-name", "m"], /ERR_HASH: block hash 0 is "abc"/],
    [["ab", "--model-name", "m"], /ERR_HASH: block hash 0 is "ab".*64 digits for sha256 and 32 for xxhash/],
    [[A0 + A1, A0, "--model-name", "m"], /ERR_HASH.*one length/],
    [[A0, "--model-name", "m", "--tp-rank", "-1"], /--tp-rank.*whole number from 0 to 65535/],
    [[A0, "--model-name", "m", "--tp-rank", "99999999999"], /--tp-rank.*whole number from 0 to 65535/],
    [[A0, "--model-name", "m", "--group-id", "65536"], /--group-id.*whole number from 0 to 65535/],
    [[A0, "--model-name", "m", "--tp-rank", "1e2"], /--tp-rank/],
    [[A0, "--model-name", "m", "--cache-prefix", "a\nb"], /--cache-prefix "a\\nb" has a control character/],
    [[A0, "--model-name", "m\t"], /--model-name "m\\t" has a control character/],
    [[A0, "--model", "a/\u001b[31m"], /--model .* has a control character/],
    [[A0, "--model-name", "m", "--store-namespace", "@\u0085"], /--store-namespace .* control character/],
  ];
  for (const [argv, message] of cases) {
    const { exitCode, stdout, stderr } = await run(["key", "build", ...argv]);
    assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
    assert.match(stderr, message);
  }
  const none = await run(["key", "build", "--model-name", "m"], { stdin: '{"hashes": []}' });
  assert.match(none.stderr, "no list block_hashes");
});

test("takes a key apart", async () => {
  const { exitCode, stdout } = await run(["key", "parse", KEY, "--model-name", "Llama-3.1-8B-Instruct"]);
  assert.is(exitCode, 0);
  assert.match(stdout, /^ {2}cache prefix {2}prod$/m);
  assert.match(stdout, /^ {2}model {9}Llama-3\.1-8B-Instruct$/m);
  assert.match(stdout, /^ {2}namespace {5}none$/m);
  assert.match(stdout, new RegExp(`^ {2}hash {10}${E1.sha256Cbor[0]}$`, "m"));
  assert.not.match(stdout, "ambiguous");
});

test("says that a head can be read in several ways, and lists them", async () => {
  const key = "team@a@Qwen3@v2@cfg:0123456789ab@tp_rank:3@pcp0@dcp1@pp_rank:2@group:4@ab";
  const { stdout } = await run(["key", "parse"], { stdin: `${key}\n` });
  assert.match(stdout, "head      team@a@Qwen3@v2\n");
  assert.match(stdout, "config    0123456789ab\n");
  assert.match(stdout, "ambiguous: it can be read in 4 ways");
  assert.match(stdout, /cache prefix team@a +model Qwen3@v2 +namespace none/);
  const { value } = await runJson<ParsedJson[]>(["key", "parse", key]);
  assert.equal(value, [
    {
      key,
      head: "team@a@Qwen3@v2",
      ambiguous: true,
      cache_prefix: null,
      model_name: null,
      store_namespace: null,
      config_fingerprint: "0123456789ab",
      tp_rank: 3,
      pcp_rank: 0,
      dcp_rank: 1,
      pp_rank: 2,
      group_id: 4,
      chunk_hash: "ab",
      candidates: [
        { cache_prefix: "", model_name: "team@a@Qwen3@v2", store_namespace: "" },
        { cache_prefix: "team", model_name: "a@Qwen3@v2", store_namespace: "" },
        { cache_prefix: "team@a", model_name: "Qwen3@v2", store_namespace: "" },
        { cache_prefix: "team@a@Qwen3", model_name: "v2", store_namespace: "" },
      ],
    },
  ]);
  const certain = await runJson<ParsedJson[]>(["key", "parse", key, "--model-name", "Qwen3@v2"]);
  assert.equal([certain.value[0]!.ambiguous, certain.value[0]!.model_name], [false, "Qwen3@v2"]);
});

test("reads many keys from lines, a JSON list, and what key build prints", async () => {
  const build = ["key", "build", A0, A1, "--model-name", "m", "--cache-prefix", "[p"];
  const { stdout: built } = await run(build);
  const { stdout: json } = await run([...build, "--json"]);
  const keys = built.trimEnd().split("\n");
  for (const stdin of [built, json, JSON.stringify(keys), keys.join("\r\n")]) {
    const { value } = await runJson<ParsedJson[]>(["key", "parse", "--file", "-"], { stdin });
    assert.equal(
      value.map(({ key }) => key),
      keys,
    );
  }
  const { stdout } = await run(["key", "parse", ...keys]);
  assert.is(stdout.split("\n\n").length, 2, "one block a key");
});

test("a text that is no key is told, and the others are read", async () => {
  const { exitCode, stdout, stderr } = await run(["key", "parse", "m@tp_rank:0@zz", KEY]);
  assert.is(exitCode, 1);
  assert.match(stdout, /^m@tp_rank:0@zz\n {2}line 1: "m@tp_rank:0@zz" is not a key of the form/);
  assert.match(stdout, `\n\n${KEY}\n  head `);
  assert.is(stderr, "mooncake-kv: 1 of 2 keys is not of vLLM's MooncakeStoreConnector\n");
  const { exitCode: status, value } = await runJson<Record<string, unknown>[]>(["key", "parse", "x", KEY]);
  assert.is(status, 1);
  assert.equal(
    [value[0]!["key"], value[0]!["line"], value[0]!["owner"], value[1]!["key"]],
    ["x", 1, null, KEY],
  );
  assert.is((await run(["key", "parse"], { stdin: "\n" })).exitCode, 2);
  assert.is((await run(["key", "parse"], { stdin: "[1]" })).exitCode, 2);
  assert.is((await run(["key", "parse", KEY, "--model-name", ""])).exitCode, 2);
});

const HASH = E1.sha256[0];
const FOREIGN: readonly (readonly [string, string | null])[] = [
  [`Qwen3-8B@pcp0@dcp0@head_or_tp_rank:0@pp_rank:0@${HASH}`, "vllm-ascend"],
  [`vllm@Qwen/Qwen3-8B@4@0@${HASH}`, "LMCache"],
  [`vllm@Qwen/Qwen3-8B@4@0@-3f5a1b@bfloat16`, "LMCache"],
  [`Qwen/Qwen3-8B@4@0@${HASH}@bfloat16`, "LMCache"],
  [`${HASH}_0_k`, "SGLang"],
  [`${HASH}_3_v`, "SGLang"],
  [`${HASH}_1_0_k`, "SGLang"],
  [`${HASH}__k`, "SGLang"],
  ["session:4711", null],
  [`${HASH}_0_x`, null],
  [`m@1@2@${HASH}`, null],
];

for (const [key, owner] of FOREIGN)
  test(`${key.replace(HASH, "<hash>")} is a key of ${owner ?? "nobody known"}`, async () => {
    const { exitCode, value } = await runJson<Record<string, unknown>[]>(["key", "parse", key]);
    assert.equal([exitCode, value[0]!["owner"]], [1, owner]);
    const { stdout } = await run(["key", "parse", key]);
    assert.match(stdout, owner === null ? "is not a key of the form" : `line 1: a key of ${owner}: `);
  });

test("a hundred thousand keys with foreign ones among them are read line by line", async () => {
  const own = `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${A0}`;
  const stdin = `${`${own}\n`.repeat(50_000)}${HASH}_0_k\n${`${own}\n`.repeat(50_000)}`;
  const { exitCode, value } = await runJson<Record<string, unknown>[]>(["key", "parse"], { stdin });
  assert.is(exitCode, 1);
  assert.is(value.length, 100_001);
  assert.equal(
    value.flatMap(({ owner, line }) => (owner === undefined ? [] : [[line, owner]])),
    [[50_001, "SGLang"]],
  );
});

test("a line that is not UTF-8 is named; keys with a bracket in front need not be JSON", async () => {
  const key = `[p@m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${A0}`;
  for (const bad of [[], [0xff, 0x0a]]) {
    const stdin = Buffer.concat([Buffer.from(`${key}\n`), Buffer.from(bad), Buffer.from(`# x\n${key}\n`)]);
    const { exitCode, value } = await runJson<Record<string, unknown>[]>(["key", "parse"], { stdin });
    assert.is(exitCode, bad.length > 0 ? 1 : 0);
    assert.equal(
      value.map((item) => item["key"]),
      bad.length > 0 ? [key, null, key] : [key, key],
    );
  }
});

test("JSON stays JSON when the input ends badly", async () => {
  const stdin = Buffer.concat([Buffer.from(`${KEY}\n`), Buffer.alloc(17 << 20, "x")]);
  const { exitCode, value } = await runJson<Record<string, unknown>[]>(["key", "parse"], { stdin });
  assert.is(exitCode, 2);
  assert.is(value[0]!["key"], KEY);
  assert.match((value[1]!["error"] as Error).message, "stdin line 2: more than 16 MiB, the limit of a line");
});

test("a key can't steer the terminal", async () => {
  const { stdout } = await run(["key", "parse", `\u001b[31mm@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@ab`]);
  assert.not.match(stdout, "\u001b");
  assert.match(stdout, "\\u001b[31mm");
});

test.run();
