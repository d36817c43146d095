import { Encoder } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeLookupRequest, LOOKUP_MSG, LookupResponder, parseRequest } from "../../src/lookup/index.js";
import { MAX_LOOKUP_HASHES, startsList, unpackHashes } from "../../src/lookup/packed-hashes.js";
import { check } from "../helpers/property.js";

const pack = (value: unknown) => new Encoder().encode(value);
const read = (value: unknown) => {
  const found = unpackHashes(pack(value));
  return typeof found === "string" ? found : found.toHex();
};
const MIB = 2 ** 20;

test("lists of any size and hashes of any length are read as MessagePack reads them", () => {
  const digit = fc.constantFrom(..."0123456789abcdefABCDEF");
  check(
    fc.property(
      fc.nat(20),
      fc.integer({ min: 1, max: 40 }),
      fc.infiniteStream(digit),
      (count, bytes, stream) => {
        const texts = Array.from({ length: count }, () => [...stream.take(2 * bytes)].join(""));
        assert.equal(
          read(texts),
          texts.map((text) => text.toLowerCase()),
        );
      },
    ),
    { numRuns: 300 },
  );
  for (const [count, bytes] of [
    [15, 15],
    [16, 16],
    [65_535, 1],
    [65_536, 1],
    [2, 127],
    [2, 128],
    [2, 32_767],
    [2, 32_768],
  ] as const) {
    const texts = Array.from({ length: count }, (_, index) =>
      index
        .toString(16)
        .padStart(2 * bytes, "a")
        .slice(-2 * bytes),
    );
    assert.ok(startsList(pack(texts)));
    assert.equal(read(texts), texts);
  }
});

test("a list that is none, with hashes of several lengths, or with something behind it, is refused with the reason", () => {
  for (const [value, reason] of [
    [["61", 5], /^hash 1 is no text$/],
    [["61", new Uint8Array(1)], /^hash 1 is no text$/],
    [[null], /^hash 0 is no text$/],
    [["6"], /^hash 0 has 1 hex digits/],
    [[""], /^hash 0 has 0 hex digits/],
    [["", "61"], /^hash 0 has 0 hex digits/],
    [["61", ""], /^hash 1 has 0 hex digits, the first one 2$/],
    [["61", "6162"], /^hash 1 has 4 hex digits, the first one 2$/],
    [["61", "6g"], /^hash 1 is no hex$/],
    [["é"], /^hash 0 is no hex$/],
  ] as const)
    assert.match(read([...value, "61".repeat(8)]) as string, reason);
  const list = pack(["6161", "6262"]);
  assert.match(unpackHashes(Buffer.concat([list, Uint8Array.of(0)])) as string, /^1 bytes follow/);
  for (let end = 1; end < list.length; end++)
    assert.type(unpackHashes(list.subarray(0, end)), "string", `${end}`);
  for (const head of [[0xdc], [0xdc, 0], [0xdd, 0, 0, 0]])
    assert.match(unpackHashes(Uint8Array.from(head)) as string, /ends in its first bytes/);
});

test("a number of hashes that the bytes can't hold, or no question has, is refused before there is memory for it", () => {
  const announced = (count: number, ...rest: number[]) => {
    const bytes = Buffer.alloc(5);
    bytes[0] = 0xdd;
    bytes.writeUInt32BE(count, 1);
    return unpackHashes(Buffer.concat([bytes, Uint8Array.from(rest)])) as string;
  };
  assert.match(announced(2 ** 32 - 1, 0xa2, 0x30, 0x30), /^the list has 4294967295 hashes/);
  assert.match(announced(MAX_LOOKUP_HASHES + 1, 0xa2, 0x30, 0x30), /at most 1048576$/);
  assert.match(
    announced(MAX_LOOKUP_HASHES, 0xa2, 0x30, 0x30),
    /^1048576 hashes of 2 hex digits are announced/,
  );
  assert.match(
    announced(1, 0xdb, 0xff, 0xff, 0xff, 0xfe),
    /^1 hashes of 4294967294 hex digits are announced/,
  );
});

test("any bytes are read or refused", () => {
  const heads = fc.constantFrom([0x92], [0x9f], [0xdc, 0, 2], [0xdd, 0, 0, 0, 2], [0xdd, 0, 16, 0, 0]);
  const text = fc.constantFrom(
    [0xa2, 0x61, 0x62],
    [0xd9, 2, 0x61, 0x62],
    [0xa0],
    [0xda],
    [0xdb, 255, 255, 255, 255],
  );
  check(
    fc.property(heads, fc.array(fc.oneof(text, fc.array(fc.nat(255), { maxLength: 4 }))), (head, parts) => {
      const found = unpackHashes(Uint8Array.from([...head, ...parts.flat()]));
      if (typeof found !== "string") assert.is(found.hashLength, 1);
    }),
  );
});

/** A list of `size` bytes that repeats one element. */
function hugeList(size: number, element: readonly number[]): Uint8Array {
  const count = Math.floor((size - 5) / element.length);
  const list = Buffer.alloc(5 + count * element.length);
  list[0] = 0xdd;
  list.writeUInt32BE(count, 1);
  list.fill(Uint8Array.from(element), 5);
  return list;
}

/** Milliseconds and bytes that reading a request takes. The bytes of the request itself are not counted. */
async function costOf(frames: readonly Uint8Array[]) {
  const responder = new LookupResponder({ lookup: () => ({ hitLength: 0, tailKeyBoundaries: [] }) });
  const before = process.memoryUsage();
  const started = performance.now();
  await responder.respond(frames);
  const ms = performance.now() - started;
  const after = process.memoryUsage();
  const bytes = after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers;
  return { ms, bytes, counters: responder.counters };
}

const tokens = Uint8Array.of(0, 0, 0, 16);
const hash = [0xd9, 64, ...new Array<number>(64).fill(0x61)];
for (const size of [8 * MIB, 24 * MIB])
  for (const [name, frames] of [
    ["the older form", (list: Uint8Array) => [LOOKUP_MSG, tokens, list]],
    ["the first form", (list: Uint8Array) => [tokens, list]],
  ] as const) {
    for (const [what, element] of [
      ["empty texts", [0xa0]],
      ["hashes of one byte", [0xa2, 0x61, 0x61]],
      ["texts in lists", [0x91, 0xa0]],
    ] as const)
      test(`${size / MIB} MiB of ${what} in ${name} are refused at once`, async () => {
        const { ms, bytes, counters } = await costOf(frames(hugeList(size, element)));
        assert.equal([counters.malformed, counters.lookups], [1, 0]);
        assert.ok(ms < 100, `${ms} ms`);
        assert.ok(bytes < MIB, `${bytes} bytes`);
      });
    test(`${size / MIB} MiB of hashes in ${name} cost less memory than the message, and no object a hash`, async () => {
      const list = hugeList(size, hash);
      const { ms, bytes, counters } = await costOf(frames(list));
      assert.is(counters.lookups, 1);
      assert.ok(ms < 1_000, `${ms} ms`);
      assert.ok(bytes < size, `${bytes} bytes`);
      list[list.length - 1] = 0x7a;
      const refused = await costOf(frames(list));
      assert.is(refused.counters.malformed, 1);
      assert.ok(refused.ms < 1_000, `${refused.ms} ms`);
    });
  }

test("the current form has as many hashes at most", () => {
  const parsed = (length: number, hashLength: number) =>
    parseRequest([LOOKUP_MSG, tokens, Uint8Array.of(0, hashLength), new Uint8Array(length)]);
  assert.is(parsed(MAX_LOOKUP_HASHES, 1).kind, "lookup");
  assert.is(parsed(MAX_LOOKUP_HASHES + 1, 1).kind, "malformed");
  assert.is(parsed(2 * MAX_LOOKUP_HASHES + 1, 2).kind, "lookup");
});

test("long integers and many frames are refused at once", () => {
  const [tag, number, length, blob] = encodeLookupRequest({ numTokens: 16, blockHashes: [Uint8Array.of(1)] });
  const zeros = new Uint8Array(24 * MIB);
  for (const frames of [
    [tag!, zeros, length!, blob!],
    [tag!, number!, zeros, blob!],
    [tag!, number!, length!, blob!, ...new Array<Uint8Array>(100_000).fill(blob!)],
    [number!, ...new Array<Uint8Array>(100_000).fill(Uint8Array.of(0x91))],
  ]) {
    const started = performance.now();
    assert.is(parseRequest(frames).kind, "malformed");
    assert.ok(performance.now() - started < 50);
  }
});

test.run();
