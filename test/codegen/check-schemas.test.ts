import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSchemas } from "../../codegen/passes/check-schemas.js";
import { SchemaProblem } from "../../codegen/schema.js";
import { RELEASES } from "../../src/release.js";
import { SCHEMAS, withChanged } from "./schemas.js";

// biome-ignore lint/suspicious/noExplicitAny: a test changes what the type forbids to change.
type Changeable = any;

test("the repository's schemas have no problem", () => {
  checkSchemas(SCHEMAS, RELEASES);
});

const BROKEN: [
  name: string,
  family: string,
  type: string,
  change: (schema: Changeable) => void,
  problem: RegExp,
][] = [
  [
    "an unknown keyword",
    "key",
    "KeyMetadata",
    (s) => (s.properties.tp_rank.colour = 1),
    /KeyMetadata\.tp_rank: the generator does not know the keyword colour/,
  ],
  ["no JSON Schema", "key", "KeyMetadata", (s) => (s.required = "tp_rank"), /not a JSON Schema 2020-12/],
  ["another title", "key", "KeyMetadata", (s) => (s.title = "Key"), /KeyMetadata: title is not the name/],
  ["no description", "key", "PoolKey", (s) => delete s.description, /PoolKey: there is no description/],
  [
    "a property without a description",
    "key",
    "PoolKey",
    (s) => delete s.properties.chunk_hash.description,
    /PoolKey\.chunk_hash: there is no description/,
  ],
  [
    "an option of a tagged type that does not say which it is",
    "events",
    "BlockStored",
    (s) => (s.properties.type.enum = ["Stored"]),
    /KVCacheEvent: BlockStored has no required member type that is "BlockStored"/,
  ],
  [
    "an option of a tagged type that may not be a list",
    "events",
    "AllBlocksCleared",
    (s) => delete s["x-packed"],
    /KVCacheEvent: AllBlocksCleared has no x-packed/,
  ],
  [
    "a tagged type of another file",
    "events",
    "KVCacheEvent",
    (s) => (s.anyOf[0].$ref = "key.schema.json#/$defs/PoolKey"),
    /a tagged type is a choice of types of its file/,
  ],
  ["no vLLM symbol", "key", "PoolKey", (s) => delete s["x-vllm"], /x-vllm names no symbol/],
  [
    "open properties",
    "key",
    "PoolKey",
    (s) => delete s.additionalProperties,
    /additionalProperties is not false/,
  ],
  [
    "camelCase",
    "key",
    "PoolKey",
    (s) => (s.properties.chunkHash = { type: "string", description: "x", default: "" }),
    /chunkHash is not in snake_case/,
  ],
  [
    "optional without a default",
    "key",
    "KeyMetadata",
    (s) => delete s.properties.group_id.default,
    /group_id: a property that is not required needs a default/,
  ],
  [
    "required with a default",
    "key",
    "KeyMetadata",
    (s) => (s.properties.tp_rank.default = 0),
    /tp_rank: a required property has no default/,
  ],
  [
    "required in some releases",
    "key",
    "KeyMetadata",
    (s) => (s.properties.tp_rank["x-since"] = "vllm-0.31"),
    /tp_rank: a property of some releases only can't be required/,
  ],
  [
    "an unknown release",
    "key",
    "KeyMetadata",
    (s) => (s.properties.store_namespace["x-since"] = "vllm-0.30"),
    /x-since names vllm-0\.30; the releases are vllm-0\.27/,
  ],
  [
    "no release at all",
    "key",
    "KeyMetadata",
    (s) => (s.properties.store_namespace["x-until"] = "vllm-0.27"),
    /store_namespace: no release has it/,
  ],
  [
    "a reference into nothing",
    "key",
    "PoolKey",
    (s) => (s.properties.key_metadata.$ref = "#/$defs/Key"),
    /#\/\$defs\/Key does not exist/,
  ],
  [
    "an open integer",
    "layout",
    "SegmentRow",
    (s) => delete s.properties.block_id.maximum,
    /an integer has a minimum but no maximum/,
  ],
  [
    "a pattern without words",
    "common",
    "Bytes",
    (s) => delete s["x-rule"],
    /Bytes: a pattern needs its rule in words/,
  ],
  [
    "a nameless tuple member",
    "request",
    "BoundaryPut",
    (s) => s["x-names"].pop(),
    /x-names and prefixItems differ/,
  ],
  [
    "a rule about nobody",
    "layout",
    "CacheTensor",
    (s) => (s["x-equal-length"] = [["shape", "stride"]]),
    /x-equal-length names stride, which does not exist/,
  ],
  [
    "a rule about no tuple member",
    "layout",
    "ChunkSpan",
    (s) => (s["x-less"] = [[0, 3]]),
    /x-less names 3, which does not exist/,
  ],
  [
    "a frame of nobody",
    "lookup",
    "ResetReply",
    (s) => (s["x-binary"][0][0].property = "fine"),
    /x-binary names fine, which does not exist/,
  ],
  [
    "an unknown encoding",
    "lookup",
    "ResetReply",
    (s) => (s["x-binary"][0][0].encoding = "uint32le"),
    /no encoding uint32le/,
  ],
  [
    "a member outside the frames",
    "lookup",
    "LookupRequest",
    (s) => s["x-binary"].pop(),
    /block_hashes must stand in x-binary exactly once/,
  ],
  [
    "a tag that is no ASCII",
    "lookup",
    "ResetRequest",
    (s) => (s["x-binary"][0][0].tag = "zurück"),
    /a tag is not printable ASCII/,
  ],
  [
    "another choice",
    "request",
    "ReqMeta",
    (s) => (s.properties.can_save.anyOf[1] = { type: "string" }),
    /anyOf says only: something or null/,
  ],
];

for (const [name, family, type, change, problem] of BROKEN)
  test(`refused: ${name}`, () => {
    assert.throws(
      () => checkSchemas(withChanged(family, type, change), RELEASES),
      (error: unknown) => error instanceof SchemaProblem && error.problems.some((line) => problem.test(line)),
      `expected ${problem}`,
    );
  });

test("every problem is told at once", () => {
  const broken = withChanged("key", "PoolKey", (schema) => {
    delete schema.description;
    delete schema["x-vllm"];
  });
  assert.throws(
    () => checkSchemas(broken, RELEASES),
    /PoolKey: there is no description\n.*x-vllm names no symbol/,
  );
});

test("no type contains itself, and no two files need each other", () => {
  const self = withChanged("request", "LoadSpec", (schema) => {
    schema.properties.can_load = { description: "x", $ref: "#/$defs/ReqMeta" };
  });
  assert.throws(
    () => checkSchemas(self, RELEASES),
    /LoadSpec: it refers to itself[\s\S]*ReqMeta: it refers to itself/,
  );
  const files = withChanged("key", "PoolKey", (schema) => {
    schema.properties.chunk_hash = { description: "x", $ref: "layout.schema.json#/$defs/ChunkSpan" };
  });
  assert.throws(() => checkSchemas(files, RELEASES), /key\.schema\.json: it refers to itself/);
});

test("two files can't define one type", () => {
  const broken = structuredClone(SCHEMAS);
  const [key, layout] = ["key", "layout"].map((name) => broken.files.find((file) => file.family === name)!);
  Object.assign(layout!.schema.$defs!, { PoolKey: key!.schema.$defs!["KeyMetadata"] });
  assert.throws(() => checkSchemas(broken, RELEASES), /PoolKey: two files define it/);
});

test.run();
