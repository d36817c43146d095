import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { StoreError, StoreResult } from "../../src/store/index.js";
import { KeyList } from "../../src/store/shared/keys.js";

function thrownBy(result: StoreResult): StoreError {
  try {
    result.throwIfFailed();
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

test("exists counts only exactly 1", () => {
  const result = new StoreResult("exists", new KeyList(["a", "b", "c", "d"]), Int32Array.of(1, 0, -900, 2));
  assert.is(result.ok, 1);
  assert.equal(
    [0, 1, 2, 3, 4].map((index) => result.isOk(index)),
    [true, false, false, false, false],
  );
  assert.equal(result.failures(), [
    { index: 2, key: "c", code: -900 },
    { index: 3, key: "d", code: 2 },
  ]);
  const absent = new StoreResult("exists", new KeyList(["a"]), Int32Array.of(0));
  assert.is(absent.throwIfFailed(), absent);
});

test("a put or a remove is ok with exactly 0", () => {
  for (const operation of ["putFrom", "remove"] as const) {
    const result = new StoreResult(operation, new KeyList(["a", "b", "c"]), Int32Array.of(0, 1, -200));
    assert.is(result.ok, 1);
    assert.equal(
      result.failures().map(({ key }) => key),
      ["b", "c"],
    );
  }
});

test("sizes keep every bit", () => {
  const codes = BigInt64Array.of((1n << 62n) + 1n, -704n, 0n);
  const result = new StoreResult("size", new KeyList(["a", "b", "c"]), codes);
  assert.is(result.ok, 2);
  assert.is(result.codes[0], (1n << 62n) + 1n);
  assert.equal(result.failures(), [{ index: 1, key: "b", code: -704 }]);
});

test("the error names code, meaning and the first keys", () => {
  const keys = ["k0", "k1", "k2", "k3", "k4", "k5"];
  const result = new StoreResult(
    "putFrom",
    new KeyList(keys),
    Int32Array.of(-200, 0, -200, -200, -200, -600),
  );
  const error = thrownBy(result);
  assert.ok(isMooncakeKvError(error, "ERR_STORE"));
  assert.is(error.name, "StoreError");
  assert.is(error.storeCode.name, "NO_AVAILABLE_HANDLE");
  assert.is(error.storeCode.retry, true);
  assert.is(error.failures.length, 5);
  assert.match(error.message, "putFrom: 5 of 6 keys failed: ");
  assert.match(error.message, /NO_AVAILABLE_HANDLE \(-200, .*\) for "k0", "k2", "k3", and 1 more; /);
  assert.match(error.message, /INVALID_PARAMS \(-600, .*\) for "k5"$/);
  assert.equal(error.details["failures"], error.failures);
});

test("long and odd keys stay readable", () => {
  const long = `${"p".repeat(200)}@${"a".repeat(64)}`;
  const keys = new KeyList([long, "line\nbreak"]);
  const { message } = thrownBy(new StoreResult("remove", keys, Int32Array.of(-704, -704)));
  assert.ok(message.length < 400);
  assert.match(message, `${"a".repeat(30)}"`);
  assert.match(message, '"line\\nbreak"');
  assert.not.match(message, "\n");
});

test("an empty batch is fine", () => {
  const result = new StoreResult("getInto", new KeyList([]), new BigInt64Array(0));
  assert.is(result.length, 0);
  assert.is(result.ok, 0);
  assert.is(result.throwIfFailed(), result);
});

test.run();
