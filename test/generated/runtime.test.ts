import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  keyMetadataCodec,
  mooncakeStoreConnectorMetadataCodec,
  reqMetaCodec,
} from "../../generated/typescript/index.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { scanMessagePack } from "../../src/wire/message-pack-scan.js";
import { jsonPath, step } from "../../src/wire/schema-error.js";
import { codePointLength, isWellFormed } from "../../src/wire/text.js";
import { fromHex, toHex } from "../../src/wire/wire.js";
import { check } from "../helpers/property.js";

/** Text of any 16-bit units, so that surrogates stand alone too. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0xd7f0, max: 0xe010 }), fc.nat({ max: 0xffff })), { maxLength: 12 })
  .map((units) => String.fromCharCode(...units));

test("the length of a text counts code points", () => {
  check(fc.property(anyText, (text) => assert.is(codePointLength(text), [...text].length)));
});

test("a well-formed text survives UTF-8, another does not", () => {
  const decoder = new TextDecoder();
  check(
    fc.property(anyText, (text) =>
      assert.is(
        isWellFormed(text),
        decoder.decode(new TextEncoder().encode(text)) === text.replace(/^\ufeff/, "") ||
          text.startsWith("\ufeff"),
      ),
    ),
  );
});

test("hex and bytes are one to one, and decoded bytes have memory of their own", () => {
  check(
    fc.property(fc.uint8Array(), (bytes) => {
      assert.equal(fromHex(toHex(bytes)), bytes);
      assert.is(fromHex(toHex(bytes)).buffer.byteLength, bytes.length);
    }),
  );
});

test("the scan passes whatever the encoder writes, and refuses every part of it", () => {
  const value = fc.jsonValue({ maxDepth: 5 });
  check(
    fc.property(value, fc.nat(), (json, at) => {
      const bytes = encode(json);
      assert.is(scanMessagePack(bytes), undefined);
      assert.type(scanMessagePack(bytes.subarray(0, at % bytes.length)), "string");
      assert.match(scanMessagePack(Uint8Array.of(...bytes, 0)) ?? "", /1 bytes follow the value/);
    }),
  );
});

test("the scan knows every kind and width", () => {
  for (const length of [0, 31, 32, 255, 256, 65535, 65536]) {
    assert.is(scanMessagePack(encode("x".repeat(length))), undefined);
    assert.is(scanMessagePack(encode(new Uint8Array(length))), undefined);
    assert.is(scanMessagePack(encode(new Array(length).fill(null))), undefined);
    assert.is(
      scanMessagePack(encode(Object.fromEntries(Array.from({ length }, (_, key) => [key, true])))),
      undefined,
    );
  }
  for (const value of [
    0,
    127,
    128,
    255,
    256,
    65536,
    2 ** 32,
    -1,
    -32,
    -33,
    -129,
    -32769,
    -(2 ** 31) - 1,
    0.5,
    2n ** 63n,
  ])
    assert.is(
      scanMessagePack(encode(value, { useBigInt64: typeof value === "bigint" })),
      undefined,
      String(value),
    );
  assert.is(scanMessagePack(encode(0.5, { forceFloat32: true })), undefined);
});

test("a path says how to get to the value", () => {
  assert.is(jsonPath(""), "$");
  assert.is(jsonPath("/requests/0/load_spec"), "$.requests[0].load_spec");
  assert.is(jsonPath("/a~1b/c~0d"), '$["a/b"]["c~d"]');
  assert.is(step("a b"), '["a b"]');
  assert.ok(step("x y".repeat(1000)).length < 50);
});

test("a message stays short, whatever the value and the name", () => {
  const long = "x".repeat(1_000_000);
  const key = { model_name: "m", tp_rank: 0, pcp_rank: 0, dcp_rank: 0, pp_rank: 0 };
  for (const json of [
    { ...key, tp_rank: long },
    { ...key, [`${long} `]: long },
    { ...key, [long]: [long] },
  ]) {
    const error = caught(() => keyMetadataCodec.fromJson(json));
    assert.ok(error.message.length < 400, String(error.message.length));
  }
});

test("objects that throw when they are read are refused, not passed on", () => {
  const trap = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("trap");
      },
      get: () => {
        throw new Error("trap");
      },
    },
  );
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const getter = {
    get tp_rank(): number {
      throw new Error("trap");
    },
  };
  for (const json of [trap, proxy, getter]) {
    caught(() => keyMetadataCodec.fromJson(json));
    caught(() => keyMetadataCodec.toJson(json as never));
    caught(() => keyMetadataCodec.fromMessagePack(json as never));
  }
});

test("an encoder takes any iterable where the type has a list", () => {
  const base = reqMetaCodec.fromJson({
    req_id: "r",
    token_len_chunk: 0,
    block_ids: [[1]],
    block_hashes: ["aa"],
  });
  const odd = {
    ...base,
    tokenIds: Int32Array.of(1, 2) as never,
    blockHashes: new Set(base.blockHashes) as never,
  };
  assert.equal(reqMetaCodec.toJson(odd), { ...reqMetaCodec.toJson(base), token_ids: [1, 2] });
});

test("members of a set keep the order in which they were added", () => {
  const json = { requests: [], unfinished_request_ids: ["b", "a", "10", "9"], preempted_req_ids: [] };
  const codec = mooncakeStoreConnectorMetadataCodec;
  assert.equal([...codec.fromJson(json).unfinishedRequestIds], json.unfinished_request_ids);
  assert.equal(codec.toJson(codec.fromMessagePack(codec.toMessagePack(codec.fromJson(json)))), json);
});

function caught(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    assert.ok(isMooncakeKvError(error, "ERR_SCHEMA"), String(error));
    return error as Error;
  }
  return assert.unreachable("it did not fail") as never;
}

test.run();
