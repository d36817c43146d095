import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { codecFor, codecs } from "../../generated/typescript/all-releases.js";
import { lookupRequestCodec, reqMetaCodec, resetReplyCodec } from "../../generated/typescript/index.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { typeArbitrary, WIRE_TYPES } from "../../src/testing/arbitraries/wire-arbitraries.js";
import { check } from "../helpers/property.js";

/** Runs a decoder on hostile input: it returns or throws an error of ours; nothing else, and nothing slow. */
function survives(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    assert.ok(error.message.length < 500, `a message of ${error.message.length} characters`);
    return undefined;
  }
}

const anyBytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.anything().map(packed));

function packed(value: unknown): Uint8Array {
  try {
    return encode(value, { useBigInt64: true, maxDepth: 20 });
  } catch {
    return new Uint8Array(0);
  }
}

const anyValue = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
} as fc.ObjectConstraints);

for (const { release, type } of WIRE_TYPES) {
  const codec = codecFor(release, type.name);
  const name = `${type.name} of ${release}`;

  test(`${name}: any bytes and any value never crash a decoder or an encoder`, () => {
    check(
      fc.property(anyBytes, anyValue, (bytes, value) => {
        survives(() => codec.fromMessagePack(bytes));
        survives(() => codec.fromJson(value));
        survives(() => codec.toJson(value));
        survives(() => codec.toMessagePack(value));
        if ("toBinary" in codec) {
          survives(() => codec.fromBinary(bytes as never));
          survives(() => codec.fromBinary([bytes, bytes, bytes, bytes] as never, { lenient: true }));
          survives(() => codec.fromBinary(value as never));
          survives(() => codec.toBinary(value as never));
        }
      }),
      { numRuns: 100 },
    );
  });

  test(`${name}: a changed byte is refused or gives a valid value`, () => {
    check(
      fc.property(typeArbitrary(release, type), fc.nat(), fc.nat({ max: 255 }), (value, at, byte) => {
        const bytes = codec.toMessagePack(value);
        bytes[at % bytes.length] = byte;
        const decoded = survives(() => codec.fromMessagePack(bytes));
        if (decoded !== undefined) codec.toJson(decoded);
        survives(() => codec.fromMessagePack(bytes.subarray(0, at % bytes.length)));
      }),
      { numRuns: 200 },
    );
  });
}

test("deep input is refused, not recursed into", () => {
  const depth = 200_000;
  const deep: unknown = JSON.parse("[".repeat(depth) + "]".repeat(depth));
  const deepObject: unknown = JSON.parse(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`);
  for (const { release, type } of WIRE_TYPES) {
    const codec = codecFor(release, type.name);
    for (const hostile of [deep, deepObject, { req_id: deep }, { block_ids: deep, load_spec: deepObject }])
      survives(() => codec.fromJson(hostile));
    for (const head of [0x91, 0x81, 0xdc, 0xdf]) {
      const bytes = new Uint8Array(100_000).fill(head);
      assert.is(
        survives(() => codec.fromMessagePack(bytes)),
        undefined,
      );
    }
  }
});

test("announced lengths without bytes behind them allocate nothing", () => {
  const before = process.memoryUsage().heapUsed;
  for (const bytes of [
    [0xdd, 0xff, 0xff, 0xff, 0xff],
    [0xdf, 0xff, 0xff, 0xff, 0xff],
    [0xc6, 0xff, 0xff, 0xff, 0xff],
    [0xdb, 0xff, 0xff, 0xff, 0xff],
  ])
    assert.throws(() => reqMetaCodec.fromMessagePack(Uint8Array.from(bytes)), /not MessagePack/);
  const nested = new Uint8Array(1_000_000);
  for (let at = 0; at + 5 <= nested.length; at += 5) nested.set([0xdd, 0x00, 0x00, 0xff, 0xff], at);
  assert.throws(() => reqMetaCodec.fromMessagePack(nested), /not MessagePack/);
  assert.ok(process.memoryUsage().heapUsed - before < 64 << 20);
});

test("MessagePack that is used nowhere here is refused with its reason", () => {
  const cases: [number[], RegExp][] = [
    [[], /ends in the middle/],
    [[0xc1], /kind 0xc1/],
    [[0xd6, 0xff, 0, 0, 0, 0], /kind 0xd6/],
    [[0xc7, 0, 1], /kind 0xc7/],
    [[0xc0, 0xc0], /1 bytes follow the value/],
    [[0xa1, 0xff], /not UTF-8/],
    [[0x81, 0x92, 0, 0, 0], /The type of key must be string or number/],
    [[0x82, 0xa9, ...Buffer.from("__proto__"), 0xc0, 0xa1, 0x61, 0xc0], /__proto__/],
  ];
  for (const [bytes, message] of cases)
    assert.throws(() => reqMetaCodec.fromMessagePack(Uint8Array.from(bytes)), message);
  assert.throws(() => reqMetaCodec.fromMessagePack("x" as never), /"x" is no Uint8Array/);
});

test("MessagePack: text is no bytes, bytes are no text, floats are no integers", () => {
  const meta = {
    req_id: "r",
    token_len_chunk: 16,
    block_ids: [[1]],
    block_hashes: [Uint8Array.from([1, 2])],
  };
  const decode = (changes: object) =>
    reqMetaCodec.fromMessagePack(encode({ ...meta, ...changes }, { useBigInt64: true }));
  assert.is(decode({}).tokenLenChunk, 16);
  assert.is(decode({ token_len_chunk: 2n ** 53n - 1n }).tokenLenChunk, Number.MAX_SAFE_INTEGER);
  assert.throws(
    () => decode({ block_hashes: ["aabb"] }),
    /\$\.block_hashes\[0\]: "aabb" is refused: expected bin/,
  );
  assert.throws(
    () => decode({ req_id: Uint8Array.from([1]) }),
    /\$\.req_id: bytes\(1\) 01 is refused: expected text/,
  );
  assert.throws(
    () => decode({ token_len_chunk: 2n ** 53n }),
    /\$\.token_len_chunk: 9007199254740992n is refused/,
  );
  assert.throws(() => decode({ token_len_chunk: 0.5 }), /\$\.token_len_chunk: 0\.5 is refused/);
  assert.throws(() => decode({ token_len_chunk: -1 }), /\$\.token_len_chunk: -1 is refused/);
  assert.throws(() => decode({ is_last_chunk: true }), /"is_last_chunk" only in vllm-0\.27/);
  const row = codecs["vllm-0.33"].SegmentRow;
  const rowOf = (address: unknown) =>
    row.fromMessagePack(encode({ addresses: [address], sizes: [1], block_id: 0 }, { useBigInt64: true }));
  assert.equal(rowOf(2n ** 64n - 1n).addresses, [2n ** 64n - 1n]);
  assert.equal(rowOf(7).addresses, [7n]);
  assert.throws(
    () => rowOf("7"),
    /\$\.addresses\[0\]: "7" is refused: expected an integer from 0 to 2\^64 - 1/,
  );
  assert.throws(() => rowOf(-1), /\$\.addresses\[0\]: "-1" is refused/);
  assert.throws(() => rowOf(1.5), /\$\.addresses\[0\]: 1\.5 is refused/);
});

test("integers above 32 bits are integers in MessagePack, as other languages expect", () => {
  const bytes = codecs["vllm-0.33"].LoadSpec.toMessagePack({
    vllmCachedTokens: 2 ** 40,
    kvpoolCachedTokens: 0,
    canLoad: true,
    tokenLen: 0,
    tailKeyBoundaries: [],
  });
  assert.ok(Buffer.from(bytes).includes(Buffer.from("cf0000010000000000", "hex")));
});

test("half of a surrogate pair is kept by JSON and refused by MessagePack, which can't hold it", () => {
  const key = codecs["vllm-0.33"].PoolKey;
  const value = key.fromJson({
    key_metadata: { model_name: "m", tp_rank: 0, pcp_rank: 0, dcp_rank: 0, pp_rank: 0 },
    chunk_hash: "\ud800",
  });
  assert.is(value.chunkHash, "\ud800");
  assert.throws(() => key.toMessagePack(value), /half of a surrogate pair/);
});

test("frames that are not a request are refused with the reason", () => {
  const frames = lookupRequestCodec.toBinary({ numTokens: 48, hashLen: 2, blockHashes: new Uint8Array(4) });
  const cases: [unknown, RegExp][] = [
    [frames.slice(0, 3), /expected 4 frames, not 3/],
    [[...frames, new Uint8Array(1)], /expected 4 frames, not 5/],
    [[Buffer.from("lookup "), ...frames.slice(1)], /1 bytes follow the last part/],
    [[Buffer.from("LOOKUP"), ...frames.slice(1)], /expected the tag "lookup"/],
    [[Buffer.from("look"), ...frames.slice(1)], /expected the tag "lookup"/],
    [[frames[0], new Uint8Array(3), ...frames.slice(2)], /num_tokens needs 4 bytes, 3 are left/],
    [[frames[0], new Uint8Array(5), ...frames.slice(2)], /1 bytes follow the last part/],
    [[frames[0], "0000", ...frames.slice(2)], /the frame "0000" is no Uint8Array/],
    [frames[0], /expected 4 frames, not bytes\(6\)/],
    [null, /expected 4 frames, not null/],
  ];
  for (const [wire, message] of cases)
    assert.throws(() => lookupRequestCodec.fromBinary(wire as never), message);
  const long = [frames[0]!, new Uint8Array(9).fill(1), ...frames.slice(2)];
  assert.throws(
    () => lookupRequestCodec.fromBinary(long, { lenient: true }),
    /num_tokens is above 4294967295/,
  );
  for (const reply of [[], [2], [1, 1]])
    assert.throws(() => resetReplyCodec.fromBinary(Uint8Array.from(reply)), /ResetReply of vllm-0.33 at \$/);
});

test.run();
