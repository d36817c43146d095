import { INTEGER_WIDTHS } from "../../src/wire/model.js";
import { type Schema, type SchemaFile, SchemaProblem, type SchemaSet } from "../schema.js";
import { createAjv } from "../vocabulary.js";
import { releasesOf, SCALARS } from "./resolve-release.js";

const KNOWN: ReadonlySet<string> = new Set(
  "$schema $id $ref $defs title description type const enum default minimum maximum minLength pattern items prefixItems minItems uniqueItems properties required additionalProperties anyOf not if then x-vllm x-since x-until x-type x-packed x-written x-names x-rule x-equal-length x-less x-multiple x-binary".split(
    " ",
  ),
);

/**
 * Pass 2: whether the schemas are valid JSON Schema 2020-12 and keep to the rules that the later passes and the
 * readers of the schemas rely on.
 *
 * @throws SchemaProblem with every problem found, one a line.
 */
export function checkSchemas(set: SchemaSet, releases: readonly string[]): void {
  const problems: string[] = [];
  const report = (where: string, message: string): void => void problems.push(`${where}: ${message}`);
  const ajv = createAjv();
  for (const file of set.files) {
    if (!ajv.validateSchema(file.schema as object))
      report(file.fileName, `not a JSON Schema 2020-12: ${JSON.stringify(ajv.errors?.[0]?.params)}`);
    if (file.schema.$id !== `mooncake-kv:/schema/${file.fileName}`)
      report(file.fileName, "$id is not its address");
    if (file.schema.title !== file.family) report(file.fileName, `title is not "${file.family}"`);
    if (!file.schema.description) report(file.fileName, "there is no description");
    for (const [name, schema] of Object.entries(file.schema.$defs ?? {})) {
      const where = `${file.fileName} ${name}`;
      if (schema.title !== name) report(where, "title is not the name");
      if (!/^[A-Z][A-Za-z0-9]*$/.test(name)) report(where, "a type is named in PascalCase");
      if (!schema.description) report(where, "there is no description");
      new Walk(set, file, releases, report).schema(where, schema);
      if (file.family !== SCALARS) checkType(where, schema, report);
    }
  }
  const names = set.files.flatMap((file) => Object.keys(file.schema.$defs ?? {}));
  for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index)))
    report(name, "two files define it");
  reportCycles(set, report);
  if (problems.length > 0) throw new SchemaProblem(problems);
}

/** Types form a tree of bounded depth: none contains itself, and files refer to each other in one direction only. */
function reportCycles(set: SchemaSet, report: Report): void {
  const referred = new Map<string, Set<string>>();
  for (const file of set.files)
    for (const [name, schema] of Object.entries(file.schema.$defs ?? {})) {
      const targets = [...JSON.stringify(schema).matchAll(/"\$ref":"([^"#]*)#\/\$defs\/(\w+)"/g)];
      const files = targets
        .map((match) => match[1]!)
        .filter((other) => other !== "" && other !== file.fileName);
      referred.set(name, new Set(targets.map((match) => match[2]!)));
      referred.set(file.fileName, new Set([...(referred.get(file.fileName) ?? []), ...files]));
    }
  for (const start of referred.keys()) {
    const seen = new Set<string>();
    const open = [...referred.get(start)!];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...(referred.get(next) ?? []));
    }
    if (seen.has(start)) report(start, "it refers to itself, directly or through others");
  }
}

type Report = (where: string, message: string) => void;

function checkType(where: string, schema: Schema, report: Report): void {
  if (!schema["x-vllm"]) report(where, "x-vllm names no symbol of vLLM");
  if (schema["x-type"] === "tagged") {
    if (!schema.anyOf?.every((option) => option.$ref?.startsWith("#/$defs/")))
      report(where, "a tagged type is a choice of types of its file");
    return;
  }
  if (schema["x-type"] === "tuple") {
    if (schema["x-names"]?.length !== schema.prefixItems?.length)
      report(where, "x-names and prefixItems differ");
    for (const [index, item] of (schema.prefixItems ?? []).entries())
      if (!item.description) report(`${where}[${index}]`, "there is no description");
  } else if (schema.type !== "object" || !schema.properties)
    report(where, "a type is an object with properties, or a tuple");
  const names = new Set([...Object.keys(schema.properties ?? {}), ...(schema["x-names"] ?? [])]);
  for (const name of names)
    if (!/^[a-z][a-z0-9_]*$/.test(name)) report(where, `${name} is not in snake_case`);
  for (const key of ["x-equal-length", "x-less", "x-multiple"] as const)
    for (const member of (schema[key] ?? []).flat())
      if (typeof member === "string" ? !names.has(member) : schema.prefixItems?.[member] === undefined)
        report(where, `${key} names ${member}, which does not exist`);
  const parts = (schema["x-binary"] ?? []).flat();
  for (const name of schema["x-binary"] ? names : [])
    if (parts.filter((part) => part.property === name).length !== 1)
      report(where, `${name} must stand in x-binary exactly once`);
  for (const part of parts) {
    if (part.tag !== undefined && !/^[ -~]+$/.test(part.tag)) report(where, "a tag is not printable ASCII");
    if (part.tag === undefined && !names.has(part.property ?? ""))
      report(where, `x-binary names ${part.property}, which does not exist`);
    if (
      part.tag === undefined &&
      !(`${part.encoding}` in INTEGER_WIDTHS || /^(flag|rest)$/.test(`${part.encoding}`))
    )
      report(where, `x-binary has no encoding ${part.encoding}`);
  }
}

/** Checks a schema and all schemas inside it. */
class Walk {
  readonly #set: SchemaSet;
  readonly #file: SchemaFile;
  readonly #releases: readonly string[];
  readonly #report: Report;

  constructor(set: SchemaSet, file: SchemaFile, releases: readonly string[], report: Report) {
    this.#set = set;
    this.#file = file;
    this.#releases = releases;
    this.#report = report;
  }

  schema(where: string, schema: Schema): void {
    for (const key of Object.keys(schema))
      if (!KNOWN.has(key)) this.#report(where, `the generator does not know the keyword ${key}`);
    this.#releaseRange(where, schema);
    if (schema.$ref !== undefined) this.#reference(where, schema.$ref);
    if (schema.type === "integer" && schema.minimum !== undefined && schema.maximum === undefined)
      this.#report(where, "an integer has a minimum but no maximum");
    if (schema.pattern !== undefined && schema["x-rule"] === undefined)
      this.#report(where, "a pattern needs its rule in words: x-rule");
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = `${where}.${name}`;
      this.schema(at, property);
      if (schema.additionalProperties !== false) continue;
      if (!this.#described(property)) this.#report(at, "there is no description");
      if (!("default" in property) && !schema.required?.includes(name))
        this.#report(at, "a property that is not required needs a default");
      if ("default" in property && schema.required?.includes(name))
        this.#report(at, "a required property has no default");
      if (schema.required?.includes(name) && (property["x-since"] ?? property["x-until"]) !== undefined)
        this.#report(at, "a property of some releases only can't be required");
    }
    if (schema.type === "object" && schema.properties && schema.title !== undefined)
      if (schema.additionalProperties !== false) this.#report(where, "additionalProperties is not false");
    if (schema.items) this.schema(`${where}[]`, schema.items);
    for (const [index, item] of (schema.prefixItems ?? []).entries()) this.schema(`${where}[${index}]`, item);
    for (const [index, option] of (schema.anyOf ?? []).entries()) this.schema(`${where}|${index}`, option);
    if (schema["x-type"] === "tagged") this.#options(where, schema);
    else if (
      schema.anyOf &&
      (schema.anyOf.length !== 2 || !schema.anyOf.some((option) => option.type === "null"))
    )
      this.#report(where, "anyOf says only: something or null");
  }

  /** Each option of a tagged type says by its member `type` that it is the one. */
  #options(where: string, schema: Schema): void {
    for (const { $ref = "" } of schema.anyOf ?? []) {
      const name = $ref.slice("#/$defs/".length);
      const target = this.#target($ref);
      const tag = target?.properties?.["type"]?.enum;
      if (tag?.length !== 1 || tag[0] !== name || !target?.required?.includes("type"))
        this.#report(where, `${name} has no required member type that is "${name}"`);
      if (target?.["x-packed"] === undefined) this.#report(where, `${name} has no x-packed`);
    }
  }

  #described(property: Schema): boolean {
    return Boolean(property.description ?? (property.$ref && this.#target(property.$ref)?.description));
  }

  #releaseRange(where: string, schema: Schema): void {
    for (const key of ["x-since", "x-until"] as const) {
      const release = schema[key];
      if (release !== undefined && !this.#releases.includes(release))
        this.#report(where, `${key} names ${release}; the releases are ${this.#releases.join(", ")}`);
    }
    if (releasesOf(schema, this.#releases).length === 0) this.#report(where, "no release has it");
  }

  #reference(where: string, reference: string): void {
    if (!this.#target(reference)) this.#report(where, `${reference} does not exist`);
  }

  #target(reference: string): Schema | undefined {
    const [fileName = "", path = ""] = reference.split("#");
    const file = this.#set.files.find((other) => other.fileName === (fileName || this.#file.fileName));
    return path.startsWith("/$defs/") ? file?.schema.$defs?.[path.slice("/$defs/".length)] : undefined;
  }
}
