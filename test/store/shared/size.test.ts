import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import { parseSize } from "../../../src/store/index.js";

const good: readonly (readonly [unknown, bigint])[] = [
  [1, 1n],
  [1 << 30, 1n << 30n],
  [9007199254740993n, 9007199254740993n],
  ["9007199254740993", 9007199254740993n],
  ["1", 1n],
  [" 512 ", 512n],
  ["12b", 12n],
  ["1K", 1024n],
  ["1kb", 1024n],
  ["1KiB", 1024n],
  ["512 MiB", 512n << 20n],
  ["3M", 3n << 20n],
  ["80GB", 80n << 30n],
  ["1GiB", 1n << 30n],
  ["2t", 2n << 40n],
  ["2TB", 2n << 40n],
];

for (const [value, size] of good)
  test(`${typeof value} ${value} is ${size} bytes`, () => {
    assert.is(parseSize(value, "capacity"), size);
  });

const bad: readonly unknown[] = [
  0,
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  0n,
  -1n,
  1n << 63n,
  "",
  " ",
  "0",
  "-5",
  "1.5G",
  "1e9",
  "0x10",
  "50%",
  "1P",
  "1 iB",
  "GB",
  "1G1",
  "99999999999T",
  null,
  undefined,
  true,
  {},
  [1],
];

for (const value of bad)
  test(`${typeof value} ${String(value)} is refused`, () => {
    assert.throws(
      () => parseSize(value, "capacity"),
      (error: unknown) =>
        isMooncakeKvError(error, "ERR_CONFIG") &&
        error.message.startsWith("capacity is ") &&
        error.details["option"] === "capacity",
    );
  });

test.run();
