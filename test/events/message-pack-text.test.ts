import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MessagePackFault } from "../../src/events/message-pack-fault.js";
import { readText } from "../../src/events/message-pack-text.js";
import { check } from "../helpers/property.js";

const read = (text: string) => {
  const bytes = new TextEncoder().encode(`<${text}>`);
  return readText(bytes, 1, bytes.length - 2);
};

test("texts are read as they are, also those that share a place among the remembered ones", () => {
  for (let round = 0; round < 3; round++)
    for (const text of [
      "GPU",
      "GXU",
      "cpu",
      "",
      "\ufeffGPU",
      "\ufeff",
      "é",
      "è",
      "x".repeat(31),
      "x".repeat(32),
    ])
      assert.is(read(text), text);
  check(
    fc.property(fc.array(fc.string({ unit: "binary", maxLength: 4 })), (texts) => {
      for (const text of [...texts, ...texts]) assert.is(read(text), text);
    }),
  );
});

test("what is remembered does not change with the bytes that it was read from", () => {
  const bytes = new TextEncoder().encode("tier-a");
  assert.is(readText(bytes, 0, 6), "tier-a");
  bytes[4] = 0x5f;
  assert.is(readText(bytes, 0, 6), "tier_a");
  assert.is(read("tier-a"), "tier-a");
});

test("what is no UTF-8 is refused", () => {
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], new Array(40).fill(0x80)])
    assert.throws(
      () => readText(Uint8Array.from(bytes), 0, bytes.length),
      (error: unknown) => error instanceof MessagePackFault && /byte 0 is not UTF-8/.test(error.message),
    );
});

test.run();
