import { test } from "uvu";
import * as assert from "uvu/assert";
import { type ChunkOptions, chunkSizes, chunkTokens } from "../../src/chunk/chunk-tokens.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/blob-block-hashes.js";
import {
  chunksGrowAtTheEnd,
  chunksTileTheTokens,
  chunkTexts,
  masksOnlyShrink,
  putRanksPartitionTheChunks,
} from "../../src/testing/laws/chunk-laws.js";
import { check } from "../helpers/property.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_CHUNK") && pattern.test(error.message);
/** Hash i is the byte i. */
const hashes = new BlobBlockHashes(
  Uint8Array.from({ length: 12 }, (_, index) => index),
  1,
);
const chunks = (blockSize: number, hashBlockSize: number, tokenLen: number, options?: ChunkOptions) =>
  chunkTexts(chunkTokens(chunkSizes(blockSize, hashBlockSize), tokenLen, hashes, options));

test("the hash block size is the block size unless given; 0 is not given", () => {
  assert.equal(chunkSizes(16), { blockSize: 16, hashBlockSize: 16 });
  assert.equal(chunkSizes(16, 0), { blockSize: 16, hashBlockSize: 16 });
  assert.equal(chunkSizes(16, 4), { blockSize: 16, hashBlockSize: 4 });
});

test("sizes that do not divide are refused with both numbers", () => {
  for (const [size, hashSize] of [
    [16, 5],
    [4, 16],
    [0, 0],
    [-16, 4],
    [16, -4],
    [16.5, 4],
    [Number.NaN, 4],
  ] as const)
    assert.throws(
      () => chunkSizes(size, hashSize),
      ours(new RegExp(`block size ${size} .* hash block size ${hashSize || size}`)),
    );
});

test("a chunk is named by its last hash; the last one may be short", () => {
  assert.equal(chunks(4, 4, 12), ["0-4:0", "4-8:1", "8-12:2"]);
  assert.equal(chunks(8, 4, 20), ["0-8:1", "8-16:3", "16-20:4"]);
  assert.equal(chunks(8, 4, 4), ["0-4:0"]);
  assert.equal(chunks(8, 4, 0), []);
});

test("maskNum leaves out whole chunks, rounded up", () => {
  assert.equal(chunks(4, 4, 12, { maskNum: 4 }), ["4-8:1", "8-12:2"]);
  assert.equal(chunks(4, 4, 12, { maskNum: 5 }), ["8-12:2"]);
  assert.equal(chunks(4, 4, 12, { maskNum: 13 }), []);
  assert.equal(chunks(4, 4, 12, { maskNum: -3 }).length, 3);
  assert.equal(chunks(4, 4, 12, { maskNum: 2 ** 53 - 1 }), []);
});

test("a chunk mask counts from the first wanted chunk; past its end nothing is wanted", () => {
  assert.equal(chunks(4, 4, 16, { chunkMask: [true, false, true] }), ["0-4:0", "8-12:2"]);
  assert.equal(chunks(4, 4, 16, { maskNum: 4, chunkMask: [false, true] }), ["8-12:2"]);
  assert.equal(chunks(4, 4, 8, { chunkMask: Uint8Array.from([1, 1, 1, 1]) }), ["0-4:0", "4-8:1"]);
  assert.equal(chunks(4, 4, 8, { chunkMask: [] }), []);
});

test("put steps count whole chunks of the request, not of the mask", () => {
  assert.equal(chunks(4, 4, 20, { putStep: 2, putStepRank: 1 }), ["4-8:1", "12-16:3"]);
  assert.equal(chunks(4, 4, 20, { maskNum: 4, putStep: 2, putStepRank: 0 }), ["8-12:2", "16-20:4"]);
  assert.equal(chunks(4, 4, 20, { putStep: 2, putStepRank: 2 }), [], "no chunk has that rank");
});

test("without hashes there is nothing to do, whatever the tokens", () => {
  assert.is(chunkTokens(chunkSizes(16), 17, []).length, 0);
});

test("no hash is read before it is asked for", () => {
  const read: number[] = [];
  const watched = {
    length: 12,
    at(index: number) {
      read.push(index);
      return hashes.at(index);
    },
  };
  const found = chunkTokens(chunkSizes(8, 4), 48, watched, { chunkMask: [false, true, false, true] });
  assert.equal(read, []);
  assert.equal([found.hash(1)[0], read], [7, [7]]);
});

const refused: readonly [string, () => unknown, RegExp][] = [
  [
    "tokens between two hashes",
    () => chunks(8, 4, 21),
    /21 tokens are not a multiple of the hash block size 4; round down to 20/,
  ],
  [
    "more tokens than hashes",
    () => chunks(8, 4, 52),
    /52 tokens need 13 block hashes of 4 tokens, but there are 12/,
  ],
  ["half a token", () => chunks(8, 4, 0.5), /tokenLen 0\.5/],
  ["a put step of 0", () => chunks(8, 4, 8, { putStep: 0 }), /putStep 0 must be 1 or more/],
  ["a put step of -1", () => chunks(8, 4, 8, { putStep: -1 }), /putStep -1/],
  ["a rank that is no number", () => chunks(8, 4, 8, { putStepRank: Number.NaN }), /putStepRank NaN/],
  ["a huge maskNum", () => chunks(8, 4, 8, { maskNum: 2 ** 53 }), /maskNum 9007199254740992 .*2\^53/],
  ["tokens beyond 32 bits", () => chunks(2 ** 32, 2 ** 32, 2 ** 32, {}), /tokenLen 4294967296 .*2\^32/],
];
for (const [name, run, message] of refused)
  test(`${name}: refused with the numbers`, () => {
    assert.throws(run, ours(message));
  });

test("law: chunks tile the tokens and end with their hash", () => check(chunksTileTheTokens()));
test("law: masks only shrink the work", () => check(masksOnlyShrink()));
test("law: the put ranks partition the chunks", () => check(putRanksPartitionTheChunks()));
test("law: a longer request begins with the chunks of a shorter one", () => check(chunksGrowAtTheEnd()));

test.run();
