import { Command } from "commander";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { inTermsOfOptions } from "../../src/cli/option-terms.js";
import { MooncakeKvError } from "../../src/errors.js";
import { run } from "./helpers/run.js";

const command = new Command("x").option("--none-hash <hex>").option("--tp-size <n>");

function said(message: string): string {
  return (inTermsOfOptions(new MooncakeKvError("ERR_HASH", message), command) as Error).message;
}

test("names of the API become those of the options, or of the input", () => {
  assert.is(said("noneHash must be long"), "--none-hash must be long");
  assert.is(said("tpSize 3, mmFeatures[0].offset"), "--tp-size 3, mm_features[0].offset");
  assert.is(said("numHashLookaheadTokens 1"), "--lookahead 1");
  assert.is(said("promptEmbeds has 3 bytes"), "prompt_embeds has 3 bytes");
});

test("what others wrote, paths and options of stores stay as they are", () => {
  for (const text of ['"noneHash" is bad', "/a/noneHash", "metadataServer is bad", 'the "a \\" tpSize" text'])
    assert.is(said(text), text);
});

test("an error keeps its code, its details and its cause; other values pass", () => {
  const error = new MooncakeKvError("ERR_KEY", "tpSize", { a: 1 });
  const shown = inTermsOfOptions(error, command) as MooncakeKvError;
  assert.equal([shown.code, shown.details, shown.cause], ["ERR_KEY", { a: 1 }, error]);
  const other = new Error("tpSize");
  assert.is(inTermsOfOptions(other, command), other);
  assert.is(inTermsOfOptions(error, undefined), error);
});

const MESSAGES: readonly (readonly [readonly string[], string, RegExp])[] = [
  [
    ["hash", "1", "--none-hash", "abcd"],
    "",
    /--none-hash has 2 bytes; the root of sha256 has 32: 64 hex digits/,
  ],
  [
    ["hash", "1", "--lora-name", "a"],
    "",
    /--lora-name without a path; vllm-0\.33 hashes both: add --lora-path/,
  ],
  [["hash", "1", "--lookahead", "1", "--release", "vllm-0.31"], "", /ERR_HASH: --lookahead 1 does not exist/],
  [["hash"], '{"prompt_token_ids": [1], "lora_request": {"lora_name": "a"}}', /"a" has no --lora-path/],
  [
    ["hash"],
    '{"prompt_token_ids": [1, 2], "prompt_embeds": {"data": "00", "rows": 1}}',
    /prompt_embeds has 1 rows/,
  ],
  [
    ["hash", "1", "--algorithm", "sha256_cbor_64bit"],
    "",
    /early name of sha256_cbor.*Allowed choices are sha256,/,
  ],
  [["hash", "1", "--algorithm", "md5"], "", /'md5' is invalid. Allowed choices are sha256, sha256_cbor/],
  [["hash", "1", "--algorithm", "xxhash"], "", /--seed.*--private-root/],
  [
    ["lookup", "--store", "embedded:", "--model-name", "m", "1", "--algorithm", "xxhash"],
    "",
    /pass it as --seed/,
  ],
  [
    ["lookup", "--store", "embedded:", "--model-name", "m", "1", "--algorithm", "builtin"],
    "",
    /Python's own hash/,
  ],
];

for (const [argv, stdin, message] of MESSAGES)
  test(`${argv.join(" ")} ${stdin}: in the words of the command`, async () => {
    const { exitCode, stdout, stderr } = await run(argv, { stdin });
    assert.equal([exitCode, stdout], [2, ""]);
    assert.match(stderr, message);
    assert.not.match(stderr, /noneHash|loraPath|loraRequest|promptEmbeds|rootSharing|Uint8Array|numHash/);
  });

test.run();
