import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MAX_INPUT_BYTES, MAX_LINE_BYTES } from "../../../src/cli/input/limits.js";
import { linesOf } from "../../../src/cli/input/lines.js";
import { run } from "../helpers/run.js";

async function lines(...pieces: readonly (string | Uint8Array)[]) {
  const found: [number, string | undefined][] = [];
  const input = Readable.from(pieces.map((piece) => Buffer.from(piece)));
  for await (const { number, text } of linesOf(input, "it")) found.push([number, text]);
  return found;
}

test("lines, wherever the pieces are cut", async () => {
  const whole = "a\r\n\nbü\nc";
  const expected = [
    [1, "a"],
    [2, ""],
    [3, "bü"],
    [4, "c"],
  ];
  const bytes = Buffer.from(whole);
  for (let cut = 0; cut <= bytes.length; cut++)
    assert.equal(await lines(bytes.subarray(0, cut), bytes.subarray(cut)), expected, `cut at ${cut}`);
  assert.equal(await lines(...Array.from(bytes, (byte) => Uint8Array.of(byte))), expected);
  assert.equal(await lines("a\n"), [[1, "a"]]);
  assert.equal(await lines(), []);
});

test("a line that is not UTF-8 is told by its number", async () => {
  assert.equal(await lines("a\n", Uint8Array.of(0xff), "\n\nb"), [
    [1, "a"],
    [2, undefined],
    [3, ""],
    [4, "b"],
  ]);
});

test("a line without an end is refused at the limit, whether it comes in pieces or at once", async () => {
  const piece = Buffer.alloc(1 << 20, "x");
  const endless = async function* () {
    yield Buffer.from("a\n");
    for (;;) yield piece;
  };
  const read = async (pieces: AsyncIterable<Uint8Array>) => {
    for await (const _ of linesOf(pieces, "it"));
  };
  const message = async (work: Promise<unknown>) =>
    work.then(
      () => "",
      (error: Error) => error.message,
    );
  assert.is(await message(read(endless())), "it line 2: more than 16 MiB, the limit of a line");
  const long = Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + 1, "x"), Buffer.from("\n")]);
  assert.is(await message(read(Readable.from([long]))), "it line 1: more than 16 MiB, the limit of a line");
});

const WHOLE: readonly (readonly string[])[] = [
  ["hash"],
  ["chunks"],
  ["key", "build", "--model-name", "m"],
  ["validate", "-", "--type", "KeyMetadata"],
  ["layout", "-"],
  ["lookup", "--store", "embedded:", "--model-name", "m"],
  ["lookup", "--store", "embedded:", "--model-name", "m", "--hashes"],
];

for (const argv of WHOLE)
  test(`${argv.join(" ")}: an input beyond the limit is refused, with the limit`, async () => {
    const { exitCode, stdout, stderr } = await run(argv, { stdin: Buffer.alloc(MAX_INPUT_BYTES + 1, " ") });
    assert.equal([exitCode, stdout], [2, ""]);
    assert.match(stderr, "ERR_USAGE: stdin: more than 32 MiB, the limit of an input");
  });

if (existsSync("/dev/zero"))
  for (const [argv, limit] of [
    [["hash", "-f", "/dev/zero"], /more than 32 MiB/],
    [["layout", "/dev/zero"], /more than 32 MiB/],
    [["validate", "/dev/zero", "--type", "ReqMeta"], /more than 32 MiB/],
    [["validate", "/dev/zero", "--type", "ReqMeta", "--lines"], /line 1: more than 16 MiB/],
    [["key", "parse", "-f", "/dev/zero"], /line 1: more than 16 MiB/],
    [["conformance", "/dev/zero"], /line 1: more than 16 MiB/],
    [
      ["lookup", "--store", "embedded:", "--model-name", "m", "--tokenizer", "/dev/zero", "x"],
      /more than 32 MiB/,
    ],
  ] as const)
    test(`${argv.join(" ")} ends`, async () => {
      const { exitCode, stdout, stderr } = await run(argv);
      assert.equal([exitCode, stdout], [2, ""]);
      assert.match(stderr, limit);
    });

test.run();
