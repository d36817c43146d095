import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import { BlobBlockHashes } from "../../../src/hash/blob-block-hashes.js";
import { KeyTable } from "../../../src/key/key-table.js";
import { KeyList, type StoreKeys } from "../../../src/store/shared/keys.js";

function texts(keys: StoreKeys): string[] {
  const list = new KeyList(keys);
  return Array.from({ length: list.length }, (_, index) => list.at(index));
}

test("takes tables, text and raw bytes", () => {
  assert.equal(texts([]), []);
  assert.equal(texts(["a", "", "ü€", "a\0b"]), ["a", "", "ü€", "a\0b"]);
  assert.equal(texts(KeyTable.fromTexts(["x", "y"])), ["x", "y"]);
  assert.equal(texts(KeyTable.fromHashes("p", BlobBlockHashes.from([Uint8Array.of(1, 255)]))), ["p@01ff"]);
  assert.equal(texts({ bytes: Uint8Array.of(97, 98, 99), offsets: Uint32Array.of(0, 1, 1, 3) }), [
    "a",
    "",
    "bc",
  ]);
});

test("bytes that are no UTF-8 are kept", () => {
  const list = new KeyList({ bytes: Uint8Array.of(0xff, 0x80), offsets: Uint32Array.of(0, 2) });
  assert.equal(list.flat.bytes, Uint8Array.of(0xff, 0x80));
  assert.is(list.at(0), "\ufffd\ufffd");
});

test("raw keys are a copy", () => {
  const bytes = Uint8Array.of(97);
  const list = new KeyList({ bytes, offsets: Uint32Array.of(0, 1) });
  bytes[0] = 98;
  assert.is(list.at(0), "a");
});

test("takes the table of another copy of the package", () => {
  const other = { length: 1, flat: () => KeyTable.fromTexts(["z"]).flat() };
  assert.equal(texts(other as unknown as KeyTable), ["z"]);
});

const bad: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /undefined is no list of keys/],
  ["key", /"key" is no list of keys/],
  [["a", 1], /key 1 is 1; a key is a string/],
  [[undefined], /key 0 is undefined/],
  [{ bytes: new Uint8Array(1), offsets: new Uint32Array(0) }, /offsets are empty/],
  [{ bytes: new Uint8Array(3), offsets: Uint32Array.of(0, 2, 1) }, /offset 2 is 1, below/],
  [{ bytes: new Uint8Array(3), offsets: Uint32Array.of(0, 4) }, /last offset is 4, but there are 3 bytes/],
  [{ bytes: [1], offsets: [0, 1] }, /no list of keys/],
];

for (const [keys, message] of bad)
  test(`refuses ${String(message)}`, () => {
    assert.throws(
      () => new KeyList(keys as StoreKeys),
      (error: unknown) => isMooncakeKvError(error, "ERR_STORE") && message.test(error.message),
    );
  });

test.run();
