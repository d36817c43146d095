import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { CommandContext } from "../../src/cli/command.js";
import { define } from "../../src/cli/commands/lookup.js";
import { answerLines, askStore, nothingToAsk } from "../../src/cli/lookup/answer.js";
import { type EngineOptions, lookupEngine } from "../../src/cli/lookup/engine-groups.js";
import { Output } from "../../src/cli/output.js";
import { MooncakeCluster } from "../../src/conformance/contract/mooncake/cluster.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes, BlockHasher } from "../../src/hash/index.js";
import { PoolKey } from "../../src/key/index.js";
import { LookupKeyServer } from "../../src/lookup/index.js";
import { openStore } from "../../src/store/index.js";
import { findMooncake } from "../helpers/mooncake-wheel.js";
import { E1 } from "./helpers/examples.js";

const test = suite("mooncake-kv lookup");
let folder = "";
test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "mkv-"));
});
test.after(async () => {
  await rm(folder, { recursive: true });
});

/** Runs the command by itself; what it throws is thrown. */
async function lookup(argv: readonly string[], stdin = ""): Promise<{ stdout: string; exitCode: number }> {
  let stdout = "";
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      stdout += String(chunk);
      done();
    },
  });
  const io = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: sink,
    stderr: sink,
    env: { PYTHONHASHSEED: "0" },
  };
  const context: CommandContext = {
    io,
    env: io.env,
    stdout: new Output(sink),
    stderr: new Output(new Writable({ write: (_chunk, _encoding, done) => done() })),
    exitCode: 0,
  };
  const command = new Command("lookup").exitOverride().configureOutput({ writeErr: () => {} });
  define(command, context);
  await command.parseAsync([...argv], { from: "user" });
  await context.stdout.flush();
  return { stdout, exitCode: context.exitCode };
}

async function lookupJson(argv: readonly string[], stdin = ""): Promise<Record<string, unknown>> {
  const { stdout, exitCode } = await lookup([...argv, "--json"], stdin);
  return { ...(JSON.parse(stdout) as object), exitCode };
}

const store = ["--store", "embedded:?capacity=1MiB", "--model-name", "m"];
const tokens = E1.tokens.map(String);

test("a store without the prompt: 0 tokens, after one question about one block", async () => {
  const value = await lookupJson([...store, ...tokens, "99"]);
  assert.equal([value["hit_tokens"], value["num_tokens"], value["num_hashes"]], [0, 33, 2]);
  assert.equal([value["keys_asked"], value["questions"], value["exitCode"]], [2, 1, 0]);
  const { stdout } = await lookup([...store, ...tokens]);
  assert.match(
    stdout,
    /^0 of 32 tokens\n\[\.{40}\] 0%\n\d+ keys? asked in 1 question\nlimited by group 0\n$/,
  );
});

test("nothing to ask is unknown, not 0", async () => {
  for (const [argv, stdin, text] of [
    [store, "[]", "unknown: no tokens\n"],
    [[...store, "--hashes"], "[]", "unknown: no tokens\n"],
    [[...store, "1", "2"], "", "unknown: no full block: 2 tokens, and a block has 16\n"],
  ] as const)
    assert.equal(await lookup([...argv], stdin), { stdout: text, exitCode: 0 });
  const value = await lookupJson(store, "[]");
  assert.equal([value["hit_tokens"], value["unknown"], value["keys_asked"]], [null, "no tokens", 0]);
});

/** An embedded store that holds the blocks of E1 under some prefixes. */
async function filledStore(prefixes: readonly string[], hashes: readonly Uint8Array[]) {
  const filled = await openStore("embedded:?capacity=1MiB");
  const keys = prefixes.flatMap((prefix) => hashes.map((hash) => PoolKey.buildKeyString(prefix, hash)));
  (
    await filled.put(
      keys,
      keys.map(() => new Uint8Array(8)),
    )
  ).throwIfFailed();
  return filled;
}

const engine: EngineOptions = {
  modelName: "m",
  cachePrefix: "",
  tpSize: 1,
  ppSize: 1,
  pcpSize: 1,
  dcpSize: 1,
  kvCacheLayout: "LBNHC",
};
const hashes = new BlockHasher({ blockSize: 16, seed: "0" }).hash(
  Uint32Array.from({ length: 48 }, (_, i) => i),
);
const prompt = { blockHashes: hashes, blockSize: 16, numTokens: 50 };

test("the longest prefix of a filled store, with a bar", async () => {
  const filled = await filledStore(
    ["m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0"],
    [hashes.at(0)!, hashes.at(1)!],
  );
  const answer = await askStore(filled, lookupEngine(engine, 16), prompt);
  assert.equal(answerLines(answer, prompt).slice(0, 2), [
    "32 of 50 tokens",
    `[${"#".repeat(25)}${".".repeat(15)}] 64%`,
  ]);
  await filled.close();
});

test("every rank must hold a block; shared heads, shards and pipeline stages are counted right", async () => {
  const prefix = (tp: number, pp: number, namespace = "") =>
    `m${namespace}@tp_rank:${tp}@pcp0@dcp0@pp_rank:${pp}@group:0`;
  const cases: [Partial<EngineOptions>, string[]][] = [
    [{ tpSize: 2, ppSize: 2 }, [prefix(0, 0), prefix(0, 1), prefix(1, 0), prefix(1, 1)]],
    [{ tpSize: 4, numKvHeads: 2 }, [prefix(0, 0), prefix(1, 0)]],
    [
      { storeTpSize: 2, ppSize: 1, numKvHeads: 8 },
      [0, 1].map((tp) => prefix(tp, 0, "@store_tp:2@store_pp:1@store_format:tp_shared_lbnhc")),
    ],
    [{ storeNamespace: "@x" }, [prefix(0, 0, "@x")]],
  ];
  for (const [more, prefixes] of cases) {
    const described = lookupEngine({ ...engine, ...more }, 16);
    assert.equal(described.keyPrefixes, [prefixes]);
    for (const [held, hit] of [
      [prefixes, 48],
      [prefixes.slice(1), 0],
    ] as const) {
      const filled = await filledStore(held, [...hashes]);
      assert.is((await askStore(filled, described, prompt)).hitTokens, hit);
      await filled.close();
    }
  }
});

test("groups of several kinds", async () => {
  const { coordinator, keyPrefixes } = lookupEngine(
    { ...engine, group: ["swa:16:128", "full", "mamba:64"] },
    16,
  );
  assert.equal(
    coordinator.kvCacheGroups.map(({ kvCacheSpec: { kind, blockSize } }) => [kind, blockSize]),
    [
      ["swa", 16],
      ["full", 16],
      ["mamba", 64],
    ],
  );
  assert.match(keyPrefixes[2]![0]!, /@group:2$/);
  const more = lookupEngine({ ...engine, group: ["swa_mla:16:64", "rswa:16:32+eagle"] }, 16).coordinator;
  assert.equal([...more.eagleGroupIds], [1]);
  assert.equal(
    more.kvCacheGroups.map(({ kvCacheSpec }) => kvCacheSpec.kind),
    ["swa_mla", "rswa"],
  );
  for (const group of [
    "swa_mla:16",
    "full+what",
    "+eagle",
    "what",
    "full:0",
    "full:x",
    "swa:16",
    "full:1:2:3",
    "chunked_local",
  ])
    assert.throws(() => lookupEngine({ ...engine, group: [group] }, 16), /--group/);
});

/** Hit of the prompt of 48 tokens in a store that holds all of it. */
async function fullHit(options: Partial<EngineOptions>, numTokens: number = 48) {
  const described = lookupEngine({ ...engine, ...options }, 16);
  const filled = await filledStore(described.keyPrefixes.flat(), [...hashes]);
  const asked = { ...prompt, numTokens };
  const answer = await askStore(filled, described, asked);
  await filled.close();
  return { hit: answer.hitTokens, keys: answer.keysAsked, lines: answerLines(answer, asked) };
}

test("speculative decoding computes the last matched block again", async () => {
  assert.is((await fullHit({}, 50)).hit, 48);
  assert.is((await fullHit({ eagle: true }, 50)).hit, 32);
  assert.is((await fullHit({ group: ["full+eagle"] }, 50)).hit, 32);
  const sliding = ["full", "swa:16:16"];
  assert.is((await fullHit({ group: sliding }, 50)).hit, 48);
  assert.is((await fullHit({ group: sliding, eagle: true }, 50)).hit, 32);
});

test("ranks of prefill context parallelism each hold a part", async () => {
  const { keyPrefixes } = lookupEngine({ ...engine, pcpSize: 2 }, 16);
  assert.equal(keyPrefixes, [[0, 1].map((pcp) => `m@tp_rank:0@pcp${pcp}@dcp0@pp_rank:0@group:0`)]);
  assert.is((await fullHit({ pcpSize: 2 }, 50)).hit, 48);
  const half = await filledStore(keyPrefixes[0]!.slice(0, 1), [...hashes]);
  assert.is((await askStore(half, lookupEngine({ ...engine, pcpSize: 2 }, 16), prompt)).hitTokens, 0);
  await half.close();
  assert.throws(() => lookupEngine({ ...engine, pcpSize: 2, group: ["full", "swa:16:16"] }, 16), /context/);
});

test("a prompt that is too short for any hit gets the reason", async () => {
  const short = await fullHit({ group: ["full", "swa:64:128"] });
  assert.equal([short.hit, short.keys], [0, 0]);
  assert.match(
    short.lines.at(-1)!,
    /^a hit ends at a multiple of 64 tokens.*: 48 tokens are too few for one$/,
  );
  const speculative = await fullHit({ eagle: true }, 17);
  assert.is(speculative.hit, 0);
  assert.match(speculative.lines.at(-1)!, /computed again: 17 tokens are too few/);
  const long = await lookupJson([...store, ...tokens]);
  assert.is(long["reason"], null);
  const groups = ["--group", "full:64", "--group", "swa:64:64"];
  const none = await lookupJson([...store, "--hash-block-size", "16", ...groups, ...tokens]);
  assert.match(String(none["reason"]), "multiple of 64 tokens");
});

test("the block size comes with the hashes, or must be said", async () => {
  const hashed = async (argv: readonly string[], stdin: string) =>
    lookupJson([...store, "--hashes", ...argv], stdin);
  const lines = E1.sha256.map((hash, i) => `${i * 4} ${i * 4 + 4} ${hash}`).join("\n");
  const json = JSON.stringify({ block_size: 4, num_tokens: 9, block_hashes: E1.sha256 });
  for (const stdin of [lines, json]) {
    const value = await hashed([], stdin);
    assert.equal([value["block_size"], value["num_hashes"]], [4, 2]);
    assert.is((await hashed(["--block-size", "4"], stdin))["block_size"], 4);
  }
  for (const [argv, stdin, pattern] of [
    [[], E1.sha256.join(" "), /add --block-size/],
    [["--block-size", "16"], lines, /blocks of 4 tokens, but --block-size is 16/],
    [["--block-size", "16"], json, /blocks of 4 tokens, but --block-size is 16/],
    [[], lines.split("\n")[1]!, /tokens 4 to 8, where 0 to 4 should follow/],
    [[], `0 4 ${E1.sha256[0]}\n${E1.sha256[1]}`, /only some of the lines/],
  ] as const) {
    const error = await hashed(argv, stdin).catch((caught: unknown) => caught);
    assert.match((error as Error).message, pattern);
  }
});

test("a store that can't answer is unknown, and a failure", async () => {
  const broken = { exists: () => Promise.reject(new Error("no master")) };
  const answer = await askStore(broken, lookupEngine(engine, 16), prompt);
  assert.equal([answer.hitTokens, answer.failed], [null, true]);
  assert.match(answerLines(answer, prompt)[0]!, /^unknown: .*no master/);
});

test("hashes alone may all be hit", async () => {
  const hashed = { blockHashes: hashes, blockSize: 16, numTokens: undefined };
  const filled = await filledStore(["m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0"], [...hashes]);
  const answer = await askStore(filled, lookupEngine(engine, 16), hashed);
  assert.is(answerLines(answer, hashed)[0], "48 of 48 tokens");
  await filled.close();
  assert.is(nothingToAsk(hashed), undefined);
  const none = nothingToAsk({ ...hashed, blockHashes: new BlobBlockHashes(new Uint8Array(0), 0) });
  assert.is(none?.hitTokens, null);
});

test("an engine at its socket, with the hashes that it would compute itself", async () => {
  const asked: string[][] = [];
  const server = await LookupKeyServer.listen(
    {
      lookup: (numTokens, blockHashes) => {
        asked.push([
          String(numTokens),
          ...Array.from({ length: blockHashes.length }, (_, i) =>
            Buffer.from(blockHashes.at(i)!).toString("hex"),
          ),
        ]);
        return { hitLength: 16, tailKeyBoundaries: [{ groupId: 0, numTokens: 16 }] };
      },
    },
    { socketPath: `ipc://${folder}/engine` },
  );
  try {
    for (const socket of [`${folder}/engine`, `ipc://${folder}/engine`]) {
      const value = await lookupJson(["--socket", socket, ...tokens]);
      assert.equal([value["hit_tokens"], value["keys_asked"]], [16, null]);
      assert.equal(value["tail_key_boundaries"], [[0, 16]]);
    }
    const hashed = await lookupJson([
      "--socket",
      `${folder}/engine`,
      "--hashes",
      "--block-size",
      "16",
      ...E1.sha256,
    ]);
    assert.equal([hashed["hit_tokens"], hashed["num_tokens"]], [16, null]);
    assert.equal(asked, [
      ["32", ...E1.sha256],
      ["32", ...E1.sha256],
      ["33", ...E1.sha256],
    ]);
  } finally {
    await server.close();
  }
  assert.not(existsSync(`${folder}/engine`));
});

test("an engine that does not answer is unknown, and ends with 1", async () => {
  const { stdout, exitCode } = await lookup(["--socket", `${folder}/nobody`, "--timeout", "50", ...tokens]);
  assert.match(stdout, /^unknown: no reply from ipc:.*nobody within 50 ms\n$/);
  assert.is(exitCode, 1);
});

/** A tokenizer of whole words. */
const TOKENIZER = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [
    {
      id: 9,
      content: "<s>",
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    },
  ],
  normalizer: null,
  pre_tokenizer: { type: "Whitespace" },
  post_processor: {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    pair: [{ Sequence: { id: "A", type_id: 0 } }],
    special_tokens: { "<s>": { id: "<s>", ids: [9], tokens: ["<s>"] } },
  },
  decoder: null,
  model: {
    type: "WordPiece",
    unk_token: "what",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: { what: 0, a: 1, block: 2, of: 3, words: 4, "<s>": 9 },
  },
};

test("a text, under the tokenizer of a file", async () => {
  const path = join(folder, "tokenizer.json");
  await writeFile(path, JSON.stringify(TOKENIZER));
  const ids = async (argv: readonly string[], stdin = "") => {
    const value = await lookupJson([...store, "--tokenizer", path, "--block-size", "2", ...argv], stdin);
    return [value["num_tokens"], value["num_hashes"]];
  };
  assert.equal(await ids(["a block of words"]), [5, 2]);
  assert.equal(await ids(["a", "block", "of", "words", "--no-special-tokens"]), [4, 2]);
  assert.equal(await ids([], "a block\nof words a"), [6, 3]);
});

test("a file that is no tokenizer, options that don't fit, and input that is none are refused", async () => {
  const bad = join(folder, "bad.json");
  await writeFile(bad, "{}");
  const text = join(folder, "text.json");
  await writeFile(text, "nonsense");
  for (const [argv, pattern] of [
    [["1"], /either --store/],
    [["--store", "embedded:", "--socket", "x", "1"], /cannot be used with/],
    [["--store", "embedded:", ...tokens], /either --model/],
    [["--store", "embedded:", "--model", "m", "--model-name", "m", ...tokens], /either --model/],
    [[...store, "--hashes", "--tokenizer", bad, "x"], /exclude/],
    [[...store, "--tokenizer", bad, "x"], /no tokenizer/],
    [[...store, "--tokenizer", text, "x"], /no JSON object/],
    [[...store, "--tokenizer", join(folder, "absent.json"), "x"], /no file/],
    [[...store, "--lora-path", "p", "1"], /--lora-name/],
    [[...store, "--store-namespace", "@x", "--store-tp-size", "2", ...tokens], /leave --store-namespace out/],
    [[...store, "x"], /token/],
    // Before the input is looked at, which is none of these.
    [["--store", "nonsense:", "--model-name", "m", "x"], /--store: there is no store backend/],
    [["--store", "embedded:?capacity=much", "--model-name", "m", "1"], /--store: .*capacity/],
    [["--store", "embedded:?bogus=1", "--model-name", "m", "x"], /--store: .*no option "bogus"/],
    [[...store, "--group", "bogus", "1"], /--group "bogus"/],
    [[...store, "--group", "bogus", "--hashes", "x"], /--group "bogus"/],
    [[...store, "--block-size", "16", "--group", "full:24", "1"], /24/],
    [[...store, "--cache-prefix", "a\nb", "x"], /--cache-prefix .*control character/],
    [["--store", "embedded:", "x"], /either --model/],
    [[...store, "--lora-name", "a", "x"], /--lora-path/],
    [["--socket", "x".repeat(200), "x"], /at most 107/],
    [[...store, "--algorithm", "xxhash", "--seed", "", "x"], /token/],
    [["--socket", "x".repeat(200), ...tokens], /at most 107/],
    [["--store", "nonsense:", "--model-name", "m", ...tokens], /no store backend/],
  ] as const) {
    const error = await lookup([...argv]).catch((caught: unknown) => caught);
    assert.instance(error, Error, JSON.stringify(argv));
    assert.match((error as Error).message, pattern);
  }
});

test("a cluster that can't be joined is unknown, and a failure; what is written wrong is an error", async () => {
  const at = (query: string) => ["--store", `mooncake:?${query}`, "--model-name", "m", ...tokens];
  const started = performance.now();
  const { stdout, exitCode } = await lookup(at("master=127.0.0.1:1"));
  assert.match(stdout, /^unknown: no Mooncake master answers at 127\.0\.0\.1:1 \(ECONNREFUSED\)/);
  assert.is(exitCode, 1);
  const value = await lookupJson(at("master=127.0.0.1:1"));
  assert.equal([value["hit_tokens"], value["keys_asked"], value["exitCode"]], [null, 0, 1]);
  assert.ok(performance.now() - started < 5_000);
  for (const query of ["python=&master=127.0.0.1:1", "master=127.0.0.1:1&metadataServer=redis://h"]) {
    const error = await lookup(at(query)).catch((thrown: unknown) => thrown);
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), query);
  }
});

const installation = findMooncake();
if (installation)
  test("a question with an engine's own file gives no memory to the pool", async () => {
    await using cluster = await MooncakeCluster.start(installation, { segmentBytes: 0 });
    const file = join(folder, "engine.json");
    const content = {
      mode: "embedded",
      global_segment_size: "64MB",
      master_server_address: cluster.masterAddress,
      metadata_server: "P2PHANDSHAKE",
      protocol: "tcp",
    };
    await writeFile(file, JSON.stringify(content));
    const ask = async (query: string): Promise<number> => {
      const uri = `mooncake:${file}?python=${installation.python}${query}`;
      const { stdout, exitCode } = await lookup(["--store", uri, "--model-name", "m", ...tokens]);
      assert.match(stdout, /^0 of 32 tokens/);
      assert.is(exitCode, 0);
      const metrics = await (await fetch(`${cluster.adminUrl}/metrics`)).text();
      return Number(/^master_mount_segment_requests_total (\d+)$/m.exec(metrics)![1]);
    };
    assert.is(await ask(""), 0);
    assert.is(await ask("&role=configured"), 1);
  });

test.run();
