import { test } from "uvu";
import * as assert from "uvu/assert";
import { buildModel } from "../../codegen/passes/build-model.js";
import { releasesOf, resolveRelease } from "../../codegen/passes/resolve-release.js";
import { RELEASES } from "../../src/release.js";
import type { TypeModel } from "../../src/wire/model.js";
import { SCHEMAS, withChanged } from "./schemas.js";

function typesOf(release: string): Map<string, TypeModel> {
  const model = buildModel(resolveRelease(SCHEMAS, RELEASES, release));
  return new Map(model.families.flatMap((family) => family.types).map((type) => [type.name, type]));
}

const members = (release: string, type: string): string[] =>
  typesOf(release)
    .get(type)!
    .members.map((member) => member.name);

test("a ReqMeta has exactly the fields of its release, in the order of vLLM's dataclass", () => {
  const first = ["req_id", "token_len_chunk", "block_ids", "block_hashes", "can_save", "load_spec"];
  assert.equal(members("vllm-0.27", "ReqMeta"), [
    ...first,
    "is_last_chunk",
    "current_event",
    "token_ids",
    "num_prompt_tokens",
    "partial_tail_offloads",
  ]);
  assert.equal(members("vllm-0.31", "ReqMeta"), [
    ...first,
    "current_event",
    "token_ids",
    "token_ids_start",
    "num_prompt_tokens",
    "store_job_id",
    "boundary_state_offloads",
  ]);
  assert.equal(members("vllm-0.33", "ReqMeta"), [
    ...first,
    "current_event",
    "token_ids",
    "token_ids_start",
    "num_prompt_tokens",
    "prefill_end_tokens",
    "store_job_id",
    "boundary_puts",
    "completed_token_len",
    "publish_partial_tail",
  ]);
});

test("a release has the types that it had", () => {
  const old = typesOf("vllm-0.27");
  for (const name of [
    "TailKeyBoundary",
    "MooncakeLookupResult",
    "MooncakeStoreWorkerMetadata",
    "StoreLayoutConfig",
  ])
    assert.not.ok(old.has(name), name);
  assert.ok(old.has("PartialTailOffload"));
  assert.ok(typesOf("vllm-0.31").has("BoundaryStateOffload"));
  assert.not.ok(typesOf("vllm-0.31").has("BoundaryPut"));
  assert.ok(typesOf("vllm-0.33").has("BoundaryPut"));
});

test("a release has no family of which it has no type", () => {
  const names = (release: string) =>
    resolveRelease(SCHEMAS, RELEASES, release).families.map(({ name }) => name);
  assert.not.ok(names("vllm-0.31").includes("connector-events"));
  assert.ok(names("vllm-0.33").includes("connector-events"));
});

test("frames have only the parts of their release", () => {
  assert.equal(typesOf("vllm-0.27").get("LookupReply")!.binary, [
    [{ kind: "member", member: "hit_length", encoding: "uint32be" }],
  ]);
  assert.is(typesOf("vllm-0.33").get("LookupReply")!.binary![0]!.length, 2);
});

test("the model knows no TypeScript and no JSON Schema", () => {
  const text = JSON.stringify(
    RELEASES.map((release) => buildModel(resolveRelease(SCHEMAS, RELEASES, release))),
  );
  assert.not.match(text, /readonly|Uint8Array|bigint|prefixItems|\$ref|additionalProperties|x-since|groupId/);
});

test("x-until is the last release that has something", () => {
  assert.equal(releasesOf({}, RELEASES), [...RELEASES]);
  assert.equal(releasesOf({ "x-since": "vllm-0.31" }, RELEASES), ["vllm-0.31", "vllm-0.33"]);
  assert.equal(releasesOf({ "x-until": "vllm-0.31" }, RELEASES), ["vllm-0.27", "vllm-0.31"]);
  assert.equal(releasesOf({ "x-since": "vllm-0.31", "x-until": "vllm-0.31" }, RELEASES), ["vllm-0.31"]);
});

test("a property can't refer to a type that its release has not", () => {
  const broken = withChanged("request", "LoadSpec", (schema) => {
    delete schema.properties.tail_key_boundaries["x-since"];
  });
  assert.throws(
    () => resolveRelease(broken, RELEASES, "vllm-0.27"),
    /vllm-0\.27 has no TailKeyBoundary, but a property of that release refers to it/,
  );
});

test.run();
