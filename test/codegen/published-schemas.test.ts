import { Ajv2020 } from "ajv/dist/2020.js";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { SMALLEST } from "../generated/cases/smallest.js";
import { SCHEMAS } from "./schemas.js";

// The schema files ship with the package. Whoever reads them has a stock validator, which ignores our annotations.
const stock = new Ajv2020({ strict: false });
for (const { schema } of SCHEMAS.files) stock.addSchema(schema as object);

test("the files work in a stock validator, with references between them", () => {
  for (const { fileName, family, schema } of SCHEMAS.files) {
    if (family === "common") continue;
    for (const type of Object.keys(schema.$defs!)) {
      const validate = stock.getSchema(`mooncake-kv:/schema/${fileName}#/$defs/${type}`)!;
      const smallest = SMALLEST[type];
      assert.ok(validate(smallest), `${type}: ${JSON.stringify(validate.errors)}`);
      assert.not.ok(
        validate(Array.isArray(smallest) ? [...smallest, 1] : { ...(smallest as object), x: 1 }),
        type,
      );
    }
  }
});

test("the limits of the scalars hold in a stock validator", () => {
  const uint64 = stock.getSchema("mooncake-kv:/schema/common.schema.json#/$defs/Uint64")!;
  for (let shift = 0n; shift < 64n; shift++)
    for (const value of [1n << shift, (1n << shift) - 1n, (1n << 64n) - (1n << shift)])
      assert.ok(uint64(String(value)), String(value));
  for (let digits = 1; digits <= 20; digits++) {
    // One more in each digit of 2^64 - 1, as far as the digit has room: always too much.
    const limit = "18446744073709551615";
    const digit = Number(limit[digits - 1]);
    if (digit < 9) assert.not.ok(uint64(limit.slice(0, digits - 1) + (digit + 1) + limit.slice(digits)));
  }
  for (const text of ["", "00", "01", "-0", "1e3", "184467440737095516150"])
    assert.not.ok(uint64(text), text);
});

test.run();
