import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { dissectPickle } from "../../src/conformance/vectors/pickle-opcodes.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { type Hashable, SharedText } from "../../src/hash/hashable.js";
import { pickleDumps, pickleTail } from "../../src/hash/pickle.js";
import {
  buildHashable,
  type HashableSpec,
  hashableSpec,
} from "../../src/testing/arbitraries/hash-arbitraries.js";
import { check, seed } from "../helpers/property.js";
import { pythonPickles } from "./python-pickle.js";
import { unpickle } from "./unpickle.js";

const hex = (value: Hashable) => Buffer.from(pickleDumps(value)).toString("hex");
/** The opcodes between the header (protocol, frame) and the final stop. */
const body = (value: Hashable) => {
  const text = hex(value);
  const framed = text.startsWith("800595");
  return text.slice(framed ? 22 : 4, -2);
};

/** A value in the form in which `unpickle` returns it. */
function plain(value: Hashable): unknown {
  if (value === null) return null;
  if (typeof value === "number" || typeof value === "bigint") return BigInt(value);
  if (value instanceof Uint8Array) return `b:${Buffer.from(value).toString("hex")}`;
  if (Array.isArray(value)) return value.map(plain);
  const text = value instanceof SharedText ? value.text : (value as string);
  return `t:${utf8(text)}`;
}

/** UTF-8 with lone surrogates kept as three bytes each. */
function utf8(text: string): string {
  return Array.from(text, (character) => {
    const code = character.codePointAt(0)!;
    if (code < 0xd800 || code > 0xdfff) return Buffer.from(character).toString("hex");
    return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)]
      .map((byte) => byte.toString(16))
      .join("");
  }).join("");
}

const integers: readonly (readonly [bigint, string])[] = [
  [0n, "4b00"],
  [255n, "4bff"],
  [256n, "4d0001"],
  [65_535n, "4dffff"],
  [65_536n, "4a00000100"],
  [2n ** 31n - 1n, "4affffff7f"],
  [2n ** 31n, "8a050000008000"],
  [2n ** 32n - 1n, "8a05ffffffff00"],
  [-1n, "4affffffff"],
  [-(2n ** 31n), "4a00000080"],
  [-(2n ** 31n) - 1n, "8a05ffffff7fff"],
  [2n ** 39n - 1n, "8a05ffffffff7f"],
  [2n ** 39n, "8a06000000008000"],
  [-(2n ** 39n), "8a050000000080"],
  [2n ** 63n, "8a09000000000000008000"],
  [-(2n ** 63n), "8a080000000000000080"],
  [2n ** 2039n - 1n, `8aff${"ff".repeat(254)}7f`],
  [2n ** 2039n, `8b00010000${"00".repeat(254)}8000`],
  [-(2n ** 2039n), `8aff${"00".repeat(254)}80`],
];
test("every width of an integer", () => {
  for (const [value, expected] of integers) {
    assert.is(body(value), expected, `${value}`);
    if (Number.isSafeInteger(Number(value))) assert.is(body(Number(value)), expected, `${value}`);
  }
});

test("a value below 4 bytes has no frame, one of 4 has", () => {
  assert.is(hex(null), "80054e2e");
  assert.is(hex(7), "80054b072e");
  assert.is(hex(256), "80059504000000000000004d00012e");
});

test("texts and bytes change their head at 256 bytes of UTF-8, not of UTF-16", () => {
  assert.is(body("0"), "8c013094");
  assert.is(body("a".repeat(255)).slice(0, 6), "8cff61");
  assert.is(body("a".repeat(256)).slice(0, 12), "580001000061");
  assert.is(body("é".repeat(127)).slice(0, 4), "8cfe");
  assert.is(body("é".repeat(128)).slice(0, 10), "5800010000");
  assert.is(body(new Uint8Array(255)).slice(0, 4), "43ff");
  assert.is(body(new Uint8Array(256)).slice(0, 10), "4200010000");
});

test("a surrogate pair is one character, a lone surrogate three bytes", () => {
  assert.is(body("\u{1f600}"), "8c04f09f988094");
  assert.is(body("\ud83d"), "8c03eda0bd94");
  assert.is(body("\ude00\ud83d"), "8c06edb880eda0bd94");
});

test("tuples of 0, 1, 2, 3 and more items each have their form", () => {
  assert.is(body([]), "29");
  assert.is(body([1]), "4b018594");
  assert.is(body([1, 2]), "4b014b028694");
  assert.is(body([1, 2, 3]), "4b014b024b038794");
  assert.is(body([1, 2, 3, 4]), "284b014b024b034b047494");
});

test("what CPython keeps once is a back-reference; other plain strings are written twice", () => {
  const second = (value: () => Hashable) => body([value(), value()]).slice(-8, -4);
  for (const text of ["", "a", "\u00ff"])
    assert.is(
      second(() => text),
      "6800",
      JSON.stringify(text),
    );
  for (const size of [0, 1])
    assert.is(
      second(() => new Uint8Array(size)),
      "6800",
      `${size} bytes`,
    );
  for (const value of [() => "ab", () => "\u0100", () => new Uint8Array(2), () => [1]] as const)
    assert.is.not(second(value), "6800");
});

test("one object twice is a back-reference, be it a text, bytes or a tuple", () => {
  const text = new SharedText("ab");
  const bytes = new Uint8Array(2);
  const tuple = [1];
  assert.is(body([text, text]), "8c0261629468008694");
  assert.is(body([bytes, bytes]), "430200009468008694");
  assert.is(body([tuple, tuple]), "4b01859468008694");
  const [a, b] = [new SharedText("ab"), new SharedText("ab")];
  assert.is(body([a, b]), "8c02616294" + "8c02616294" + "8694");
});

test("a text of one shared character is one object, whether shared by hand or not", () => {
  assert.is(body([new SharedText("a"), "a"]), "8c01619468008694");
});

test("references above 255 take four bytes", () => {
  const texts = Array.from({ length: 258 }, (_, index) => new SharedText(`text ${index}`));
  assert.ok(body([...texts, texts[255]!, texts[256]!]).endsWith("68ff6a000100007494"));
});

test("a tail numbers its objects after those before it", () => {
  const shared = new SharedText("xy");
  assert.is(Buffer.from(pickleTail([shared, shared], 2)).toString("hex"), "8c0278799468028694");
});

/** Tokens of three bytes each, the parentheses of a tuple around them. */
const wide = (count: number) => Array.from({ length: count }, () => 300);

test("a frame is closed before the object that begins at 64 KiB or later", () => {
  // The mark takes 1 byte and each token 3: 21,845 tokens end exactly at 65,536.
  const { frames } = dissectPickle(pickleDumps(wide(21_846)));
  assert.equal(
    frames.map(([, length]) => length),
    [65_536, 3 + 1 + 1 + 1],
  );
  const oneFrame = dissectPickle(pickleDumps(wide(21_845))).frames;
  assert.equal(oneFrame, [[11, 65_536 + 3]]);
});

test("a payload of 64 KiB lies outside of the frames, one byte less lies inside", () => {
  const inside = dissectPickle(pickleDumps([new Uint8Array(65_535), 1])).frames;
  assert.equal(
    inside.map(([, length]) => length),
    [5 + 65_535 + 1, 2 + 1 + 1 + 1],
  );
  const outside = pickleDumps([new Uint8Array(65_536), 1]);
  assert.is(Buffer.from(outside.subarray(0, 7)).toString("hex"), "80054200000100");
  assert.equal(dissectPickle(outside).frames, [[2 + 5 + 65_536 + 9, 6]]);
});

for (const value of [undefined, true, 1.5, Number.NaN, 2 ** 53, {}, new Map()] as unknown as Hashable[])
  test(`${String(value)} is refused`, () => {
    assert.throws(
      () => pickleDumps([value]),
      (error: unknown) => isMooncakeKvError(error, "ERR_HASH"),
    );
  });

test("law: a pickle reads back as its value", () => {
  check(
    fc.property(hashableSpec(), (spec) => {
      assert.equal(unpickle(pickleDumps(buildHashable(spec))), plain(buildHashable(spec)));
    }),
  );
});

/** Values around every border, and then whatever comes. */
function batch(): HashableSpec[] {
  const text = { text: "é", repeat: 32_768 };
  const bytes = (repeat: number) => ({ bytes: "ab", repeat });
  const ints = (count: number, value: number) => ({ ints: Array.from({ length: count }, () => value) });
  const many = Array.from({ length: 300 }, (_, index) => ({ text: `t${index}` }));
  const borders: HashableSpec[] = [
    ...integers.map(([value]) => ({ int: value.toString() })),
    ...[21_844, 21_845, 21_846].flatMap((count) => [ints(count, 300), { tuple: [ints(count, 300), null] }]),
    ints(20_000, 2 ** 31),
    { tuple: [ints(13_106, 70_000), { text: "x" }, { ref: 1 }] },
    ...[65_534, 65_535, 65_536, 65_537].flatMap((count) => [
      bytes(count),
      { tuple: [bytes(count), { int: "1" }] },
    ]),
    { tuple: [ints(30_000, 5), bytes(65_536), ints(3, 70_000), text, { ref: 1 }, { ref: 3 }] },
    { tuple: [{ text: "a", repeat: 65_535 }, text, { text: "a", repeat: 255 }, { text: "a", repeat: 256 }] },
    { tuple: [...many, { ref: 0 }, { ref: 255 }, { ref: 256 }, { ref: 299 }] },
  ];
  return [...borders, ...fc.sample(hashableSpec(), { seed, numRuns: 2000 })];
}

test("the same bytes as CPython's own pickler", () => {
  const specs = batch();
  const pickles = pythonPickles(specs);
  if ("missing" in pickles) {
    assert.not.ok(process.env["CI"], `CI compares with CPython, but ${pickles.missing}`);
    console.log(`not compared with CPython: ${pickles.missing}; every pickle was read back instead`);
    for (const spec of specs)
      assert.equal(unpickle(pickleDumps(buildHashable(spec))), plain(buildHashable(spec)));
    return;
  }
  assert.is(pickles.length, specs.length);
  for (const [index, spec] of specs.entries())
    if (hex(buildHashable(spec)) !== pickles[index])
      assert.unreachable(`value ${index} differs: ${JSON.stringify(spec).slice(0, 300)}`);
});

test.run();
