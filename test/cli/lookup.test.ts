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
import { ExistenceTable } from "../../src/coordinator/index.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes, BlockHasher } from "../../src/hash/index.js";
import { PoolKey } from "../../src/key/index.js";
import { LookupKeyServer } from "../../src/lookup/index.js";
import { openStore } from "../../src/store/index.js";
import { findMooncake } from "../helpers/mooncake-wheel.js";
import { E1 } from "./helpers/examples.js";
import { run } from "./helpers/run.js";

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
  for (const group of ["", "what", "full:0", "full:x", "swa:16", "full:1:2:3", "chunked_local"])
    assert.throws(() => lookupEngine({ ...engine, group: [group] }, 16), /--group/);
});

test("what is written wrong is told before anything is read or asked", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--store", "foo:", "--model-name", "m", "1", "2"], /no store backend "foo"/],
    [["--store", "embedded:?capcity=1GiB", "--model-name", "m", "1"], /no option "capcity"/],
    [["--store", "embedded:", "--model-name", "m", "--group", "bogus", "1"], /--group "bogus"/],
    [["--store", "embedded:", "1"], /either --model, the path/],
    [["--store", "embedded:", "--model-name", "m", "--group", "swa_mla", "1"], /swa_mla needs WINDOW/],
    [
      [
        "--store",
        "embedded:",
        "--model-name",
        "m",
        "--pcp-size",
        "2",
        "--group",
        "full",
        "--group",
        "full",
        "1",
      ],
      /prefill context parallel size 2 with 2 groups/,
    ],
  ];
  for (const [argv, message] of cases) {
    const { exitCode, stdout, stderr } = await run(["lookup", ...argv], { terminal: true });
    assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
    assert.match(stderr, message);
  }
});

test("EAGLE drops the last block, and ranks of prefill parallelism are asked one by one", () => {
  const options = {
    modelName: "m",
    cachePrefix: "",
    tpSize: 1,
    ppSize: 1,
    pcpSize: 2,
    dcpSize: 1,
    kvCacheLayout: "LBNHC",
  } as const;
  const plain = lookupEngine(options, 16);
  assert.equal(plain.keyPrefixes, [[0, 1].map((rank) => `m@tp_rank:0@pcp${rank}@dcp0@pp_rank:0@group:0`)]);
  const stored = (engine: typeof plain) =>
    engine.coordinator.findLongestCacheHit(64, ExistenceTable.everything(4)).hitLength;
  assert.is(stored(plain), 64);
  assert.is(stored(lookupEngine({ ...options, eagle: true }, 16)), 48);
});

test("hashes of another block size than --block-size are refused", async () => {
  const { stdout: stdin } = await run(["hash", "--block-size", "4", "1", "2", "3", "4"]);
  const ask = ["lookup", "--store", "embedded:", "--model-name", "m", "--hashes"];
  assert.match((await run(ask, { stdin })).stdout, /^0 of 4 tokens$/m);
  const other = await run([...ask, "--block-size", "16"], { stdin });
  assert.equal([other.exitCode, other.stdout], [2, ""]);
  assert.match(other.stderr, /blocks of 4 tokens, but --block-size is 16/);
});

test("a prompt that is too short for any hit says why", async () => {
  const tokens = Array.from({ length: 16 }, (_, token) => String(token));
  const { stdout } = await run(["lookup", "--store", "embedded:", "--model-name", "m", ...tokens]);
  assert.match(
    stdout,
    /^0 of 16 tokens\n.*\nhits of this engine end every 16 tokens, .* needs a prompt of 17 or more$/ms,
  );
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
    const hashed = await lookupJson(["--socket", `${folder}/engine`, "--hashes", ...E1.sha256]);
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
