import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "../../codegen/generate.js";
import { loadSchemas } from "../../codegen/passes/load-schemas.js";
import { resolveRelease } from "../../codegen/passes/resolve-release.js";
import { createReleaseAjv } from "../../codegen/vocabulary.js";
import { codecFor } from "../../generated/typescript/all-releases.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { RELEASES } from "../../src/release.js";
import { WIRE_TYPES } from "../../src/testing/arbitraries/wire-arbitraries.js";
import { WIRE_CASES, type WireCase } from "./cases/index.js";
import { DERIVED_CASES } from "./derived-cases.js";

const schemas = await loadSchemas(join(ROOT, "schema"));

for (const release of RELEASES) {
  const inMemory = createReleaseAjv(resolveRelease(schemas, RELEASES, release));
  const cases = [...WIRE_CASES, ...DERIVED_CASES].filter(({ releases }) => releases.includes(release));
  const types = WIRE_TYPES.filter((entry) => entry.release === release).map((entry) => entry.type.name);

  for (const type of types)
    test(`${type} of ${release}: ajv in memory and the compiled validator judge alike`, () => {
      const own = cases.filter((each) => each.type === type);
      assert.ok(own.some(({ refused }) => refused) && own.some(({ refused }) => !refused));
      for (const each of own) {
        assert.is(verdictInMemory(each), each.refused === undefined, `in memory: ${each.name}`);
        checkCompiled(release, each);
      }
    });

  const verdictInMemory = ({ type, json }: WireCase): boolean =>
    // JSON has no Dates and no Maps; the codec refuses them before the validator sees them.
    (json === null || [undefined, Object, Array].includes(json?.constructor as never)) &&
    inMemory.getSchema(type)!(json) === true;
}

function checkCompiled(release: string, { type, name, json, refused }: WireCase): void {
  const codec = codecFor(release, type);
  let message: string | undefined;
  try {
    assert.is(codec.validate(json), json);
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    message = error.message;
    assert.is(error.details["type"], type);
    assert.is(error.details["release"], release);
    assert.ok(String(error.details["path"]).startsWith("$"), message);
    assert.ok(message.length < 400, message);
  }
  if (refused) assert.match(message ?? "accepted", refused, `compiled: ${name}`);
  else assert.is(message, undefined, `compiled: ${name}`);
}

test("a refused value is in the details, with the rule", () => {
  try {
    codecFor("vllm-0.33", "KeyMetadata").fromJson({
      model_name: "m",
      tp_rank: -1,
      pcp_rank: 0,
      dcp_rank: 0,
      pp_rank: 0,
    });
    assert.unreachable();
  } catch (error) {
    assert.ok(isMooncakeKvError(error, "ERR_SCHEMA"));
    assert.equal(error.details, {
      type: "KeyMetadata",
      release: "vllm-0.33",
      path: "$.tp_rank",
      value: -1,
      rule: "expected an integer from 0 to 9007199254740991",
    });
  }
});

test("what there is no codec for is told with what there is", () => {
  const cases: [string, string, RegExp][] = [
    [
      "vllm-0.33",
      "KeyMetadat",
      /no type "KeyMetadat"; did you mean KeyMetadata\?; the types of vllm-0.33 are AllBlocksCleared, /,
    ],
    ["vllm-0.27", "BoundaryPut", /vllm-0.27 has no type BoundaryPut; vllm-0.33 has it/],
    ["vllm-0.27", "LoadSpecs", /no type "LoadSpecs"/],
    ["vllm-0.1", "LoadSpec", /no release "vllm-0.1"; the releases are vllm-0.27, vllm-0.31, vllm-0.33/],
    ["__proto__", "LoadSpec", /no release/],
    ["vllm-0.33", "constructor", /no type "constructor"/],
  ];
  for (const [release, type, message] of cases) assert.throws(() => codecFor(release, type), message);
});

test.run();
