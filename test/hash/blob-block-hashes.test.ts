import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { HASH_ALGORITHMS } from "../../src/hash/algorithm.js";
import { BlobBlockHashes, sliceRange } from "../../src/hash/blob-block-hashes.js";
import { blobBehavesLikeAList } from "../../src/testing/laws/hash-laws.js";
import { check } from "../helpers/property.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_HASH") && pattern.test(error.message);
const blob = new BlobBlockHashes(Uint8Array.from([1, 2, 3, 4, 5, 6, 7]), 2);

test("hashes are views from the front and from the end; a short rest is ignored", () => {
  assert.equal([blob.length, blob.toHex()], [3, ["0102", "0304", "0506"]]);
  assert.equal([...blob.at(-1)!], [5, 6]);
  assert.equal([...blob.at(-3)!], [1, 2]);
  for (const index of [3, -4, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
    assert.is(blob.at(index), undefined);
  assert.is(blob.at(0)!.buffer, blob.blob.buffer, "not copied");
});

test("a hash length of 0 is an empty list", () => {
  const empty = new BlobBlockHashes(Uint8Array.from([1, 2]), 0);
  assert.equal(
    [empty.length, [...empty], empty.at(0), empty.at(-1), empty.slice().length],
    [0, [], undefined, undefined, 0],
  );
});

for (const length of [-1, 1.5, Number.NaN, "2"])
  test(`a hash length of ${JSON.stringify(length)} is refused`, () => {
    assert.throws(
      () => new BlobBlockHashes(new Uint8Array(4), length as number),
      ours(/hash length .* 0 or more/),
    );
  });

test("a plain slice shares the buffer", () => {
  const part = blob.slice(1);
  assert.equal([part.toHex(), part.blob.buffer === blob.blob.buffer], [["0304", "0506"], true]);
  assert.equal(blob.slice(undefined, undefined, -1).toHex(), ["0506", "0304", "0102"]);
});

test("a step of 0 or of half is refused", () => {
  for (const step of [0, 0.5, Number.NaN])
    assert.throws(() => blob.slice(0, 1, step), ours(/slice step .* other than 0/));
  assert.throws(() => sliceRange(3, 0, 1, 0), ours(/slice step 0/));
});

test("joining copies, keeps the order and wants one length", () => {
  const first = Uint8Array.from([1, 2]);
  const joined = BlobBlockHashes.from([first, Uint8Array.from([3, 4])]);
  first.fill(9);
  assert.equal([joined.toHex(), joined.hashLength], [["0102", "0304"], 2]);
  assert.equal([BlobBlockHashes.from([]).length, BlobBlockHashes.from([]).hashLength], [0, 0]);
  assert.throws(
    () => BlobBlockHashes.from([first, new Uint8Array(3)]),
    ours(/block hash 1 has 3 bytes, the first one 2/),
  );
});

test("a hash is found by its bytes", () => {
  assert.is(blob.indexOf(Uint8Array.from([3, 4])), 1);
  assert.is(blob.indexOf(Uint8Array.from([2, 3])), -1, "not across two hashes");
  assert.is(blob.indexOf(Uint8Array.from([3])), -1);
});

for (const algorithm of HASH_ALGORITHMS)
  test(`law: hashes of ${algorithm} behave like a Python list`, () => {
    check(blobBehavesLikeAList(algorithm));
  });

test.run();
