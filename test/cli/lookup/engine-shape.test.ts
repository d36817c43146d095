import { test } from "uvu";
import * as assert from "uvu/assert";
import { answerLines, askStore } from "../../../src/cli/lookup/answer.js";
import { type EngineOptions, lookupEngine } from "../../../src/cli/lookup/engine-groups.js";
import { engineShape } from "../../../src/cli/lookup/engine-shape.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { type BlobBlockHashes, BlockHasher } from "../../../src/hash/index.js";
import { PoolKey } from "../../../src/key/index.js";
import { openStore } from "../../../src/store/index.js";
import { run } from "../helpers/run.js";

// That the command's answer is the engine's: which groups there are, how they are spread, and where hits end.

const PLAIN: EngineOptions = {
  ...{ modelName: "m", cachePrefix: "", tpSize: 1, ppSize: 1, pcpSize: 1, dcpSize: 1 },
  kvCacheLayout: "LBNHC",
};

const TOKENS = Uint32Array.from({ length: 640 }, (_, index) => index);
const hashed = (blockSize: number) => new BlockHasher({ blockSize, seed: "0" }).hash(TOKENS);

/** Blocks that are stored under a prefix. */
type Held = readonly [prefix: string, hashes: BlobBlockHashes];

const prefix = (group: number, tp = 0, pcp = 0, dcp = 0) =>
  `m@tp_rank:${tp}@pcp${pcp}@dcp${dcp}@pp_rank:0@group:${group}`;

/** The hit of a prompt in a store that holds some blocks. */
async function hitOf(
  more: Partial<EngineOptions>,
  held: readonly Held[],
  numTokens: number = TOKENS.length,
): Promise<{ readonly hit: number | null; readonly lines: readonly string[] }> {
  const options = { ...PLAIN, ...more };
  const engine = lookupEngine(options);
  const { hashBlockSize } = engine;
  const blockHashes = hashed(hashBlockSize).slice(0, Math.floor(numTokens / hashBlockSize));
  const prompt = { blockHashes, blockSize: hashBlockSize, numTokens };
  const store = await openStore("embedded:?capacity=1MiB");
  try {
    const keys = held.flatMap(([name, hashes]) =>
      [...hashes].map((hash) => PoolKey.buildKeyString(name, hash)),
    );
    const values = keys.map(() => new Uint8Array(8));
    if (keys.length > 0) (await store.put(keys, values)).throwIfFailed();
    const answer = await askStore(store, engine, prompt);
    return { hit: answer.hitTokens, lines: answerLines(answer, prompt) };
  } finally {
    await store.close();
  }
}

test("every prefill-context rank must hold a block", async () => {
  const all = hashed(16);
  const both: Held[] = [
    [prefix(0, 0, 0), all],
    [prefix(0, 0, 1), all.slice(0, 20)],
  ];
  assert.is((await hitOf({ pcpSize: 2 }, both)).hit, 320);
  assert.is((await hitOf({ pcpSize: 2 }, both.slice(0, 1))).hit, 0);
  assert.is((await hitOf({}, both)).hit, 624);
});

test("a draft model drops the last matched block", async () => {
  const held: Held[] = [[prefix(0), hashed(16).slice(0, 33)]];
  assert.is((await hitOf({}, held)).hit, 528);
  assert.is((await hitOf({ eagle: true }, held)).hit, 512);
});

test("a sliding window of latent vectors: its window, on one rank for all", async () => {
  const group = ["mla:16", "swa_mla:16:128"];
  const window = hashed(16).slice(24, 32);
  const held: Held[] = [
    [prefix(0), hashed(16)],
    [prefix(1), window],
  ];
  assert.is((await hitOf({ group, tpSize: 4 }, held)).hit, 512);
  // Tokens kept below the window must be there, too.
  assert.is((await hitOf({ group: ["mla:16", "swa_mla:16:128:16"], tpSize: 4 }, held)).hit, 0);
});

test("decode-context ranks share a hashed block", async () => {
  const all = hashed(32);
  const held: Held[] = [
    [prefix(0, 0, 0, 0), all],
    [prefix(0, 1, 0, 1), all.slice(0, 10)],
  ];
  assert.is(engineShape({ ...PLAIN, tpSize: 2, dcpSize: 2 } as EngineOptions).hashBlockSize, 32);
  assert.is((await hitOf({ tpSize: 2, dcpSize: 2 }, held)).hit, 320);
});

test("blocks are hashed as vLLM resolves it", () => {
  const size = (more: Partial<EngineOptions>, input?: number) =>
    engineShape({ ...PLAIN, ...more }, input).hashBlockSize;
  assert.is(size({}), 16);
  assert.is(size({ blockSize: 64 }), 64);
  assert.is(size({ group: ["full:32"] }), 32);
  assert.is(size({ group: ["full:64", "swa:48:128"] }), 16);
  assert.is(size({ group: ["full:8", "full"] }), 8);
  assert.is(size({ group: ["full:64", "swa:64:128"], hashBlockSize: 32 }), 32);
  assert.is(size({}, 4), 4);
  assert.is(size({ dcpSize: 2, tpSize: 2 }, 32), 32);
  assert.is(size({ group: ["mamba"], dcpSize: 2, tpSize: 2 }, 16), 16);
  assert.is(size({ group: ["full:64", "swa:64:128"] }, 16), 16);
});

test("a shared format that an engine can't have is not asked for", () => {
  const prefixes = (more: Partial<EngineOptions>) => {
    const options = { ...PLAIN, tpSize: 2, numKvHeads: 8, storeTpSize: 4, ...more };
    return lookupEngine(options).keyPrefixes.flat();
  };
  assert.is(prefixes({}).length, 4);
  assert.match(prefixes({})[3]!, "@store_tp:4@store_pp:1@store_format:tp_shared_lbnhc@tp_rank:3@");
  for (const more of [{ pcpSize: 2 }, { group: ["full", "swa:16:128"] }, { group: ["mla"] }])
    assert.match(prefixes(more)[0]!, "@store_pp:1@store_format:rank_local_tp2_layout_LBNHC@tp_rank:0@");
  assert.match(prefixes({ numKvHeads: 1 })[0]!, "@store_pp:1@store_format:tp_shared_mqa@tp_rank:0@");
});

test("options that no engine has are refused, whatever the input is", async () => {
  const store = ["--store", "embedded:", "--model-name", "m"];
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[...store, "--group", "bogus"], /--group "bogus": a group is one of full\[:BLOCK_SIZE\], .*swa_mla/],
    [["--socket", "x", "--group", "bogus"], /--group "bogus"/],
    [[...store, "--group", "swa:16"], /--group "swa:16"/],
    [[...store, "--group", "full:99999999999999999999"], /--group/],
    [["--store", "foo:", "--model-name", "m"], /no store backend "foo"/],
    [["--store", "embedded:?bogus=1", "--model-name", "m"], /no option "bogus"/],
    [["--store", "embedded:"], /either --model/],
    [[...store, "--tp-size", "99999999999"], /--tp-size.*from 1 to 65536/],
    [[...store, "--tp-size", "65536", "--pp-size", "2"], /make 131072 ranks/],
    [[...store, "--tp-size", "3", "--dcp-size", "2"], /--dcp-size 2 does not divide --tp-size 3/],
    [
      [...store, "--pcp-size", "2", "--group", "full", "--group", "swa:16:32"],
      /parallel size 2 with 2 groups/,
    ],
    [[...store, "--block-size", "16", "--group", "full:32"], /the only --group has blocks of 32/],
    [[...store, "--hash-block-size", "8"], /--hash-block-size is 8, but with one cache group/],
    [
      [...store, "--group", "full:16", "--group", "swa:16:32", "--hash-block-size", "3"],
      /--hash-block-size 3 must/,
    ],
    [[...store, "--group", "full+eagles"], /--group "full\+eagles"/],
    [[...store, "--group", "full:16:32"], /--group "full:16:32"/],
    [[...store, "--lora-path", "p"], /--lora-name/],
    [[...store, "--algorithm", "xxhash"], /PYTHONHASHSEED.*--seed; or use --algorithm sha256/],
    [[...store, "--lookahead", "1", "--release", "vllm-0.31"], /--lookahead 1 does not exist in vllm-0\.31/],
    [[...store, "--none-hash", "ab"], /--none-hash has 1 bytes; the root of sha256 has 32/],
    [["--socket", "x".repeat(200)], /at most 107/],
  ];
  for (const [argv, message] of cases)
    for (const input of [["1", "2", "3"], ["not tokens"], []]) {
      const { exitCode, stdout, stderr } = await run(["lookup", ...argv, ...input]);
      assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
      assert.match(stderr, message);
    }
});

test("sizes of hashes that contradict the options are refused", () => {
  const contradicts = (more: Partial<EngineOptions>, input: number, message: RegExp) => {
    try {
      engineShape({ ...PLAIN, ...more }, input);
    } catch (error) {
      assert.match((error as Error).message, message);
      return;
    }
    assert.unreachable(JSON.stringify(more));
  };
  contradicts({ blockSize: 16 }, 4, /of blocks of 4 tokens, but --block-size is 16/);
  contradicts({ group: ["full:16"] }, 4, /but the engine that the options describe hashes blocks of 16/);
  contradicts({ dcpSize: 2 }, 5, /blocks of 5 tokens, which --dcp-size 2 does not divide/);
  assert.throws(
    () => engineShape({ ...PLAIN, group: ["full:16", "swa:16:64"] }, 3),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
  );
});

test.run();
