import { test } from "uvu";
import * as assert from "uvu/assert";
import { firstDifference } from "../../../src/conformance/vectors/compare.js";
import type { JsonValue } from "../../../src/conformance/vectors/handler.js";
import { mayBeRefused, releaseOfSource } from "../../../src/conformance/vectors/sources.js";

const same: readonly [string, JsonValue, JsonValue][] = [
  ["scalars", [null, true, 1, "a"], [null, true, 1, "a"]],
  ["members in another order", { a: 1, b: 2 }, { b: 2, a: 1 }],
  [
    "any error for an error",
    { error: { type: "ValueError", message: "x" } },
    { error: { type: "ERR_KEY", message: "y" } },
  ],
  ["identity hints", { shares_tokens: true, n: 1 }, { n: 1 }],
  ["an optional member that the vector lacks", { n: 1 }, { n: 1, "?extra": 2 }],
  ["an optional member that the vector has", { n: 1, extra: 2 }, { n: 1, "?extra": 2 }],
];
for (const [name, expected, actual] of same)
  test(`no difference: ${name}`, () => {
    assert.is(firstDifference(expected, actual), undefined);
  });

const different: readonly [string, JsonValue, JsonValue, string, JsonValue, JsonValue][] = [
  ["a digit", { a: ["00ff", "01"] }, { a: ["00ff", "02"] }, "$.a[1]", "01", "02"],
  ["a number and its text", [1], ["1"], "$[0]", 1, "1"],
  ["null and 0", { a: null }, { a: 0 }, "$.a", null, 0],
  ["null and absent", { a: null }, {}, "$.a", null, "(absent)"],
  ["a member too many", {}, { a: null }, "$.a", "(absent)", null],
  ["an item too many", [1], [1, 2], "$[1]", "(absent)", 2],
  ["an item too few", [[1, 2]], [[1]], "$[0][1]", 2, "(absent)"],
  ["an array and an object", [], {}, "$", [], {}],
  ["an optional member of another value", { a: 1 }, { "?a": 2 }, "$.a", 1, 2],
  ["a value for an error", { error: { type: "E" } }, {}, "$.error", { type: "E" }, "(absent)"],
  ["a member beside an error", { error: {}, n: 1 }, { error: {}, n: 2 }, "$.n", 1, 2],
  ["an error that is no object", { error: { type: "E" } }, { error: null }, "$.error", { type: "E" }, null],
  ["an error for a value", { n: 1 }, { error: { type: "E" } }, "$.n", 1, "(absent)"],
  ["0 and -0", 0, -0, "$", 0, -0],
];
for (const [name, expected, actual, path, left, right] of different)
  test(`a difference: ${name}`, () => {
    assert.equal(firstDifference(expected, actual), { path, expected: left, actual: right });
  });

test("sources name releases; others none", () => {
  assert.equal(
    ["vllm-0.33.0", "vllm-0.31.0", "vllm-0.27.1", "seed-new", "seed-old", "vllm-0.99", "toString"].map(
      releaseOfSource,
    ),
    ["vllm-0.33", "vllm-0.31", "vllm-0.27", "vllm-0.31", "vllm-0.27", undefined, undefined],
  );
});

test("only the corners that the README names may be refused", () => {
  for (const id of [
    "l-001-int64-wrap",
    "l-002-uint64-wrap",
    "x-9-address-over-int64",
    "x-negative-stride",
    "x-unbounded-integers",
  ])
    assert.ok(mayBeRefused(id), id);
  for (const id of ["int64-wrap", "l-001-int64-wrap-not", "l-001-wrap", "negatives", ""])
    assert.not(mayBeRefused(id), id);
});

test.run();
