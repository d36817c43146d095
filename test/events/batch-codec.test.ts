import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  blockStored,
  decodeEventBatch,
  EventHashes,
  encodeEventBatch,
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
          const { events, unknownEvents, unknownFields, malformedEvents, problems, ...rest } =
            decodeEventBatch(encoded);
          assert.equal(rest, { ts: 1.5, dataParallelRank });
          assert.equal(events.map(plain), [plain(stored)]);
          assert.equal([unknownEvents, unknownFields, malformedEvents, problems], [0, 0, 0, []]);
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

test("the placeholder of native CPU offload is an event like others", () => {
  const placeholder =
    "93cb3ff80000000000009189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cf0000000000000007b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647390aa626c6f636b5f73697a6500a76c6f72615f6964c0a66d656469756da3435055a96c6f72615f6e616d65c0a967726f75705f6964780000";
  const { events, problems } = decodeEventBatch(bytes(placeholder));
  const [event] = events as (typeof stored)[];
  assert.equal([event!.blockSize, event!.tokenIds.length, event!.medium, event!.groupIdx], [0, 0, "CPU", 0]);
  assert.equal([events.length, [...event!.blockHashes.ids], problems], [1, [7n], []]);
  assert.is(decodeEventBatch(encodeEventBatch({ ts: 1, events, dataParallelRank: 0 })).events.length, 1);
});

test("of members that come twice the last one counts, as in msgspec", () => {
  const twice = (first: string, last: string) => {
    const head = "84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739105";
    return decodeEventBatch(bytes(`92cb3ff000000000000091${head}${first}${last}`));
  };
  const medium = (value: string) => `a66d656469756d${value}`;
  const [event] = twice(medium("a3475055"), medium("a3435055")).events;
  assert.is((event as typeof stored).medium, "CPU");
  const [hashes] = twice(`ac626c6f636b5f6861736865739106`, medium("c0")).events;
  assert.equal([...(hashes as typeof stored).blockHashes.ids], [6n]);
  assert.is(twice(medium("05"), medium("a3435055")).malformedEvents, 1);
});

/** A batch of the given events between two good ones. */
const amongGood = (...events: readonly unknown[]) =>
  encode([1, [["BlockRemoved", [1]], ...events, { type: "BlockRemoved", block_hashes: [2] }], 0], {
    useBigInt64: true,
  });

test("one event that can't be read costs one event, whatever is wrong with it", () => {
  const wrong: readonly [unknown, string | undefined, RegExp][] = [
    [["BlockStored", [5], null, [1, 2, 3, 4], 4, null, "GPU", { cache_salt: "t" }], "BlockStored", /text/],
    [["BlockStored", [1], null, [1], -1], "BlockStored", /-1 is no whole number/],
    [["BlockStored", [1], null, [1]], "BlockStored", /no block_size/],
    [["BlockStored", null, null, [1], 1], "BlockStored", /block_hashes is null/],
    [["BlockStored", ["x"], null, [1], 1], "BlockStored", /a block hash/],
    [["BlockStored", [1.5], null, [1], 1], "BlockStored", /a block hash/],
    [["BlockStored", [1], null, [-1], 1], "BlockStored", /-1 is no whole number/],
    [["BlockStored", [1], null, [2n ** 40n], 1], "BlockStored", /above 2\^32/],
    [["BlockRemoved", [1], 5], "BlockRemoved", /text/],
    [{ type: "BlockRemoved" }, "BlockRemoved", /no block_hashes/],
    [{ block_hashes: [1] }, undefined, /no type/],
    [{ type: 5 }, undefined, /text/],
    [{ 5: "type" }, undefined, /no type/],
    [null, undefined, /a map/],
    [5, undefined, /a map/],
    ["BlockStored", undefined, /a map/],
    [[], undefined, /a type/],
    [{}, undefined, /no type/],
    [[["AllBlocksCleared"]], undefined, /text/],
  ];
  for (const [event, type, message] of wrong) {
    const { events, problems, malformedEvents, unknownEvents } = decodeEventBatch(amongGood(event));
    assert.equal(
      events.map((each) => (each as { blockHashes: EventHashes }).blockHashes.ids[0]),
      [1n, 2n],
    );
    assert.equal([malformedEvents, unknownEvents, problems.length], [1, 0, 1], JSON.stringify(event, String));
    assert.equal([problems[0]!.index, problems[0]!.type, problems[0]!.reason], [1, type, "malformed"]);
    assert.match(problems[0]!.message, /^event 1 of the batch/);
    assert.match(problems[0]!.message, message);
  }
  const { problems, unknownEvents } = decodeEventBatch(amongGood(["BlockMoved", 1, { a: 2 }]));
  assert.equal([unknownEvents, problems[0]!.type, problems[0]!.reason], [1, "BlockMoved", "unknown-type"]);
});

test("all bad events are counted, the first of them told", () => {
  const many = Array.from({ length: 1000 }, () => ["BlockStored", 5]);
  const { events, problems, malformedEvents } = decodeEventBatch(amongGood(...many));
  assert.equal([events.length, problems.length, malformedEvents], [2, 100, 1000]);
});

test("extra keys in a form that nothing here holds cost the extra keys alone", () => {
  let deep: unknown = [];
  for (let depth = 0; depth < 50; depth++) deep = [deep];
  for (const extra of [[[{ cache_salt: "t" }]], [{ a: 1 }], "x", { a: [1] }, [[deep]], [["a"], 5]]) {
    const { events, problems, unknownFields } = decodeEventBatch(
      amongGood(["BlockStored", [5], null, [1], 4, null, "GPU", null, extra, 3]),
    );
    const [, event] = events as (typeof stored)[];
    assert.equal([problems, unknownFields, event!.extraKeys, event!.groupIdx], [[], 1, null, 3]);
  }
});

/** Any value, often one that looks like a part of an event. */
const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(
      fc.constant(null),
      fc.boolean(),
      fc.integer(),
      fc.double(),
      fc.string(),
      fc.uint8Array(),
      fc.constantFrom("BlockStored", "BlockRemoved", "AllBlocksCleared", "type", "block_hashes"),
    ),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(fc.constantFrom("type", "block_hashes", "medium", "x"), tie("value")),
  ),
})).value;

/** That the values given to `amongGood` cost, at most, one event each. */
function costOneEach(values: readonly unknown[]): void {
  const { events, malformedEvents, unknownEvents, problems } = decodeEventBatch(amongGood(...values));
  assert.is(events.length + malformedEvents + unknownEvents, values.length + 2);
  assert.is(problems.length, malformedEvents + unknownEvents);
  const ids = [events[0], events.at(-1)].map(
    (event) => (event as { blockHashes: EventHashes }).blockHashes.ids[0],
  );
  assert.equal(ids, [1n, 2n]);
}

test("whatever stands in the place of an event costs that event alone", () => {
  check(fc.property(fc.array(anything, { maxLength: 5 }), costOneEach));
});

test("whatever stands in the place of a member costs at most its event", () => {
  const members = {
    type: "BlockStored",
    block_hashes: [5],
    parent_block_hash: null,
    token_ids: [1],
    block_size: 4,
  };
  const more = {
    lora_id: null,
    medium: "GPU",
    lora_name: null,
    extra_keys: [["a"]],
    group_idx: 0,
    locality: "x",
  };
  const names = Object.keys({ ...members, ...more });
  check(
    fc.property(fc.constantFrom(...names, "shiny"), anything, fc.boolean(), (name, value, list) => {
      const event = { ...members, ...more, [name]: value };
      costOneEach([list ? Object.values(event) : event]);
    }),
  );
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
    ["92cb3ff0000000000000dd7fffffff", /announced/],
    ["92cb3ff0000000000000df7fffffff", /a list/],
    [list("c1"), /a value|a map/],
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

test.run();
