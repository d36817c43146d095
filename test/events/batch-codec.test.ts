import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  blockRemoved,
  blockStored,
  decodeEventBatch,
  EventHashes,
  encodeEvent,
  encodeEventBatch,
  isAmbiguous,
  type KVCacheEvent,
} from "../../src/events/index.js";
import { RELEASES } from "../../src/release.js";
import { check } from "../helpers/property.js";
import { batchOf, plain } from "./arbitraries.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));
const stored = blockStored({
  blockHashes: EventHashes.from([bytes("aabb")]),
  tokenIds: Uint32Array.of(1, 2),
  blockSize: 2,
  medium: "cpu",
  groupIdx: 0,
});
const batch = { ts: 1.5, events: [stored], dataParallelRank: 0 };

/** The forms that were seen on the wire, as msgspec wrote them. */
const MAP_EVENT =
  "89a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c402aabbb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3637075a96c6f72615f6e616d65c0a967726f75705f69647800";
const ARRAY_EVENT = "9fab426c6f636b53746f72656491c402aabbc092010202c0a3637075c0c000c0c0c0c0c0";

test("the array batch with map events and with array events, byte by byte", () => {
  const release = "vllm-0.31";
  assert.is(hex(encodeEventBatch(batch, { release })), `93cb3ff800000000000091${MAP_EVENT}00`);
  assert.is(
    hex(encodeEventBatch(batch, { release, eventForm: "array" })),
    `93cb3ff800000000000091${ARRAY_EVENT}00`,
  );
  assert.is(
    hex(encodeEventBatch({ ts: 1.5, events: [{ type: "AllBlocksCleared" }], dataParallelRank: 3 })),
    "93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c656172656403",
  );
});

test("every form is read to the same batch", () => {
  for (const release of RELEASES)
    for (const eventForm of ["map", "array"] as const)
      for (const batchForm of ["array", "map", "tagged-map"] as const)
        for (const dataParallelRank of [null, 7]) {
          const encoded = encodeEventBatch({ ...batch, dataParallelRank }, { release, eventForm, batchForm });
          const { events, unknownEvents, unknownFields, ...rest } = decodeEventBatch(encoded);
          assert.equal(rest, { ts: 1.5, dataParallelRank });
          assert.equal(events.map(plain), [plain(stored)]);
          assert.equal([unknownEvents, unknownFields], [0, 0]);
        }
});

test("what is encoded is read back, and encoded again to the same bytes", () => {
  for (const release of RELEASES)
    check(
      fc.property(
        batchOf(release),
        fc.constantFrom("map" as const, "array" as const),
        fc.constantFrom("array" as const, "map" as const, "tagged-map" as const),
        (original, eventForm, batchForm) => {
          const options = { release, eventForm, batchForm };
          const encoded = encodeEventBatch(original, options);
          const decoded = decodeEventBatch(encoded);
          assert.is(decoded.ts, original.ts);
          assert.is(decoded.dataParallelRank, original.dataParallelRank);
          assert.equal(decoded.events.map(plain), original.events.map(plain));
          assert.is(hex(encodeEventBatch(decoded, options)), hex(encoded));
        },
      ),
      { numRuns: 200 },
    );
});

test("members in any order, older and shorter events, and what newer ones add", () => {
  const members = { parent_block_hash: null, token_ids: [1], block_hashes: [9], block_size: 4 };
  const read = (value: unknown) => decodeEventBatch(encode(value, { useBigInt64: true }));
  const plainStored = (event: KVCacheEvent | undefined) => {
    assert.is(event?.type, "BlockStored");
    const { blockHashes, tokenIds, medium } = event as typeof stored;
    return [blockHashes.ids[0], [...tokenIds], medium];
  };
  const last = read([1, [{ ...members, type: "BlockStored" }]]);
  assert.equal(plainStored(last.events[0]), [9n, [1], null]);
  const newer = read([
    1,
    [{ type: "BlockStored", ...members, shiny: { a: [1, 2n ** 60n] }, more: "x" }],
    0,
    "extra",
  ]);
  assert.equal(plainStored(newer.events[0]), [9n, [1], null]);
  assert.equal([newer.unknownFields, newer.unknownEvents, newer.dataParallelRank], [3, 0, 0]);
  const shorter = read([1, [["BlockStored", [9], null, [1], 4]]]);
  assert.equal(plainStored(shorter.events[0]), [9n, [1], null]);
  const longer = read([1, [["BlockRemoved", [9], "GPU", 1, null, null, "new", [[]]]], null]);
  assert.equal([longer.events.length, longer.unknownFields], [1, 2]);
  const unknown = read([
    1,
    [["BlockMoved", 1, { a: 2 }], { type: "BlockMoved", x: [1] }, ["AllBlocksCleared"]],
    0,
  ]);
  assert.equal([unknown.events.map(({ type }) => type), unknown.unknownEvents], [["AllBlocksCleared"], 2]);
  assert.equal(read(["KVEventBatch", 1, [], 5]).dataParallelRank, 5);
});

test("signed and unsigned integers and bytes of one hash have one id", () => {
  const digest = `${"00".repeat(24)}f892553bef84ef0c`;
  const forms = [bytes(digest), 17_911_472_383_915_781_900n, -535_271_689_793_769_716n];
  const encoded = encode([1, [["BlockRemoved", forms, "GPU"]], 0], { useBigInt64: true });
  const [event] = decodeEventBatch(encoded).events;
  assert.equal(
    [...(event as { blockHashes: EventHashes }).blockHashes.ids],
    [17_911_472_383_915_781_900n, 17_911_472_383_915_781_900n, 17_911_472_383_915_781_900n],
  );
});

test("an event with tokens of more or fewer blocks than hashes is ambiguous", () => {
  const event = (hashes: number, tokens: number) =>
    blockStored({
      blockHashes: EventHashes.from(Array.from({ length: hashes }, (_, i) => BigInt(i))),
      tokenIds: new Uint32Array(tokens),
      blockSize: 16,
    });
  assert.equal([event(1, 48), event(3, 16), event(0, 1)].map(isAmbiguous), [true, true, true]);
  assert.equal([event(3, 48), event(3, 0), event(1, 9)].map(isAmbiguous), [false, false, false]);
});

test("bytes that are no batch are refused with a reason", () => {
  const nil = "c0";
  const list = (...events: string[]) =>
    `92cb3ff0000000000000${(0x90 + events.length).toString(16)}${events.join("")}`;
  const wrong: readonly [string, RegExp][] = [
    ["", /end in the middle/],
    [nil, /a list/],
    ["90", /time and a list/],
    ["80", /time and a list/],
    ["91cb3ff0000000000000", /time and a list/],
    [`${list()}00`, /1 bytes follow/],
    [list(nil), /a map/],
    [list("80"), /no type/],
    [list("90"), /a type/],
    ["92cb3ff0000000000000dd7fffffff", /announced/],
    ["92cb3ff0000000000000df7fffffff", /a list/],
    [list(hex(encode(["BlockStored", [1], null, [1], 0]))), /block_size is 0/],
    [list(hex(encode(["BlockStored", [1], null, [1]]))), /no block_size/],
    [list(hex(encode(["BlockStored", null, null, [1], 1]))), /block_hashes is null/],
    [list(hex(encode(["BlockStored", ["x"], null, [1], 1]))), /a block hash/],
    [list(hex(encode(["BlockStored", [1.5], null, [1], 1]))), /a block hash/],
    [list(hex(encode(["BlockStored", [1], null, [-1], 1]))), /-1 is no whole number/],
    [
      list(hex(encode(["BlockStored", [1], null, [2 ** 32], 1], { useBigInt64: true }))),
      /whole number|above/,
    ],
    [list(hex(encode(["BlockRemoved", [1], 5]))), /text/],
    [list("92ac426c6f636b52656d6f76656492c1"), /announced|end/],
    [list("82a474797065a141a142"), /end in the middle|announced/],
  ];
  for (const [text, message] of wrong)
    assert.throws(
      () => decodeEventBatch(bytes(text)),
      (error: unknown) => {
        assert.ok(isMooncakeKvError(error, "ERR_SCHEMA"), String(error));
        assert.match(error.message, message);
        return true;
      },
      text,
    );
  assert.throws(
    () => decodeEventBatch("x" as unknown as Uint8Array),
    (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
  );
});

/** Decodes, or says that the bytes are refused; anything else fails. */
function survives(input: Uint8Array): void {
  try {
    decodeEventBatch(input);
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
  }
}

test("any bytes are read or refused", () => {
  check(fc.property(fc.uint8Array({ maxLength: 64 }), survives));
  check(
    fc.property(fc.uint8Array({ maxLength: 40 }), (tail) =>
      survives(Uint8Array.of(0x92, 0x01, 0x91, ...tail)),
    ),
  );
});

test("good bytes that were cut or changed are read or refused", () => {
  check(
    fc.property(
      batchOf("vllm-0.33"),
      fc.constantFrom("map" as const, "array" as const),
      fc.nat(),
      fc.nat(255),
      (original, eventForm, at, byte) => {
        const encoded = encodeEventBatch(original, { eventForm });
        survives(encoded.subarray(0, at % encoded.length));
        encoded[at % encoded.length] = byte;
        survives(encoded);
      },
    ),
  );
});

test("a member that the release does not have, or of the wrong kind, is refused", () => {
  const refuse = (event: unknown, release: "vllm-0.27" | "vllm-0.31" | "vllm-0.33" = "vllm-0.33") =>
    assert.throws(
      () => encodeEvent(event as KVCacheEvent, { release }),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
  refuse({ ...stored, sessionId: "s" }, "vllm-0.27");
  refuse({ ...stored, lookaheadTokenIds: [[1]] }, "vllm-0.31");
  refuse({ ...blockRemoved({ blockHashes: stored.blockHashes }), ownership: "x" }, "vllm-0.27");
  refuse({ type: "BlockMoved" });
  refuse({ ...stored, medium: 5 });
  refuse({ ...stored, medium: "\ud800" });
  refuse({ ...stored, blockSize: 1.5 });
  refuse({ ...stored, blockSize: null });
  refuse({ ...stored, groupIdx: 2n ** 64n });
  refuse({ ...stored, extraKeys: [[() => 1]] });
  for (const hash of [2n ** 64n, -(2n ** 63n) - 1n, "aa", 5])
    assert.throws(
      () => EventHashes.from([hash as bigint]),
      (error: unknown) => isMooncakeKvError(error, "ERR_SCHEMA"),
    );
});

test.run();
