import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlockHasher } from "../../src/hash/block-hasher.js";
import { cborDumps } from "../../src/hash/cbor.js";
import { ExtraKeySource, type ExtraKeys, firstMmIndex, toEventExtraKeys } from "../../src/hash/extra-keys.js";
import { type Hashable, SharedText } from "../../src/hash/hashable.js";
import { pickleDumps } from "../../src/hash/pickle.js";
import type { HashRequest } from "../../src/hash/request.js";
import { hashRequest, mmFeatures } from "../../src/testing/arbitraries/hash-arbitraries.js";
import { check } from "../helpers/property.js";

/** Extra keys without their identities. */
function plain(keys: Hashable): unknown {
  if (keys instanceof SharedText) return keys.text;
  if (keys instanceof Uint8Array) return Buffer.from(keys).toString("hex");
  return Array.isArray(keys) ? keys.map(plain) : keys;
}

function keysOf(
  request: HashRequest,
  start: number,
  end: number,
  mmIndex = 0,
  release: "vllm-0.27" | "vllm-0.33" = "vllm-0.33",
) {
  const { extraKeys, nextMmIndex } = new ExtraKeySource(request, release).blockExtraKeys(start, end, mmIndex);
  return [plain(extraKeys), nextMmIndex];
}

const image = (identifier: string, offset: number, length: number) => ({ identifier, offset, length });
const everything: HashRequest = {
  loraRequest: { loraName: "l", loraPath: "/l" },
  mmFeatures: [image("i", 2, 4)],
  cacheSalt: "s",
  promptEmbeds: { data: new Uint8Array(32), rows: 32 },
};
const zeros4 = "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119";

test("nothing gives null", () => {
  assert.equal(keysOf({}, 0, 4), [null, 0]);
  assert.equal(keysOf({ mmFeatures: [], cacheSalt: "" }, 0, 4), [null, 0]);
  assert.ok(new ExtraKeySource({ cacheSalt: "" }).empty);
  for (const name of Object.keys(everything))
    assert.not(new ExtraKeySource({ [name]: everything[name as keyof HashRequest] }).empty, name);
});

test("LoRA, items, salt, embeddings: in this order, tagged since vllm-0.31", () => {
  assert.equal(keysOf(everything, 0, 4), [
    [
      ["lora", "l", "/l"],
      ["mm", "i", 2],
      ["cache_salt", "s"],
      ["prompt_embeds", zeros4],
    ],
    0,
  ]);
  assert.equal(keysOf(everything, 0, 4, 0, "vllm-0.27"), [["l", ["i", 2], "s", zeros4], 0]);
});

test("later blocks have no salt, and an item that began earlier has a negative offset", () => {
  assert.equal(keysOf(everything, 4, 8)[0], [
    ["lora", "l", "/l"],
    ["mm", "i", -2],
    ["prompt_embeds", zeros4],
  ]);
});

test("the walk over the items stops, passes and goes on as vLLM's does", () => {
  const request = { mmFeatures: [image("a", 0, 2), image("b", 2, 6), image("c", 8, 1)] };
  assert.equal(keysOf(request, 0, 2), [[["mm", "a", 0]], 1]);
  assert.equal(keysOf(request, 0, 4), [
    [
      ["mm", "a", 0],
      ["mm", "b", 2],
    ],
    1,
  ]);
  assert.equal(keysOf(request, 4, 8, 1), [[["mm", "b", -2]], 2], "ends where the block ends");
  assert.equal(keysOf(request, 8, 12, 0), [[["mm", "c", 0]], 3], "passed ones are left behind");
  assert.equal(keysOf(request, 9, 12, 1), [null, 1], "nothing after the last item, the index untouched");
  assert.equal(keysOf(request, 8, 9, -1), [[["mm", "c", 0]], 3], "a negative index counts from the end");
});

test("an index before the first item is an error with both numbers", () => {
  assert.throws(
    () => keysOf({ mmFeatures: [image("a", 0, 2)] }, 0, 2, -2),
    (error: unknown) => isMooncakeKvError(error, "ERR_HASH") && /item -2 .* has 1/.test(error.message),
  );
});

test("a block with look-ahead sees the items of both, and the next one sees them again", () => {
  const source = new ExtraKeySource({ mmFeatures: [image("a", 1, 1), image("b", 5, 1)] });
  const { extraKeys, nextMmIndex } = source.lookaheadExtraKeys(0, 4, 6, 0);
  assert.equal(
    [plain(extraKeys), nextMmIndex],
    [
      [
        ["mm", "a", 1],
        ["mm", "b", 5],
      ],
      1,
    ],
  );
});

test("equal texts are one object only where the request says so, which pickle sees and CBOR does not", () => {
  const mm = [image("same-id", 0, 1), image("same-id", 2, 1)];
  const keys = (sharedTexts: boolean) =>
    new ExtraKeySource({ mmFeatures: mm, cacheSalt: "same-id", sharedTexts }).blockExtraKeys(0, 4, 0)
      .extraKeys;
  assert.ok(pickleDumps(keys(true)).length < pickleDumps(keys(false)).length);
  assert.equal(Buffer.from(cborDumps(keys(true))), Buffer.from(cborDumps(keys(false))));
});

test("published digests of one identifier used twice", () => {
  const hasher = new BlockHasher({ blockSize: 4 });
  const digest = (first: Hashable, second: Hashable, by = hasher) =>
    Buffer.from(
      by.hashBlock(
        new Uint8Array(32),
        [1, 2, 3, 4],
        [
          [first, 0],
          [second, 2],
        ],
      ),
    ).toString("hex");
  // The identifier of the published vector is the one of the example with an image.
  const shared = new SharedText("imghash0123");
  assert.is(digest(shared, shared), "0d7c991ce0eab2cd04b2a7b1b79b52551f37a59f73e8d5efc4dac763ab540498");
  assert.is(
    digest("imghash0123", "imghash0123"),
    "14f424de6034247839ed93993ef4299340c51ab916de93ccbe05358e5e6ccd8d",
  );
  const cbor = new BlockHasher({ blockSize: 4, algorithm: "sha256_cbor" });
  for (const text of [shared, "imghash0123"])
    assert.is(digest(text, text, cbor), "f42b5a0b285f45816568ade37b5620511f85dc1ea69828535b84a38b82f656f2");
});

test("events carry the keys without their tags", () => {
  const blocks: ExtraKeys[] = [new ExtraKeySource(everything).blockExtraKeys(0, 4, 0).extraKeys, null];
  assert.equal(toEventExtraKeys(blocks)!.map(plain), [["l", ["i", 2], "s", zeros4], null]);
  assert.is(toEventExtraKeys([]), null);
});

test("law: the first item past a position is the first one that reaches past it", () => {
  check(
    fc.property(mmFeatures(), fc.nat(150), (features, start) => {
      const first = features.findIndex(({ offset, length }) => offset + length > start);
      assert.is(firstMmIndex(features, start), first < 0 ? features.length : first);
    }),
  );
});

test("law: walking block by block names each item exactly in the blocks that it overlaps", () => {
  check(
    fc.property(mmFeatures(), fc.integer({ min: 1, max: 12 }), (features, blockSize) => {
      const source = new ExtraKeySource({ mmFeatures: features });
      let index = 0;
      for (let start = 0; start < 160; start += blockSize) {
        const end = start + blockSize;
        const { extraKeys, nextMmIndex } = source.blockExtraKeys(start, end, index);
        index = nextMmIndex;
        const overlapping = features.filter(({ offset, length }) => offset < end && offset + length > start);
        const expected = overlapping.map(({ identifier, offset }) => ["mm", identifier, offset - start]);
        assert.equal(plain(extraKeys), expected.length ? expected : null);
      }
    }),
  );
});

test("law: untagged keys are the keys of vllm-0.27", () => {
  check(
    fc.property(hashRequest(), (request) => {
      const blocks = [0, 5, 10, 15].map(
        (start) => new ExtraKeySource(request).blockExtraKeys(start, start + 5, 0).extraKeys,
      );
      const old = [0, 5, 10, 15].map((start) => keysOf(request, start, start + 5, 0, "vllm-0.27")[0]);
      assert.equal(toEventExtraKeys(blocks)!.map(plain), old);
    }),
  );
});

test.run();
