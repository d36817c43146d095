import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ByteCollector } from "../../../src/store/admin/byte-collector.js";
import { LineSplitter } from "../../../src/store/admin/line-splitter.js";
import { check } from "../../helpers/property.js";

const parts = fc.array(
  fc.array(fc.constantFrom(0x0a, 0x61, 0xff), { maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
);

test("parts of any size are put together again", () => {
  check(
    fc.property(parts, (given) => {
      const collector = new ByteCollector();
      const copies = given.map((part) => Buffer.from(part));
      for (const part of given) collector.add(part);
      assert.is(collector.size, collector.bytes.length);
      assert.equal(collector.take(), Buffer.concat(copies));
      assert.equal(given, copies, "nothing is written into a part");
      assert.is(collector.size, 0);
    }),
    { numRuns: 300 },
  );
});

test("lines are the same however the bytes are split", () => {
  check(
    fc.property(parts, (given) => {
      const splitter = new LineSplitter();
      const lines = given.flatMap((part) =>
        [...splitter.linesOf(part)].map((line) => line.toString("latin1")),
      );
      const expected = Buffer.concat(given).toString("latin1").split("\n");
      assert.equal([...lines, splitter.rest().toString("latin1")], expected);
    }),
    { numRuns: 300 },
  );
});

test("a million parts of one byte take no longer than their bytes", () => {
  const start = performance.now();
  const collector = new ByteCollector();
  const splitter = new LineSplitter();
  for (let i = 0; i < 1 << 20; i++) {
    collector.add(Buffer.of(i));
    for (const _ of splitter.linesOf(Buffer.of(0x61))) assert.unreachable();
  }
  assert.is(collector.size, 1 << 20);
  assert.is(collector.bytes[300], 300 & 0xff);
  assert.is(splitter.begun, 1 << 20);
  // Copying all again for every part would be half a terabyte each.
  assert.ok(performance.now() - start < 10_000);
});

test.run();
