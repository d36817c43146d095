import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { codecFor, vllm033 } from "../../generated/typescript/all-releases.js";
import type { BinaryCodec } from "../../generated/typescript/index.js";
import { typeArbitrary, WIRE_TYPES, wireArbitrary } from "../../src/testing/arbitraries/wire-arbitraries.js";
import { check, runs } from "../helpers/property.js";

/** For laws that follow from the others. */
const few = Math.min(runs, 200);

for (const { release, type } of WIRE_TYPES) {
  const codec = codecFor(release, type.name);
  const values = typeArbitrary(release, type);
  const name = `${type.name} of ${release}`;

  test(`${name}: JSON keeps every value, through text`, () => {
    check(
      fc.property(values, (value) => {
        const text = JSON.stringify(codec.toJson(value));
        assert.equal(codec.fromJson(JSON.parse(text)), value);
        assert.is(JSON.stringify(codec.toJson(codec.fromJson(JSON.parse(text)))), text);
      }),
    );
  });

  test(`${name}: MessagePack keeps every value`, () => {
    check(
      fc.property(values, (value) => {
        assert.equal(codec.fromMessagePack(codec.toMessagePack(value)), value);
      }),
    );
  });

  test(`${name}: encoders and decoders that don't validate give the same for valid values`, () => {
    const options = { validate: false };
    check(
      fc.property(values, (value) => {
        assert.equal(codec.toJson(value, options), codec.toJson(value));
        assert.equal(codec.toMessagePack(value, options), codec.toMessagePack(value));
        assert.equal(codec.fromJson(codec.toJson(value), options), value);
        assert.equal(codec.fromMessagePack(codec.toMessagePack(value), options), value);
      }),
      { numRuns: few },
    );
  });

  test(`${name}: what equals its default may be left out`, () => {
    const optional = type.members.filter((member) => member.optional);
    check(
      fc.property(values, (value) => {
        const json = codec.toJson(value) as Record<string, unknown>;
        for (const { name: member, fallback } of optional)
          if (JSON.stringify(json[member]) === JSON.stringify(fallback)) delete json[member];
        assert.equal(codec.fromJson(json), value);
      }),
      { numRuns: few },
    );
  });

  if ("toBinary" in codec)
    test(`${name}: binary frames keep every value that fits them`, () => {
      check(
        fc.property(values, (value) => {
          const wire = (codec as BinaryCodec<unknown, unknown, unknown>).toBinary(value);
          assert.equal(codec.fromBinary(wire), value);
          assert.equal(codec.fromBinary(wire, { lenient: true }), value);
        }),
      );
    });
}

test("a value shares no list with the JSON that it came from or becomes", () => {
  check(
    fc.property(wireArbitrary("vllm-0.33", "ReqMeta"), (value) => {
      const json = vllm033.reqMetaCodec.toJson(value);
      const again = vllm033.reqMetaCodec.fromJson(json);
      json.block_ids.push([1]);
      json.block_hashes.push("00");
      for (const list of json.block_ids) list.push(7);
      assert.equal(again, value);
    }),
  );
});

test.run();
