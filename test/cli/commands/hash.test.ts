import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { E1, E3, E4 } from "../helpers/examples.js";
import { run, runJson } from "../helpers/run.js";

interface HashJson {
  readonly seed: string | null;
  readonly seed_source: string;
  readonly none_hash: string;
  readonly num_tokens: number;
  readonly block_hashes: readonly string[];
}

const words = (tokens: readonly number[]) => tokens.map(String);
const hash = (...more: readonly string[]) => ["hash", ...more];
const lines = (hashes: readonly string[], size: number) =>
  hashes.map((hex, block) => `${block * size} ${(block + 1) * size} ${hex}\n`).join("");

test("prints one line a block: start, end, hash", async () => {
  const result = await run(hash(...words(E1.tokens), "--seed", "0"));
  assert.equal(result, { exitCode: 0, stdout: lines(E1.sha256, 16), stderr: "" });
});

test("knows vLLM's four algorithms", async () => {
  const expected = {
    sha256: E1.sha256,
    sha256_cbor: E1.sha256Cbor,
    xxhash: E1.xxhash,
    xxhash_cbor: E1.xxhashCbor,
  };
  for (const [algorithm, hashes] of Object.entries(expected)) {
    const { stdout } = await run(hash(...words(E1.tokens), "--seed", "0", "--algorithm", algorithm));
    assert.is(stdout, lines(hashes, 16), algorithm);
  }
});

test("reads ids from arguments, a file and stdin, in every spelling", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
  try {
    const file = join(folder, "tokens.json");
    writeFileSync(file, JSON.stringify(E1.tokens));
    const spaced = `\n ${E1.tokens.join(",\n")} \n`;
    const results = [
      await run(hash("--seed", "0", JSON.stringify(E1.tokens))),
      await run(hash("--seed", "0", E1.tokens.join(","))),
      await run(hash("--seed", "0", "--file", file)),
      await run(hash("--seed", "0", "--file", "-"), { stdin: spaced }),
      await run(hash("--seed", "0"), { stdin: E1.tokens.join(" ") }),
      await run(hash("--seed", "0"), { stdin: `\ufeff${JSON.stringify({ prompt_token_ids: E1.tokens })}` }),
    ];
    for (const result of results)
      assert.equal(result, { exitCode: 0, stdout: lines(E1.sha256, 16), stderr: "" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the JSON object says everything that decides the hashes", async () => {
  const { exitCode, value } = await runJson(hash(...words(E1.tokens), "40", "--seed", "0"));
  assert.is(exitCode, 0);
  assert.equal(value, {
    release: "vllm-0.33",
    algorithm: "sha256",
    block_size: 16,
    seed: "0",
    seed_source: "--seed",
    none_hash: E1.noneHash,
    num_tokens: 33,
    block_hashes: [...E1.sha256],
  });
});

test("the seed is PYTHONHASHSEED unless --seed says otherwise", async () => {
  const from = async (env: Record<string, string>, ...more: string[]) =>
    (await runJson<HashJson>(hash(...words(E1.tokens), ...more), { env })).value;
  const engine = await from({ PYTHONHASHSEED: "0" });
  assert.equal(
    [engine.seed, engine.seed_source, engine.block_hashes],
    ["0", "PYTHONHASHSEED", [...E1.sha256]],
  );
  const chosen = await from({ PYTHONHASHSEED: "7" }, "--seed", "0");
  assert.equal([chosen.seed_source, chosen.block_hashes], ["--seed", [...E1.sha256]]);
  const absent = await from({});
  assert.equal(
    [absent.seed, absent.seed_source, absent.none_hash, absent.block_hashes],
    ["vllm-none-hash", "default", E1.defaultNoneHash, [...E1.defaultSeed]],
  );
  const root = await from({ PYTHONHASHSEED: "7" }, "--none-hash", E1.noneHash);
  assert.equal(
    [root.seed, root.seed_source, root.none_hash, root.block_hashes],
    [null, "--none-hash", E1.noneHash, [...E1.sha256]],
  );
});

test("--verbose begins with the settings, and such output can be read back", async () => {
  const { stdout } = await run(hash(...words(E1.tokens), "-v"), { env: { PYTHONHASHSEED: "0" } });
  assert.match(stdout, '# seed "0"\n# seed_source "PYTHONHASHSEED"\n');
  assert.match(stdout, `# none_hash "${E1.noneHash}"\n`);
  const keys = await run(["key", "build", "--model-name", "m"], { stdin: stdout });
  assert.is(keys.stdout.split("\n").length, 3);
  assert.match(keys.stdout, E1.sha256[1]);
});

test("hashes LoRA name and cache salt, from options or from the request", async () => {
  const settings = ["--block-size", "4", "--seed", "0", "--release", "vllm-0.27"];
  const options = await run(
    hash(...words(E3.tokens), ...settings, "--lora-name", "my-lora", "--cache-salt", "tenant-a"),
  );
  assert.is(options.stdout, lines(E3.sha256, 4));
  const request = {
    prompt_token_ids: E3.tokens,
    lora_request: { lora_name: "my-lora", lora_int_id: 1 },
    cache_salt: "tenant-a",
  };
  assert.is((await run(hash(...settings), { stdin: JSON.stringify(request) })).stdout, lines(E3.sha256, 4));
  const other = { ...request, lora_request: { lora_name: "x" }, cache_salt: "y" };
  const overridden = await run(hash(...settings, "--lora-name", "my-lora", "--cache-salt", "tenant-a"), {
    stdin: JSON.stringify(other),
  });
  assert.is(overridden.stdout, lines(E3.sha256, 4));
});

test("hashes multimodal items, with vLLM's position object or without", async () => {
  const settings = ["--block-size", "8", "--seed", "0", "--release", "vllm-0.27"];
  for (const position of [{ mm_position: { offset: 5, length: 10 } }, { offset: 5, length: 10 }]) {
    const request = {
      prompt_token_ids: E4.tokens,
      mm_features: [{ identifier: "imghash0123", ...position }],
      cache_salt: null,
    };
    const { stdout } = await run(hash(...settings), { stdin: JSON.stringify(request) });
    assert.is(stdout, lines(E4.sha256, 8));
  }
});

test("hashes prompt embeddings, whose bytes change the hash", async () => {
  const of = async (data: string) => {
    const stdin = JSON.stringify({ prompt_embeds: { data, rows: 4 } });
    return (await runJson<HashJson>(hash("--block-size", "2", "--seed", "0"), { stdin })).value;
  };
  const [first, second] = [await of("0011223344556677"), await of("0011223344556678")];
  assert.is(first.num_tokens, 4);
  assert.is(first.block_hashes.length, 2);
  assert.is(first.block_hashes[0], second.block_hashes[0]);
  assert.is.not(first.block_hashes[1], second.block_hashes[1]);
});

test("a root that nobody else has is refused, with the remedy, unless asked for", async () => {
  const refused = await run(hash("1", "2", "--block-size", "1", "--algorithm", "xxhash"));
  assert.is(refused.exitCode, 2);
  assert.is(refused.stdout, "");
  assert.match(refused.stderr, /^mooncake-kv: ERR_HASH: .*PYTHONHASHSEED.*--seed.*--private-root.*\n$/);
  assert.is((await run(hash("1", "--block-size", "1", "--release", "vllm-0.27"))).exitCode, 2);
  const allowed = await runJson<HashJson>(
    hash("1", "2", "--block-size", "1", "--algorithm", "xxhash", "--private-root"),
  );
  assert.is(allowed.exitCode, 0);
  assert.is(allowed.value.seed_source, "random");
  assert.is(allowed.value.block_hashes.length, 2);
});

test("a prompt shorter than a block has no hash, and the command says so", async () => {
  const { exitCode, stdout, stderr } = await run(hash("1", "2", "3"));
  assert.equal([exitCode, stdout], [0, ""]);
  assert.match(stderr, "3 tokens fill no block of 16");
});

test("lookahead exists in vllm-0.33 and changes the hash", async () => {
  const plain = await run(hash(...words(E1.tokens), "--seed", "0"));
  const ahead = await run(hash(...words(E1.tokens), "--seed", "0", "--lookahead", "1"));
  assert.is(ahead.exitCode, 0);
  assert.is(ahead.stdout.split("\n").length, 2);
  assert.is.not(ahead.stdout.split("\n")[0], plain.stdout.split("\n")[0]);
  const old = await run(hash("1", "--lookahead", "1", "--release", "vllm-0.31"));
  assert.is(old.exitCode, 2);
});

const BAD: Readonly<Record<string, readonly [argv: readonly string[], stdin: string, message: RegExp]>> = {
  "a word": [[], "1 two 3", /ERR_HASH: token 1 is "two"/],
  "a negative id": [["5", "-2"], "", /ERR_HASH: token 1 is -2/],
  "an id beyond 32 bits": [["4294967296"], "", /ERR_HASH: token 0 is 4294967296/],
  "a fraction in JSON": [[], "[1, 1.5]", /ERR_HASH: token 1 is 1.5/],
  "a text in JSON": [[], '[1, "2"]', /ERR_HASH: token 1 is "2"/],
  "broken JSON": [[], "[1, 2", /ERR_USAGE: stdin: not JSON/],
  nothing: [[], " \n", /ERR_USAGE: no token ids/],
  "an unknown member": [
    [],
    '{"prompt_token_id": [1]}',
    /unknown member "prompt_token_id"; did you mean prompt_token_ids\?/,
  ],
  "no tokens in the request": [[], '{"cache_salt": "x"}', /neither prompt_token_ids nor prompt_embeds/],
  "a salt that is no text": [[], '{"prompt_token_ids": [1], "cache_salt": 5}', /cache_salt 5 is not a text/],
  "tokens that are no list": [[], '{"prompt_token_ids": "1 2"}', /prompt_token_ids "1 2" is not a list/],
  "embeddings that are no hex": [
    [],
    '{"prompt_embeds": {"data": "xyz", "rows": 1}}',
    /data "xyz" is not hex/,
  ],
  "an item without position": [
    [],
    '{"prompt_token_ids": [1], "mm_features": [{"identifier": "a"}]}',
    /mm_features\[0\] lacks the member offset/,
  ],
  "a block of nothing": [["1", "--block-size", "0"], "", /--block-size.*whole number of 1 or more/],
  "a root that is no hex": [["1", "--none-hash", "xx"], "", /--none-hash.*hex/],
  "root and seed": [["1", "--none-hash", "00", "--seed", "0"], "", /cannot be used with option '--seed/],
  "a path without a name": [["1", "--lora-path", "/p"], "", /--lora-path without a LoRA name/],
  "an unknown algorithm": [["1", "--algorithm", "md5"], "", /md5.*sha256_cbor/],
  "an unknown release": [["1", "--release", "0.33"], "", /0\.33.*vllm-0\.33/],
  "two inputs": [["1", "--file", "x"], "", /as arguments and as --file/],
  "no such file": [["--file", "/no/such/file"], "", /cannot read "\/no\/such\/file": no such file/],
};

for (const [name, [argv, stdin, message]] of Object.entries(BAD))
  test(`refuses ${name} with one line and status 2`, async () => {
    const result = await run(hash(...argv), { stdin });
    assert.is(result.exitCode, 2);
    assert.is(result.stdout, "");
    assert.match(result.stderr, /^mooncake-kv: [^\n]*\n$/);
    assert.match(result.stderr, message);
  });

test("messages speak of the options of the command", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ["--none-hash", "abcd", "1"],
      /^mooncake-kv: ERR_USAGE: --none-hash has 2 bytes; the root of sha256 has 32: 64 hex digits/,
    ],
    [["--release", "vllm-0.31", "--lookahead", "2", "1"], /--lookahead 2 does not exist in vllm-0\.31/],
    [["--algorithm", "sha256_cbor_64bit", "1"], /early name of sha256_cbor, which kept 64 bits/],
    [["--lora-path", "/p", "1"], /--lora-path without a LoRA name; add --lora-name/],
  ];
  for (const [argv, message] of cases) {
    const { exitCode, stdout, stderr } = await run(["hash", ...argv]);
    assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
    assert.match(stderr, message);
  }
});

test("input without an end, and a file that is too large, are refused with the limit", async () => {
  const { exitCode, stderr } = await run(["hash", "--file", "/dev/zero"]);
  assert.is(exitCode, 2);
  assert.match(
    stderr,
    /"\/dev\/zero": more than 32 MiB, the limit of an input that is read as a whole; split it/,
  );
});

test("refuses bytes that are no UTF-8", async () => {
  const { exitCode, stderr } = await run(hash(), { stdin: Uint8Array.of(0x31, 0xff) });
  assert.is(exitCode, 2);
  assert.match(stderr, "stdin: not UTF-8 text");
});

test("does not wait for a terminal", async () => {
  const { exitCode, stderr } = await run(hash(), { terminal: true });
  assert.is(exitCode, 2);
  assert.match(stderr, "no token ids: give them as arguments, with --file, or on stdin");
});

test.run();
