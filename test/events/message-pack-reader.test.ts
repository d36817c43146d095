import { ExtData, encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MessagePackFault } from "../../src/events/message-pack-fault.js";
import { MessagePackReader } from "../../src/events/message-pack-reader.js";
import { check } from "../helpers/property.js";

const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));

/** Any value that MessagePack has. */
const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(
      fc.constant(null),
      fc.boolean(),
      fc.maxSafeInteger(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
      fc.double(),
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.uint8Array({ maxLength: 40 }),
      fc
        .record({ type: fc.nat(100), data: fc.uint8Array({ maxLength: 40 }) })
        .map(({ type, data }) => new ExtData(type, data)),
    ),
    fc.array(tie("value"), { maxLength: 20 }),
    fc.dictionary(fc.string({ maxLength: 40 }), tie("value"), { maxKeys: 20 }),
  ),
})).value;

const encoded = anything.map((value) => encode(value, { useBigInt64: true }));

/** Values whose lengths take more than a byte. */
const LONG: readonly unknown[] = [200, 300, 70_000].flatMap((length) => [
  "x".repeat(length),
  new Uint8Array(length),
  new ExtData(1, new Uint8Array(length)),
  new Array(length).fill(null),
  Object.fromEntries(Array.from({ length }, (_, at) => [at, 0])),
]);

test("whatever is passed over ends where it ends, and has no end where it is cut off", () => {
  check(
    fc.property(encoded, fc.uint8Array({ maxLength: 20 }), fc.nat(), (value, behind, cut) => {
      const reader = new MessagePackReader(Uint8Array.from([...value, ...behind]));
      reader.skip();
      assert.is(reader.offset, value.length);
      assert.throws(
        () => new MessagePackReader(value.subarray(0, cut % value.length)).skip(),
        (error: unknown) => error instanceof MessagePackFault,
      );
    }),
  );
  for (const value of LONG) {
    const reader = new MessagePackReader(encode([value, 5]));
    reader.listLength();
    reader.skip();
    assert.is(reader.integer(), 5);
    assert.throws(() => new MessagePackReader(encode(value).subarray(0, -1)).skip(), /end in the middle/);
  }
  for (const wide of [
    "dc0001c0",
    "dd00000001c0",
    "de0001a0c0",
    "df00000001a0c0",
    "c80001ff00",
    "c900000001ff00",
  ]) {
    const reader = new MessagePackReader(bytes(`${wide}c1`));
    reader.skip();
    assert.is(reader.left, 1, wide);
    assert.throws(() => reader.skip(), /\(0xc1\) does not begin a value/);
  }
});

test("whole numbers of every width", () => {
  const widths: readonly [string, number | bigint][] = [
    ["7f", 127],
    ["e0", -32],
    ["ff", -1],
    ["cc80", 128],
    ["cdfffe", 65_534],
    ["cefffffffe", 4_294_967_294],
    ["cf0000000000000005", 5],
    ["cf001fffffffffffff", Number.MAX_SAFE_INTEGER],
    ["cf0020000000000000", 2n ** 53n],
    ["cfffffffffffffffff", 2n ** 64n - 1n],
    ["d080", -128],
    ["d17fff", 32_767],
    ["d18000", -32_768],
    ["d27fffffff", 2_147_483_647],
    ["d280000000", -2_147_483_648],
    ["d3ffffffffffffffff", -1],
    ["d3ffe0000000000001", Number.MIN_SAFE_INTEGER],
    ["d38000000000000000", -(2n ** 63n)],
  ];
  for (const [text, value] of widths) {
    const reader = new MessagePackReader(bytes(text));
    assert.is(reader.integer(), value, text);
    assert.is(reader.left, 0);
    for (let length = 0; length < text.length / 2; length++)
      assert.throws(
        () => new MessagePackReader(bytes(text).subarray(0, length)).integer(),
        (error: unknown) => error instanceof MessagePackFault,
      );
  }
  assert.is(new MessagePackReader(bytes("ca3fc00000")).float(), 1.5);
  assert.is(new MessagePackReader(bytes("cbc004000000000000")).float(), -2.5);
});

test("lists that each announce all bytes that are left take no memory for them", () => {
  // Room for what 30 lists announce would take 2 GB.
  const nested = new Uint8Array(8 << 20);
  const view = new DataView(nested.buffer);
  for (let depth = 0; depth < 30; depth++) {
    const at = 5 * depth;
    nested[at] = 0xdd;
    view.setUint32(at + 1, nested.length - at - 5);
  }
  // What the innermost one begins with is no extra key.
  nested[150] = 0x80;
  const reader = new MessagePackReader(nested);
  const before = process.memoryUsage().heapUsed;
  let during = 0;
  reader.fault = (expected) => {
    during = process.memoryUsage().heapUsed;
    return new MessagePackFault(expected);
  };
  assert.throws(() => reader.value(), /a whole number/);
  assert.ok(during - before < 16 << 20, `${during - before} bytes of memory`);
});

test.run();
