import { test } from "uvu";
import * as assert from "uvu/assert";
import { checksFor } from "../../src/checks/checks-for.js";
import { isMooncakeKvError } from "../../src/errors.js";

const checks = checksFor("ERR_LAYOUT");

const refused = (run: () => unknown, message: RegExp) =>
  assert.throws(
    run,
    (error: unknown) => isMooncakeKvError(error, "ERR_LAYOUT") && message.test(error.message),
  );

test("whole numbers in their range", () => {
  assert.is(checks.whole("n", 3, 1, 3), 3);
  assert.is(checks.whole("n", -5), -5);
  refused(() => checks.whole("n", 0, 1), /^n is 0; it must be a whole number of 1 or more$/);
  refused(() => checks.whole("n", 4, 1, 3), /^n is 4; it must be a whole number of 1 to 3$/);
  for (const value of [1.5, Number.NaN, 2 ** 53, "1", null, undefined, 1n])
    refused(() => checks.whole("n", value), /^n is .*; it must be a whole number$/);
});

test("64-bit integers, words, flags and releases", () => {
  assert.is(checks.uint64("a", 2n ** 64n - 1n), 2n ** 64n - 1n);
  for (const value of [-1n, 2n ** 64n, 1, "1"])
    refused(() => checks.uint64("a", value), /bigint in \[0, 2\^64\)/);
  assert.is(checks.word("w", "b", ["a", "b"]), "b");
  refused(() => checks.word("w", "c", ["a", "b"]), /^w is "c"; it is one of a, b$/);
  assert.is(checks.flag("f", false), false);
  for (const value of [0, "true", null]) refused(() => checks.flag("f", value), /it must be true or false$/);
  assert.is(checks.release(undefined), "vllm-0.33");
  refused(() => checks.release("vllm-9" as never), /^release is "vllm-9"; it is one of vllm-0\.27/);
});

test("objects without foreign names; what is undefined may be there", () => {
  const names = { a: 1, b: 1 } as const;
  const options: { readonly a?: number | undefined; readonly b?: number | undefined } = { a: undefined };
  assert.is(checks.names("x", options, names), options);
  refused(
    () => checks.names<typeof options>("x", { c: 1 } as never, names),
    /^x has no option "c"; there are a, b$/,
  );
  refused(
    () => checks.names<typeof options>("x", JSON.parse('{"__proto__": 1}') as never, names),
    /"__proto__"/,
  );
  for (const value of [undefined, null, 5, "a"])
    refused(
      () => checks.names<typeof options>("x", value as never, names),
      /^the options of x are .*; they must be an object$/,
    );
});

test.run();
