import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { memberName, releaseName, valueName } from "../../codegen/emit/typescript/names.js";
import { generate, ROOT } from "../../codegen/generate.js";

// Types that use what no type of vLLM uses yet, so that the emitter is known to be right when one does.
const PROBE = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: "mooncake-kv:/schema/probe.schema.json",
  title: "probe",
  description: "Shapes of every kind.",
  $defs: {
    Shapes: {
      ...head("Shapes"),
      required: ["wide", "names", "deep", "maybe"],
      properties: {
        wide: { description: "x", ...map({ $ref: ref("Bytes") }, { $ref: ref("Uint64") }) },
        names: { description: "x", ...map({ type: "string" }, { $ref: ref("Count") }) },
        deep: {
          description: "x",
          type: "array",
          items: { type: "array", items: { type: "array", items: { $ref: ref("Bytes") } } },
        },
        maybe: {
          description: "x",
          anyOf: [
            { type: "array", items: { anyOf: [{ $ref: ref("Uint64") }, { type: "null" }] } },
            { type: "null" },
          ],
        },
        level: { description: "x", anyOf: [{ $ref: ref("Count") }, { type: "null" }], default: 7 },
        blob: { description: "x", $ref: ref("Bytes"), default: "00ff" },
        address: { description: "x", $ref: ref("Uint64"), default: "18446744073709551615" },
        hashes: {
          description: "x",
          type: "array",
          items: { $ref: ref("Bytes") },
          uniqueItems: true,
          "x-type": "set",
          default: [],
        },
        inner: { description: "x", anyOf: [{ $ref: "#/$defs/Frame" }, { type: "null" }], default: null },
      },
    },
    Frame: {
      ...head("Frame"),
      "x-binary": [
        [
          { tag: "F1" },
          { property: "small", encoding: "uint8" },
          { property: "address", encoding: "uint64be" },
          { property: "on", encoding: "flag" },
          { property: "limited", encoding: "uint16be" },
          { property: "body", encoding: "rest" },
        ],
      ],
      required: ["small", "address", "on", "limited", "body"],
      properties: {
        small: { description: "x", type: "integer", minimum: 0, maximum: 255 },
        address: { description: "x", $ref: ref("Uint64") },
        on: { description: "x", type: "boolean" },
        limited: { description: "x", type: "integer", minimum: 1, maximum: 1000 },
        body: { description: "x */ alert(1) /* x", $ref: ref("Bytes") },
      },
    },
  },
};

function head(title: string): object {
  return { title, description: "x", "x-vllm": "probe", type: "object", additionalProperties: false };
}

function ref(name: string): string {
  return `common.schema.json#/$defs/${name}`;
}

function map(key: object, value: object): object {
  return {
    type: "array",
    items: { type: "array", prefixItems: [key, value], items: false, minItems: 2 },
    "x-type": "map",
  };
}

const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-probe-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(folder, "schema"));
symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir");
symlinkSync(join(ROOT, "src"), join(folder, "src"), "dir");
symlinkSync(join(ROOT, "schema/common.schema.json"), join(folder, "schema/common.schema.json"));
writeFileSync(join(folder, "package.json"), '{"type":"module"}');
writeFileSync(join(folder, "schema/probe.schema.json"), JSON.stringify(PROBE));
const paths: string[] = [];
for (const [path, text] of await generate(folder)) {
  const file = join(folder, "generated", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  paths.push(file);
}
const { shapesCodec, frameCodec } = await import(
  pathToFileURL(join(folder, "generated/typescript/index.ts")).href
);

const FRAME = { small: 255, address: 2n ** 64n - 1n, on: true, limited: 1000, body: Uint8Array.of(1, 2) };
const SHAPES = {
  wide: new Map([[Uint8Array.of(1), 2n ** 63n]]),
  names: new Map([["__proto__", 1]]),
  deep: [[[Uint8Array.of(9)], []], []],
  maybe: [null, 5n],
  level: null,
  blob: Uint8Array.of(0, 255),
  address: 2n ** 64n - 1n,
  hashes: new Set<Uint8Array>(),
  inner: FRAME,
};

test("the emitted code of every kind of shape has no type error", () => {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const sources = paths.filter((path) => path.endsWith(".ts"));
  assert.ok(sources.length > 0);
  const program = ts.createProgram(sources, {
    ...options,
    noEmit: true,
    rootDir: "/",
    typeRoots: [join(ROOT, "node_modules/@types")],
  });
  const messages = ts
    .getPreEmitDiagnostics(program)
    .map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`,
    );
  assert.equal(messages, []);
});

test("every kind of shape survives JSON and MessagePack", () => {
  const json = shapesCodec.toJson(SHAPES);
  assert.equal(json.wide, [["01", "9223372036854775808"]]);
  assert.equal(shapesCodec.fromJson(JSON.parse(JSON.stringify(json))), SHAPES);
  assert.equal(shapesCodec.fromMessagePack(shapesCodec.toMessagePack(SHAPES)), SHAPES);
});

test("a default of any kind is filled in, and null is no absence", () => {
  const json = { wide: [], names: [], deep: [], maybe: null };
  assert.equal(shapesCodec.fromJson(json), {
    ...{ wide: new Map(), names: new Map(), deep: [], maybe: null },
    ...{ level: 7, blob: Uint8Array.of(0, 255), address: 2n ** 64n - 1n, hashes: new Set(), inner: null },
  });
  assert.is(shapesCodec.fromJson({ ...json, level: null }).level, null);
});

test("frames of every encoding, big-endian", () => {
  const frame: Uint8Array = frameCodec.toBinary(FRAME);
  assert.is(Buffer.from(frame).toString("hex"), "4631ffffffffffffffffff0103e80102");
  assert.equal(frameCodec.fromBinary(frame), FRAME);
});

test("limits that a frame does not imply are checked all the same", () => {
  assert.throws(
    () => frameCodec.toBinary({ ...FRAME, limited: 0 }),
    /\$\.limited: 0 is refused: expected an integer from 1 to 1000/,
  );
  const frame = Buffer.from("4631ffffffffffffffffff01ffff", "hex");
  assert.throws(() => frameCodec.fromBinary(frame), /\$\.limited: 65535 is refused/);
  assert.is(frameCodec.fromBinary(frame, { validate: false }).limited, 65535);
  assert.throws(
    () => frameCodec.toBinary({ ...FRAME, small: 256 }, { validate: false }),
    /\$\.small: 256 is refused/,
  );
  assert.throws(
    () => frameCodec.toBinary({ ...FRAME, address: 5 }, { validate: false }),
    /\$\.address: 5 is refused/,
  );
  assert.throws(() => frameCodec.toBinary({ ...FRAME, on: 1 }, { validate: false }), /\$\.on: 1 is refused/);
  assert.throws(
    () => frameCodec.toBinary({ ...FRAME, body: "01" }, { validate: false }),
    /\$\.body: "01" is refused/,
  );
});

test("names", () => {
  assert.is(memberName("kvpool_cached_tokens"), "kvpoolCachedTokens");
  assert.is(valueName("KeyMetadata"), "keyMetadata");
  assert.is(valueName("KVEventBatch"), "kvEventBatch");
  assert.is(releaseName("vllm-0.33"), "vllm033");
});

test.run();
