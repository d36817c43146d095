import { join } from "node:path";
import fc from "fast-check";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "../../codegen/generate.js";
import { codecFor } from "../../generated/typescript/all-releases.js";
import { typeArbitrary, WIRE_TYPES } from "../../src/testing/arbitraries/wire-arbitraries.js";
import { seed } from "../helpers/property.js";
import { WIRE_CASES } from "./cases/index.js";
import { DERIVED_CASES } from "./derived-cases.js";

const PATH = join(ROOT, "test/generated/in-memory.ts");

let previous: ts.Program | undefined;

/** The type errors of a source text that stands next to this file, under the repository's own options. */
function typeErrors(source: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (path) => path === PATH || fileExists(path);
  host.getSourceFile = (path, target) =>
    path === PATH ? ts.createSourceFile(path, source, target) : getSourceFile(path, target);
  const program = ts.createProgram(
    [PATH],
    { ...options, noEmit: true, noUnusedLocals: false },
    host,
    previous,
  );
  previous = program;
  return ts.getPreEmitDiagnostics(program).map(({ start, messageText }) => {
    const line = source.slice(0, start).split("\n").length;
    return `${source.split("\n")[line - 1]}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
  });
}

/** A value as a TypeScript expression. */
function literal(value: unknown): string {
  if (value instanceof Uint8Array) return `Uint8Array.from([${value.join()}])`;
  if (value instanceof Set) return `new Set(${literal([...value])})`;
  if (value instanceof Map) return `new Map(${literal([...value])})`;
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`)
    .join(", ")} }`;
}

const HEAD = 'import type * as types from "../../generated/typescript/all-releases.js";';

function declaration(release: string, type: string, value: unknown): string {
  const namespace = release.replace(/\W/g, "");
  return `{ const value: types.${namespace}.${type} = ${literal(value)}; }`;
}

test("every value that a validator accepts has the emitted types, in JSON and decoded", () => {
  const lines = [HEAD];
  for (const { release, type } of WIRE_TYPES) {
    const codec = codecFor(release, type.name);
    const accepted = [...WIRE_CASES, ...DERIVED_CASES]
      .filter((each) => each.type === type.name && each.releases.includes(release) && !each.refused)
      .map(({ json }) => json);
    const values = fc.sample(typeArbitrary(release, type), { seed, numRuns: 5 });
    assert.ok(accepted.length > 0);
    for (const json of [...accepted, ...values.map((value) => codec.toJson(value))]) {
      lines.push(declaration(release, `${type.name}Json`, json));
      lines.push(declaration(release, type.name, codec.fromJson(json)));
    }
  }
  assert.equal(typeErrors(lines.join("\n")), []);
});

test("what has another type is no value of the emitted types", () => {
  const wrong = [
    declaration("vllm-0.33", "KeyMetadataJson", {
      model_name: "m",
      tp_rank: "0",
      pcp_rank: 0,
      dcp_rank: 0,
      pp_rank: 0,
    }),
    declaration("vllm-0.33", "KeyMetadataJson", { model_name: "m", pcp_rank: 0, dcp_rank: 0, pp_rank: 0 }),
    declaration("vllm-0.27", "KeyMetadataJson", {
      model_name: "m",
      tp_rank: 0,
      pcp_rank: 0,
      dcp_rank: 0,
      pp_rank: 0,
      store_namespace: "",
    }),
    declaration("vllm-0.33", "BoundaryPutJson", [1, 2]),
    declaration("vllm-0.33", "SegmentRow", { addresses: [1], sizes: [2n], blockId: 0 }),
    declaration("vllm-0.33", "ResetReply", { ok: true, more: 1 }),
    declaration("vllm-0.27", "BoundaryPut", { groupId: 0, blockId: 0, numTokens: 0 }),
  ];
  assert.is(typeErrors([HEAD, ...wrong].join("\n")).length, wrong.length);
});

test.run();
