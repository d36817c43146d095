import { test } from "uvu";
import * as assert from "uvu/assert";
import { jsonText } from "../../src/cli/json.js";
import { didYouMean, nearest } from "../../src/cli/nearest.js";
import { TensorFinder } from "../../src/cli/tensor-offset.js";
import { count, oneLine, printable, table } from "../../src/cli/text.js";
import { KV_CACHE_LAYOUTS, kvCacheTensors } from "../../src/layout/index.js";

test("JSON carries 64-bit integers, bytes and collections without loss", () => {
  const value = {
    address: 2n ** 64n - 1n,
    bytes: Uint8Array.of(0, 255),
    buffer: Buffer.from("ab", "hex"),
    column: BigUint64Array.of(1n, 2n ** 63n),
    set: new Set([1, "a"]),
    map: new Map([[1, 2n]]),
    not: [Number.NaN, Number.POSITIVE_INFINITY],
    error: new Error("why"),
    absent: undefined,
  };
  assert.equal(JSON.parse(jsonText(value)), {
    address: "18446744073709551615",
    bytes: "00ff",
    buffer: "ab",
    column: ["1", "9223372036854775808"],
    set: [1, "a"],
    map: [[1, "2"]],
    not: ["NaN", "Infinity"],
    error: "why",
  });
  const loop: Record<string, unknown> = {};
  loop["loop"] = loop;
  assert.type(jsonText(loop), "string");
});

test("the nearest name is found by few edits and swaps, or not at all", () => {
  const names = ["hash", "chunks", "conformance"];
  assert.is(nearest("hsah", names), "hash");
  assert.is(nearest("Chunk", names), "chunks");
  assert.is(nearest("confromance", names), "conformance");
  assert.is(nearest("zzzz", names), undefined);
  assert.is(didYouMean("hsah", names), "; did you mean hash?");
  assert.is(didYouMean("zzzz", names), "");
});

test("texts stay on one line and can't steer a terminal", () => {
  assert.is(oneLine(" a\n  b\r\nc "), "a b c");
  assert.is(printable("a\u001bb\u009bc\u2028"), "a\\u001bb\\u009bc\\u2028");
  assert.is(count(1, "key"), "1 key");
  assert.is(count(2, "key"), "2 keys");
});

test("columns are aligned, numbers to the right", () => {
  assert.equal(
    table([
      ["file", "n"],
      ["a", 5],
      ["long name", 1234],
    ]),
    ["file       n", "a             5", "long name  1234"],
  );
});

test("finds the tensor of every element, in every physical order of a shared storage", () => {
  for (const layout of KV_CACHE_LAYOUTS) {
    const shape = { numLayers: 3, numBlocks: 4, numHeads: 2, blockSize: 3, contentSize: 5, elementSize: 2 };
    const tensors = kvCacheTensors({ layout, ...shape }, 4096n);
    const finder = new TensorFinder(tensors);
    for (const [index, tensor] of tensors.entries())
      for (const indices of [
        [0, 0, 0, 0],
        [3, 1, 2, 4],
        [1, 0, 2, 0],
        [2, 1, 0, 3],
      ]) {
        const elements = indices.reduce((sum, step, axis) => sum + step * tensor.strides[axis]!, 0);
        const offset = BigInt(elements * tensor.elementSize);
        for (const hint of [0, 1, 2, 3])
          assert.equal(finder.find(tensor.address + offset, hint), { tensor: index, offset }, layout);
      }
    assert.is(finder.find(4095n), undefined);
    assert.is(finder.find(4096n + BigInt(3 * 4 * 2 * 3 * 5 * 2)), undefined);
  }
});

test.run();
