import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/blob-block-hashes.js";
import { KeyTable } from "../../src/key/key-table.js";
import { flatKeysAreTheKeys } from "../../src/testing/laws/key-laws.js";
import { check } from "../helpers/property.js";

const hashes = new BlobBlockHashes(Uint8Array.from([0x00, 0xff, 0x1a, 0x2b]), 2);

test("one key a hash", () => {
  const table = KeyTable.fromHashes("m@group:0", hashes);
  assert.equal([table.length, table.toArray()], [2, ["m@group:0@00ff", "m@group:0@1a2b"]]);
  assert.equal([...table], table.toArray());
});

test("several prefixes are innermost", () => {
  const table = KeyTable.fromPrefixes(["é", "b"], hashes);
  assert.equal(table.toArray(), ["é@00ff", "b@00ff", "é@1a2b", "b@1a2b"]);
  const { bytes, offsets } = table.flat();
  assert.is(Buffer.from(bytes).toString(), "é@00ffb@00ffé@1a2bb@1a2b");
  assert.equal([...offsets], [0, 7, 13, 20, 26]);
});

test("outside of the table there is no key", () => {
  const table = KeyTable.fromTexts(["a", "b"]);
  assert.equal(
    [0, 1, 2, -1, 0.5, Number.NaN].map((index) => table.at(index)),
    ["a", "b", undefined, undefined, undefined, undefined],
  );
});

test("tables without keys", () => {
  for (const table of [
    KeyTable.fromTexts([]),
    KeyTable.fromPrefixes([], hashes),
    KeyTable.fromHashes("p", new BlobBlockHashes(new Uint8Array(0), 0)),
  ]) {
    const { bytes, offsets } = table.flat();
    assert.equal([table.length, table.toArray(), bytes.length, [...offsets]], [0, [], 0, [0]]);
  }
});

test("a table is a snapshot of the lists it was made from", () => {
  const prefixes = ["a"];
  const texts = ["x"];
  const tables = [KeyTable.fromPrefixes(prefixes, hashes), KeyTable.fromTexts(texts)];
  prefixes[0] = "changed";
  texts.push("more");
  assert.equal(
    tables.map((table) => table.toArray()),
    [["a@00ff", "a@1a2b"], ["x"]],
  );
});

test("the flat form is made once", () => {
  const table = KeyTable.fromHashes("p", hashes);
  assert.is(table.flat(), table.flat());
});

for (const value of [undefined, 5, "\ud800", Uint8Array.from([1])])
  test(`a key or prefix ${String(JSON.stringify(value))} is refused with its place`, () => {
    const ours = (pattern: RegExp) => (error: unknown) =>
      isMooncakeKvError(error, "ERR_KEY") && pattern.test(error.message);
    assert.throws(() => KeyTable.fromTexts(["a", value as string]), ours(/^key 1 .* UTF-8/));
    assert.throws(() => KeyTable.fromPrefixes(["a", value as string], hashes), ours(/^prefix 1 .* UTF-8/));
  });

test("law: the flat form is the keys, whatever their prefixes and hashes", () => check(flatKeysAreTheKeys()));

test.run();
