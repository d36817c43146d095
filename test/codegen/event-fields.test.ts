import { test } from "uvu";
import * as assert from "uvu/assert";
import { eventFieldsModule } from "../../codegen/emit/typescript/event-fields.js";
import { buildModel } from "../../codegen/passes/build-model.js";
import { resolveRelease } from "../../codegen/passes/resolve-release.js";
import type { SchemaSet } from "../../codegen/schema.js";
import { EVENT_KINDS } from "../../generated/typescript/event-fields.js";
import { RELEASES } from "../../src/release.js";
import { hasField } from "../../src/wire/event-field.js";
import { withChanged } from "./schemas.js";

const emit = (schemas: SchemaSet) =>
  eventFieldsModule(RELEASES.map((release) => buildModel(resolveRelease(schemas, RELEASES, release))));
const field = (event: string, name: string) => EVENT_KINDS[event]!.fields.find((each) => each.name === name)!;

test("the fields of each event lie in the order of vLLM's list form, with all that the schema says of them", () => {
  assert.equal(Object.keys(EVENT_KINDS), ["BlockStored", "BlockRemoved", "AllBlocksCleared"]);
  assert.equal(
    EVENT_KINDS["BlockRemoved"]!.fields.map(({ name }) => name),
    ["block_hashes", "medium", "group_idx", "locality", "ownership"],
  );
  assert.equal(field("BlockStored", "block_hashes"), {
    name: "block_hashes",
    member: "blockHashes",
    kind: "hashes",
    nullable: false,
    presence: "always",
  });
  assert.equal(field("BlockStored", "lookahead_token_ids"), {
    name: "lookahead_token_ids",
    member: "lookaheadTokenIds",
    kind: "integerLists",
    nullable: true,
    presence: "optional",
    since: "vllm-0.33",
  });
  const kinds = (wanted: string) =>
    EVENT_KINDS["BlockStored"]!.fields.filter(({ kind }) => kind === wanted).map(({ name }) => name);
  assert.equal(
    [kinds("hash"), kinds("tokens"), kinds("anyLists")],
    [["parent_block_hash"], ["token_ids"], ["extra_keys"]],
  );
  const written = EVENT_KINDS["BlockStored"]!.fields.filter(({ presence }) => presence === "written");
  assert.equal(
    written.map(({ name }) => name),
    ["lora_id", "medium", "lora_name"],
  );
});

test("an event is built of the values of its fields", () => {
  for (const [type, { fields, build }] of Object.entries(EVENT_KINDS)) {
    const event = build(fields.map((_, index) => index));
    assert.equal(
      event,
      Object.fromEntries([["type", type], ...fields.map(({ member }, at) => [member, at])]),
    );
  }
});

test("a release has the fields from their first release to their last", () => {
  const releases = (event: string, name: string) =>
    RELEASES.filter((release) => hasField(release, field(event, name)));
  assert.equal(releases("BlockStored", "locality"), [...RELEASES]);
  assert.equal(releases("BlockStored", "ownership"), RELEASES.slice(RELEASES.indexOf("vllm-0.31")));
  assert.equal(releases("BlockStored", "lookahead_token_ids"), RELEASES.slice(RELEASES.indexOf("vllm-0.33")));
  const until = { ...field("BlockStored", "ownership"), until: "vllm-0.31" } as const;
  assert.equal(
    RELEASES.filter((release) => hasField(release, until)),
    RELEASES.filter((release) => release >= "vllm-0.31" && release <= "vllm-0.31"),
  );
});

test("a field that went is marked with its last release", () => {
  const gone = withChanged("events", "BlockRemoved", ({ properties }) => {
    properties.ownership["x-until"] = "vllm-0.31";
  });
  assert.match(
    emit(gone),
    /"name":"ownership","member":"ownership","kind":"text","nullable":true,"presence":"optional","since":"vllm-0.31","until":"vllm-0.31"/,
  );
});

test("a release in which another field has a place of the list form is refused", () => {
  const moved = withChanged("events", "BlockRemoved", ({ properties }) => {
    properties.group_idx["x-since"] = "vllm-0.31";
  });
  assert.throws(() => emit(moved), /vllm-0\.\d+ has BlockRemoved\.\w+ where another has/);
});

test("a field of a kind that no reader knows is refused", () => {
  const odd = withChanged("events", "BlockRemoved", ({ properties }) => {
    properties.locality = { description: "x", type: "boolean" };
  });
  assert.throws(() => emit(odd), /no event can have BlockRemoved.locality, which is boolean/);
});

test.run();
