import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type ExactJson, parseExactJson as parseWithin } from "../../../src/store/admin/json.js";
import { check } from "../../helpers/property.js";

const parseExactJson = (text: string): ExactJson => parseWithin(text, Number.POSITIVE_INFINITY);

/** What `JSON.parse` gives for the same text, for values without large numbers. */
function plain(value: ExactJson): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, item]) => [name, plain(item)]));
  if (Array.isArray(value)) return (value as readonly ExactJson[]).map(plain);
  return typeof value === "bigint" ? Number(value) : value;
}

test("whole numbers are exact, whatever their size", () => {
  assert.is(parseExactJson("18446744073709551615"), 18446744073709551615n);
  assert.is(parseExactJson(" -9007199254740993 "), -9007199254740993n);
  assert.is(parseExactJson("1.2689828872680664E-2"), 0.012689828872680664);
  assert.is(parseExactJson("1e3"), 1000);
});

test("any value that JSON can write is read as JSON.parse reads it", () => {
  check(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value);
      const expected: unknown = JSON.parse(text);
      assert.equal(JSON.stringify(plain(parseExactJson(text))), JSON.stringify(expected));
      assert.equal(
        JSON.stringify(plain(parseExactJson(JSON.stringify(value, null, 2)))),
        JSON.stringify(expected),
      );
    }),
    { numRuns: 300 },
  );
});

test("any text is read or refused with a SyntaxError, as JSON.parse does", () => {
  const nearJson = fc.string({
    unit: fc.constantFrom(...'{}[]",:\\u0019eE+-.tfn al'.split("")),
    maxLength: 30,
  });
  check(
    fc.property(fc.oneof(nearJson, fc.string()), (text) => {
      let value: ExactJson | undefined;
      try {
        value = parseExactJson(text);
      } catch (error) {
        assert.instance(error, SyntaxError);
        assert.throws(() => JSON.parse(text), undefined, `JSON.parse reads ${JSON.stringify(text)}`);
        return;
      }
      // Only raw control characters inside strings are read beyond JSON.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is meant
      const strict = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
      assert.not.throws(() => JSON.parse(strict.replace(/[\t\n\r]/g, " ")), undefined, text);
      assert.ok(value !== undefined);
    }),
    { numRuns: 2000 },
  );
});

test("members of any name are members, and the last of equal ones counts", () => {
  const value = parseExactJson('{"__proto__":1,"constructor":2,"a":3,"a":4}');
  assert.ok(value instanceof Map);
  assert.equal(
    [...value],
    [
      ["__proto__", 1n],
      ["constructor", 2n],
      ["a", 4n],
    ],
  );
});

test("text nested too deeply is refused, not followed", () => {
  assert.throws(() => parseExactJson("[".repeat(1_000_000)), /nested more than/);
  assert.throws(() => parseExactJson('{"a":'.repeat(1_000_000)), /nested more than/);
});

test("text of more values than may be is refused before it is read to its end", () => {
  const millions = `[${"{},".repeat(5_000_000)}{}]`;
  const start = performance.now();
  assert.throws(() => parseWithin(millions, 1000), /more than 1000 values/);
  assert.ok(performance.now() - start < 100);
  assert.equal(parseWithin('[{"a":1},2]', 4), [new Map([["a", 1n]]), 2n]);
  assert.throws(() => parseWithin('[{"a":1},2]', 3), /more than 3 values/);
});

test("a number of very many digits does not take for ever", () => {
  assert.is(parseExactJson("9".repeat(1_000_000)), Number.POSITIVE_INFINITY);
});

test.run();
