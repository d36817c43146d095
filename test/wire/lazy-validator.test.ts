import { test } from "uvu";
import * as assert from "uvu/assert";
import { failure, lazyValidator } from "../../src/wire/lazy-validator.js";
import type { SchemaValidator } from "../../src/wire/schema-error.js";

test("a validator is made by its first call, once, and tells what the made one tells", () => {
  let made = 0;
  const validator = lazyValidator(() => {
    made++;
    const own: SchemaValidator = (data) => {
      own.errors =
        data === 1 ? null : [failure("/a", "type", { type: "integer" }, { type: "integer" }, data)];
      return data === 1;
    };
    return own;
  });
  assert.is(made, 0);
  assert.is(validator(2), false);
  assert.equal(validator.errors, [
    {
      keyword: "type",
      instancePath: "/a",
      params: { type: "integer" },
      parentSchema: { type: "integer" },
      data: 2,
    },
  ]);
  assert.is(validator(1), true);
  assert.is(validator.errors, null);
  assert.is(made, 1);
});

test.run();
