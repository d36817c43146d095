import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlockHashListWithBlockSize, chunkHashesForBlockSize } from "../../src/chunk/chunk-hashes.js";
import { chunkSizes, chunkTokens } from "../../src/chunk/chunk-tokens.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/blob-block-hashes.js";
import { chunkTexts, coarseHashIsTheLastFineOne } from "../../src/testing/laws/chunk-laws.js";
import { check } from "../helpers/property.js";

const hashes = new BlobBlockHashes(
  Uint8Array.from({ length: 7 }, (_, index) => index),
  1,
);
const values = (list: Iterable<Uint8Array>) => Array.from(list, (hash) => hash[0]);

test("a coarse list picks the last fine hash of each whole coarse block", () => {
  const coarse = new BlockHashListWithBlockSize(hashes, 4, 8);
  assert.equal([coarse.length, coarse.scaleFactor, values(coarse)], [3, 2, [1, 3, 5]]);
  assert.equal([coarse.at(3), coarse.at(0)![0]], [undefined, 1]);
});

test("a negative index counts fine hashes, as vLLM's does", () => {
  const coarse = new BlockHashListWithBlockSize(hashes, 4, 8);
  assert.equal([coarse.at(-1)![0], coarse.at(-2)![0]], [6, 4]);
});

test("slices are over the coarse blocks", () => {
  const coarse = new BlockHashListWithBlockSize(hashes, 4, 8);
  assert.equal(
    [values(coarse.slice(1)), values(coarse.slice(-1)), values(coarse.slice(undefined, undefined, -2))],
    [[3, 5], [5], [5, 1]],
  );
});

test("it follows a list that grows", () => {
  const fine = [Uint8Array.from([0])];
  const coarse = new BlockHashListWithBlockSize(fine, 4, 8);
  assert.is(coarse.length, 0);
  fine.push(Uint8Array.from([1]));
  assert.equal([coarse.length, coarse.at(0)![0]], [1, 1]);
});

test("equal sizes give the very same list", () => {
  assert.is(chunkHashesForBlockSize(hashes, 4, 4), hashes);
  assert.instance(chunkHashesForBlockSize(hashes, 4, 8), BlockHashListWithBlockSize);
});

test("sizes that do not divide are refused with both numbers", () => {
  for (const [fine, coarse] of [
    [4, 6],
    [8, 4],
    [0, 4],
  ] as const)
    assert.throws(
      () => new BlockHashListWithBlockSize(hashes, fine, coarse),
      (error: unknown) =>
        isMooncakeKvError(error, "ERR_CHUNK") &&
        error.message.includes(`block size ${coarse} must be a multiple of hash block size ${fine}`),
    );
});

test("spans: hashes as a blob and slices as views", () => {
  const chunks = chunkTokens(chunkSizes(8, 4), 28, hashes);
  assert.equal(chunkTexts(chunks), ["0-8:1", "8-16:3", "16-24:5", "24-28:6"]);
  assert.equal(values(chunks.hashes()), [1, 3, 5, 6]);
  const part = chunks.slice(1, 3);
  assert.equal(chunkTexts(part), ["8-16:3", "16-24:5"]);
  assert.is(part.starts.buffer, chunks.starts.buffer);
  assert.equal(chunkTexts(chunks.slice(-1)), ["24-28:6"]);
  assert.equal(values(part.hashes()), [3, 5]);
});

test("law: a coarse hash is the last fine one", () => check(coarseHashIsTheLastFineOne()));

test.run();
