import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { cborDumps } from "../../src/hash/cbor.js";
import { type Hashable, SharedText } from "../../src/hash/hashable.js";
import { buildHashable, hashableSpec } from "../../src/testing/arbitraries/hash-arbitraries.js";
import { check } from "../helpers/property.js";

const hex = (value: Hashable) => Buffer.from(cborDumps(value)).toString("hex");

for (const [value, expected] of [
  [0n, "00"],
  [23n, "17"],
  [24n, "1818"],
  [255n, "18ff"],
  [256n, "190100"],
  [65_535n, "19ffff"],
  [65_536n, "1a00010000"],
  [2n ** 32n - 1n, "1affffffff"],
  [2n ** 32n, "1b0000000100000000"],
  [2n ** 64n - 1n, "1bffffffffffffffff"],
  [2n ** 64n, "c249010000000000000000"],
  [-1n, "20"],
  [-24n, "37"],
  [-25n, "3818"],
  [-256n, "38ff"],
  [-257n, "390100"],
  [-(2n ** 64n), "3bffffffffffffffff"],
  [-(2n ** 64n) - 1n, "c349010000000000000000"],
] as const)
  test(`the integer ${value} has the shortest head`, () => {
    assert.is(hex(value), expected);
    if (Number.isSafeInteger(Number(value))) assert.is(hex(Number(value)), expected);
  });

test("null, texts, bytes and arrays", () => {
  assert.is(hex(null), "f6");
  assert.is(hex("0"), "6130");
  assert.is(hex("é"), "62c3a9");
  assert.is(hex("a".repeat(24)).slice(0, 6), "781861");
  assert.is(hex(new Uint8Array(0)), "40");
  assert.is(hex(new Uint8Array(256)).slice(0, 8), "59010000");
  assert.is(hex([]), "80");
  assert.is(hex(Array.from({ length: 24 }, () => 1)).slice(0, 6), "981801");
  assert.is(hex([null, [1]]), "82f68101");
});

test("identity plays no part", () => {
  const shared = new SharedText("ab");
  assert.is(hex([shared, shared]), hex(["ab", "ab"]));
});

for (const value of [
  "\ud800",
  new SharedText("a\udfff"),
  undefined,
  0.5,
  2 ** 53,
  false,
] as unknown as Hashable[])
  test(`${JSON.stringify(value)} is refused`, () => {
    assert.throws(
      () => hex([1, value]),
      (error: unknown) => isMooncakeKvError(error, "ERR_HASH"),
    );
  });

/** Reads canonical CBOR back; refuses a head that could be shorter. */
function decode(data: Buffer): unknown {
  let at = 0;
  const head = () => {
    const first = data[at++]!;
    const size = [1, 2, 4, 8][(first & 31) - 24];
    if (size === undefined) return { major: first >> 5, argument: BigInt(first & 31) };
    at += size;
    const argument = BigInt(`0x${data.subarray(at - size, at).toString("hex")}`);
    assert.ok(argument >= (size === 1 ? 24n : 1n << BigInt(size * 4)), "the head could be shorter");
    return { major: first >> 5, argument };
  };
  const take = (count: bigint) => {
    at += Number(count);
    assert.ok(at <= data.length);
    return data.subarray(at - Number(count), at);
  };
  const item = (): unknown => {
    if (data[at] === 0xf6) {
      at++;
      return null;
    }
    const { major, argument } = head();
    if (major === 0) return argument;
    if (major === 1) return -1n - argument;
    if (major === 2) return take(argument).toString("hex");
    if (major === 3) return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(take(argument));
    if (major === 4) return Array.from({ length: Number(argument) }, item);
    const digits = item() as string;
    assert.ok(digits.length > 16 && !digits.startsWith("00"), "a tag for what a plain integer holds");
    return argument === 2n ? BigInt(`0x${digits}`) : -1n - BigInt(`0x${digits}`);
  };
  const value = item();
  assert.is(at, data.length);
  return value;
}

function plain(value: Hashable): unknown {
  if (typeof value === "number") return BigInt(value);
  if (value instanceof SharedText) return value.text;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return Array.isArray(value) ? value.map(plain) : value;
}

const wellFormed = (value: unknown): boolean =>
  typeof value === "string" ? value.isWellFormed() : !Array.isArray(value) || value.every(wellFormed);

test("law: what is written reads back, canonical; what has a lone surrogate is refused", () => {
  check(
    fc.property(hashableSpec(), (spec) => {
      const value = buildHashable(spec);
      if (wellFormed(plain(value))) assert.equal(decode(Buffer.from(cborDumps(value))), plain(value));
      else
        assert.throws(
          () => cborDumps(value),
          (error: unknown) => isMooncakeKvError(error, "ERR_HASH"),
        );
    }),
  );
});

test.run();
