import { encode } from "@msgpack/msgpack";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type BlockStored,
  blockStoredCodec,
  kvCacheEventCodec,
  kvEventBatchCodec,
} from "../../generated/typescript/index.js";
import { isMooncakeKvError } from "../../src/errors.js";

// Types that MessagePack may have as a list or as a map, types told apart by a tag, and values the schema leaves open.

const pack = (value: unknown) => encode(value, { useBigInt64: true });
const stored = ["BlockStored", [7, Uint8Array.of(171)], null, [1, 2], 2];
const asMap = {
  type: "BlockStored",
  block_hashes: [7, Uint8Array.of(171)],
  parent_block_hash: null,
  token_ids: [1, 2],
  block_size: 2,
};

test("a list, a short list and a map of one event are one value", () => {
  const expected = blockStoredCodec.fromMessagePack(pack(asMap));
  assert.equal(expected.blockHashes, [7n, Uint8Array.of(171)]);
  assert.equal(blockStoredCodec.fromMessagePack(pack(stored)), expected);
  assert.equal(blockStoredCodec.fromMessagePack(pack([...stored, null, null, null])), expected);
  for (const event of [stored, asMap])
    for (const batch of [[1.5, [event], 3], { ts: 1.5, events: [event], data_parallel_rank: 3 }])
      assert.equal(kvEventBatchCodec.fromMessagePack(pack(batch)), {
        ts: 1.5,
        events: [expected],
        dataParallelRank: 3,
      });
});

test("a batch is written as a list, an event as a map", () => {
  const batch = kvEventBatchCodec.fromMessagePack(pack([1.5, [["AllBlocksCleared"]]]));
  assert.equal(kvEventBatchCodec.toMessagePack(batch), pack([1.5, [{ type: "AllBlocksCleared" }], null]));
});

test("a signed integer is the unsigned one of the same bytes", () => {
  const { blockHashes } = blockStoredCodec.fromMessagePack(
    pack({ ...asMap, block_hashes: [-1, -(2n ** 63n)] }),
  );
  assert.equal(blockHashes, [2n ** 64n - 1n, 2n ** 63n]);
});

const refused: readonly [name: string, value: unknown, message: RegExp][] = [
  ["a list that is too long", ["AllBlocksCleared", 1], /a list of 1 members; the type has 0/],
  ["the tag of no option", ["BlockMoved", 1], /is refused/],
  ["a list without a tag", [[1]], /is refused/],
  ["a map without a tag", { block_hashes: [] }, /the property "type" is missing/],
  ["a number", 5, /5 is refused: expected the object KVCacheEvent/],
  ["a hash of text", ["BlockRemoved", ["x"]], /"x" is refused: expected bin, or an integer/],
];
for (const [name, value, message] of refused)
  test(`refused: ${name}`, () => {
    assert.throws(
      () => kvCacheEventCodec.fromMessagePack(pack(value)),
      (error: unknown) => {
        assert.ok(isMooncakeKvError(error, "ERR_SCHEMA"));
        assert.match(error.message, message);
        return true;
      },
    );
  });

test("an open value has one form in JSON, and no other is read", () => {
  const event = {
    ...blockStoredCodec.fromMessagePack(pack(asMap)),
    extraKeys: [[5n, 2n ** 60n, Uint8Array.of(1), [-3]]],
  };
  const json = blockStoredCodec.toJson(event);
  assert.equal(json.extra_keys, [[5, { integer: "1152921504606846976" }, { bytes: "01" }, [-3]]]);
  const wrong: unknown[] = [{ bytes: "0" }, { bytes: "AB" }, { integer: "1.0" }, { bytes: "", more: 1 }, {}];
  for (const key of wrong)
    assert.throws(
      () => blockStoredCodec.fromJson({ ...json, extra_keys: [[key]] }),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
  for (const key of [() => 1, new Map(), Number.NaN, 2n ** 64n, "\ud800"])
    assert.throws(
      () => blockStoredCodec.toJson({ ...event, extraKeys: [[key]] } as BlockStored),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
});

test("a value of no option is refused before anything is written", () => {
  assert.throws(
    () => kvCacheEventCodec.toMessagePack({ type: "BlockMoved" } as never),
    /\$\.type: "BlockMoved" is refused: it is the type of no option/,
  );
});

test.run();
