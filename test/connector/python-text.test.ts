import { test } from "uvu";
import * as assert from "uvu/assert";
import { pythonText } from "../../src/connector/python-text.js";

const cases: readonly [unknown, string][] = [
  ["prod", "prod"],
  ["it's", "it's"],
  [5, "5"],
  [true, "True"],
  [false, "False"],
  [null, "None"],
  [["x", 1, null], "['x', 1, None]"],
  [{ a: "it's", b: [] }, `{'a': "it's", 'b': []}`],
  [["both ' and \"", "a\nb\\"], `['both \\' and "', 'a\\nb\\\\']`],
];
for (const [value, expected] of cases)
  test(`str(${JSON.stringify(value)})`, () => {
    assert.is(pythonText(value), expected);
  });

test.run();
