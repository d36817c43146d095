import { test } from "uvu";
import * as assert from "uvu/assert";
import { E1 } from "./helpers/examples.js";
import { run, runJson } from "./helpers/run.js";

// What one command prints is what the next one reads: nothing is lost on the way that would make an answer wrong.

const HASH = [
  "hash",
  "--block-size",
  "4",
  "--seed",
  "0",
  ...Array.from({ length: 16 }, (_, at) => String(at)),
];
const LOOKUP = ["lookup", "--store", "embedded:?capacity=1MiB", "--model-name", "m", "--hashes"];

/** What `hash` prints, in each form. */
const forms = () =>
  Promise.all([[], ["--verbose"], ["--json"]].map(async (more) => (await run([...HASH, ...more])).stdout));

test("hash | chunks: chunks of the tokens that a hash is of", async () => {
  for (const stdin of await forms()) {
    const { value } = await runJson<{ chunks: number[][] }>(["chunks"], { stdin });
    assert.equal([value["block_size" as never], value["hash_block_size" as never]], [4, 4]);
    assert.equal(
      value.chunks.map(([start, end]) => [start, end]),
      [0, 4, 8, 12].map((start) => [start, start + 4]),
    );
    const coarse = await run(["chunks", "--block-size", "8"], { stdin });
    assert.match(coarse.stdout, /^0 8 [0-9a-f]{64}\n8 16 [0-9a-f]{64}\n$/);
  }
});

test("hash | lookup --hashes: tokens of the prompt, not of another block size", async () => {
  for (const stdin of await forms()) {
    const { exitCode, value } = await runJson(LOOKUP, { stdin });
    assert.equal([exitCode, value["block_size"], value["num_hashes"]], [0, 4, 4]);
    const { stdout } = await run(LOOKUP, { stdin });
    assert.match(stdout, /^0 of 16 tokens\n/);
  }
});

test("a size that contradicts the hashes is refused by whoever reads them", async () => {
  for (const stdin of await forms()) {
    for (const [argv, message] of [
      [["chunks", "--hash-block-size", "16"], /blocks of 4 tokens, but --hash-block-size is 16/],
      [[...LOOKUP, "--block-size", "16"], /blocks of 4 tokens, but --block-size is 16/],
    ] as const) {
      const { exitCode, stdout, stderr } = await run(argv, { stdin });
      assert.equal([exitCode, stdout], [2, ""], stdin);
      assert.match(stderr, message);
    }
  }
});

test("hashes alone need to be told what they are of", async () => {
  const stdin = E1.sha256.join("\n");
  for (const argv of [["chunks"], LOOKUP]) {
    const { exitCode, stderr } = await run(argv, { stdin });
    assert.is(exitCode, 2);
    assert.match(stderr, /bare hashes don't say how many tokens a block has; add --(hash-)?block-size/);
    const told = await run([...argv, "--block-size", "16"], { stdin });
    assert.is(told.exitCode, 0, told.stderr);
  }
  assert.is((await run(["chunks", "--hash-block-size", "16"], { stdin })).exitCode, 0);
  assert.is((await run([...LOOKUP, "--group", "full:16"], { stdin })).exitCode, 0);
});

test("hashes that are no prompt from its beginning are refused where that matters", async () => {
  const [a, b, c] = [...E1.sha256, E1.defaultSeed[0]];
  for (const [lines, message] of [
    [[`4 8 ${a}`], /hash 0 is of tokens 4 to 8, where 0 to 4 should follow/],
    [[`0 4 ${a}`, `8 12 ${b}`], /hash 1 is of tokens 8 to 12, where 4 to 8 should follow/],
    [[`0 4 ${a}`, `4 6 ${b}`], /hash 1 is of tokens 4 to 6, where 4 to 8 should follow/],
    [[`0 4 ${a}`, c], /only some of the lines are START END HASH/],
  ] as const)
    for (const argv of [["chunks"], LOOKUP]) {
      const { exitCode, stdout, stderr } = await run(argv, { stdin: lines.join("\n") });
      assert.equal([exitCode, stdout], [2, ""], lines.join());
      assert.match(stderr, message);
    }
  // A key can be built of any hash.
  const keys = await run(["key", "build", "--model-name", "m"], { stdin: `8 12 ${a}\n` });
  assert.is(keys.exitCode, 0);
});

test("chunks --json | lookup --hashes", async () => {
  const [stdin] = await forms();
  const { stdout: chunks } = await run(["chunks", "--json"], { stdin: stdin! });
  const { value } = await runJson(LOOKUP, { stdin: chunks });
  assert.equal([value["block_size"], value["num_hashes"]], [4, 4]);
  for (const [broken, message] of [
    ['{"chunks": [[0, 4]]}', /chunks\[0\] is .*a chunk is \[start, end, hash\]/],
    ['{"block_hashes": [], "num_tokens": -1}', /num_tokens -1 is not a whole number/],
  ] as const)
    assert.match((await run(LOOKUP, { stdin: broken })).stderr, message);
});

test.run();
