import standalone from "ajv/dist/standalone/index.js";
import type { ResolvedRelease } from "../../schema.js";
import { createReleaseAjv } from "../../vocabulary.js";

const HELPERS: Readonly<Record<string, string>> = {
  'require("ajv/dist/runtime/ucs2length").default': "codePointLength",
};

/**
 * The module with the compiled validators of one release. ajv writes JavaScript, so the module opts out of type
 * checks; the one thing that it exports is typed by hand.
 */
export function validatorModule(resolved: ResolvedRelease): string {
  const names = Object.keys(resolved.schema.$defs);
  const code = standalone.default(
    createReleaseAjv(resolved),
    Object.fromEntries(names.map((name) => [name, name])),
  );
  const functions = [...code.matchAll(EXPORT)];
  return [
    "// @ts-nocheck: this is JavaScript that ajv made; only `validators` is typed.",
    'import type { SchemaValidator } from "../runtime/schema-error.js";',
    'import { codePointLength } from "../runtime/text.js";',
    "",
    withoutHelpers(resolved.release, code)
      .replace(/^"use strict";\n?/, "")
      .replace(EXPORT, "")
      .trim(),
    "",
    "/** By type: whether a JSON value keeps to its schema. A failed check leaves its reasons in `errors`. */",
    "export const validators: {",
    ...functions.map((match) => `  readonly ${match[1]}: SchemaValidator;`),
    "} = {",
    ...functions.map((match) => `  ${match[1]}: ${match[2]},`),
    "};",
    "",
  ].join("\n");
}

const EXPORT = /^export const (\w+) = (\w+);$/gm;

/** Replaces what ajv would load from its own package at run time, and refuses what it can't replace. */
function withoutHelpers(release: string, code: string): string {
  let result = code;
  for (const [from, to] of Object.entries(HELPERS)) result = result.replaceAll(from, to);
  const leftOver = /require\([^)]*\)/.exec(result);
  if (leftOver)
    throw new Error(`the validators of ${release} need ${leftOver[0]}; the runtime must offer it`);
  return result;
}
