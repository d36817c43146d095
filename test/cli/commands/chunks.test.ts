import { test } from "uvu";
import * as assert from "uvu/assert";
import { run, runJson } from "../helpers/run.js";

const HASHES = Array.from({ length: 8 }, (_, index) => `a${index}`.repeat(16));
const chunks = (...more: readonly string[]) => ["chunks", ...HASHES, ...more];
const line = (start: number, end: number, hash: number) => `${start} ${end} ${HASHES[hash]}\n`;

test("one chunk a hash where the sizes are equal", async () => {
  const { exitCode, stdout, stderr } = await run(chunks("--block-size", "16", "--token-len", "32"));
  assert.equal([exitCode, stderr], [0, ""]);
  assert.is(stdout, line(0, 16, 0) + line(16, 32, 1));
});

test("a coarse chunk has the hash of its end, the last one may be short", async () => {
  const argv = chunks("--block-size", "64", "--hash-block-size", "16", "--token-len", "112");
  assert.is((await run(argv)).stdout, line(0, 64, 3) + line(64, 112, 6));
});

test("mask, chunk mask and stripes leave chunks out", async () => {
  const of = async (...more: readonly string[]) => (await run(chunks("--block-size", "16", ...more))).stdout;
  assert.is(await of("--mask-num", "97"), line(112, 128, 7));
  assert.is(await of("--chunk-mask", "0110"), line(16, 32, 1) + line(32, 48, 2));
  assert.is(await of("--mask-num", "32", "--chunk-mask", "101"), line(32, 48, 2) + line(64, 80, 4));
  assert.is(await of("--put-step", "4", "--put-step-rank", "3"), line(48, 64, 3) + line(112, 128, 7));
});

test("takes sizes and length from the JSON of hash", async () => {
  const stdin = JSON.stringify({ block_size: 16, num_tokens: 133, block_hashes: HASHES });
  const { value } = await runJson(["chunks", "--block-size", "32"], { stdin });
  assert.equal(value, {
    block_size: 32,
    hash_block_size: 16,
    token_len: 128,
    chunks: [1, 3, 5, 7].map((hash, index) => [index * 32, index * 32 + 32, HASHES[hash]]),
  });
  const clash = await run(["chunks", "--hash-block-size", "8"], { stdin });
  assert.is(clash.exitCode, 2);
  assert.match(clash.stderr, "blocks of 16 tokens, but --hash-block-size is 8");
});

test("its own output can be read back, as text and as JSON", async () => {
  for (const more of [[], ["--json"]]) {
    const { stdout: stdin } = await run(chunks("--block-size", "16", ...more));
    const again = await run(["chunks", "--block-size", "16"], { stdin });
    assert.is(again.stdout, HASHES.map((_, index) => line(index * 16, index * 16 + 16, index)).join(""));
  }
});

test("takes the hash block size from the lines of hash, too", async () => {
  const tokens = Array.from({ length: 12 }, (_, token) => String(token));
  for (const more of [[], ["--json"]]) {
    const { stdout: stdin } = await run(["hash", "--block-size", "4", ...tokens, ...more]);
    assert.equal((await run(["chunks"], { stdin })).stdout.replace(/ [0-9a-f]+$/gm, ""), "0 4\n4 8\n8 12\n");
    const coarse = await run(["chunks", "--block-size", "8"], { stdin });
    assert.equal(coarse.stdout.replace(/ [0-9a-f]+$/gm, ""), "0 8\n8 12\n");
    const clash = await run(["chunks", "--hash-block-size", "16"], { stdin });
    assert.is(clash.exitCode, 2);
    assert.match(clash.stderr, "blocks of 4 tokens, but --hash-block-size is 16");
  }
  const bare = await run(["chunks", HASHES[0]!]);
  assert.is(bare.exitCode, 2);
  assert.match(bare.stderr, "bare hashes don't say how many tokens a block has; add --block-size");
  const middle = await run(["chunks"], { stdin: `4 8 ${HASHES[1]}\n` });
  assert.match(middle.stderr, "tokens 4 to 8, where 0 to 4 should follow");
  assert.equal(await run(["chunks"], { stdin: "[]" }), { exitCode: 0, stdout: "", stderr: "" });
});

test("the options are checked before the input", async () => {
  const cases = [
    [["--put-step", "2", "--put-step-rank", "2"], /not below --put-step/],
    [["--block-size", "24", "--hash-block-size", "16"], /--block-size|block size 24/],
  ] as const;
  for (const [argv, message] of cases)
    assert.match((await run(["chunks", "no hash", ...argv])).stderr, message);
});

test("refuses sizes and lengths that do not fit, with the numbers", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--block-size", "24", "--hash-block-size", "16"], /ERR_CHUNK: block size 24/],
    [["--block-size", "16", "--token-len", "20"], /ERR_CHUNK: 20 tokens are not a multiple/],
    [["--block-size", "16", "--token-len", "144"], /ERR_CHUNK: 144 tokens need 9 block hashes/],
    [["--chunk-mask", "1021"], /made of 0 and 1/],
    [["--put-step", "2", "--put-step-rank", "2"], /not below --put-step/],
    [["--put-step", "0"], /whole number of 1 or more/],
  ];
  for (const [argv, message] of cases) {
    const { exitCode, stdout, stderr } = await run(chunks(...argv));
    assert.equal([exitCode, stdout], [2, ""], argv.join(" "));
    assert.match(stderr, message);
  }
});

test.run();
