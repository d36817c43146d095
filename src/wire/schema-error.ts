import { describe, MooncakeKvError } from "../errors.js";
import type { Release } from "../release.js";
import { type RuleSchema, ruleInWords } from "./schema-words.js";

/** What a compiled validator says about a failed check. */
export interface SchemaFailure {
  readonly keyword: string;
  /** JSON pointer to the value that failed. */
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The schema whose keyword failed. */
  readonly parentSchema: RuleSchema;
  /** The value that failed. */
  readonly data: unknown;
}

/** A compiled validator. After a `false`, `errors` holds the reasons until the next call. */
export interface SchemaValidator {
  (data: unknown): boolean;
  errors?: readonly SchemaFailure[] | null | undefined;
}

/** Where a value stands and what it is called, for error messages. */
export interface Subject {
  readonly type: string;
  readonly release: Release;
}

/** An `ERR_SCHEMA` error that names the type, the path, the value and what is wrong with it. */
export function schemaError(
  subject: Subject,
  path: string,
  problem: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_SCHEMA",
    `${subject.type} of ${subject.release} at ${path}: ${problem}`,
    { type: subject.type, release: subject.release, path, ...details },
    options,
  );
}

/** The error for a failed check. */
export function failureError(subject: Subject, failures: readonly SchemaFailure[]): MooncakeKvError {
  const failure = mostTelling(failures);
  const { keyword, params, parentSchema, data } = failure;
  const path = jsonPath(failure.instancePath);
  const fail = (at: string, value: unknown, problem: string, rule: string): MooncakeKvError =>
    schemaError(subject, at, problem, { value, rule });
  switch (keyword) {
    case "required": {
      const name = String(params["missingProperty"]);
      const rule = parentSchema.title === undefined ? parentSchema["x-rule"] : undefined;
      const problem = `the property "${name}" is missing`;
      return fail(
        path,
        data,
        rule === undefined ? problem : `${problem}: ${rule}`,
        rule ?? `${name} is required`,
      );
    }
    case "additionalProperties": {
      const name = String(params["additionalProperty"]);
      const value = (data as Record<string, unknown>)[name];
      const rule = elsewhere(subject, parentSchema, name);
      return fail(
        `${path}${step(name)}`,
        value,
        `the value ${describe(value)} belongs to no property: ${rule}`,
        rule,
      );
    }
    case "uniqueItems":
    case "x-unique-keys": {
      const [index, first] = [Number(params["index"]), Number(params["first"])];
      const member = (data as unknown[])[index];
      const rule = keyword === "uniqueItems" ? "a set has no member twice" : "a map has no key twice";
      return fail(
        `${path}[${index}]`,
        member,
        `${describe(member)} repeats ${path}[${first}]; ${rule}`,
        rule,
      );
    }
    default: {
      const rule = ruleInWords(keyword, parentSchema, params, data);
      return fail(path, data, `${describe(data)} is refused: ${rule}`, rule);
    }
  }
}

/** Of the reasons of a choice, the one that lies deepest; at equal depth, the one that says most. */
function mostTelling(failures: readonly SchemaFailure[]): SchemaFailure {
  const rank = ({ keyword, instancePath }: SchemaFailure): number =>
    instancePath.split("/").length * 4 + (keyword === "anyOf" ? 1 : keyword === "type" ? 0 : 2);
  return failures.reduce((best, failure) => (rank(failure) > rank(best) ? failure : best));
}

function elsewhere({ release }: Subject, schema: RuleSchema, name: string): string {
  const title = schema.title ?? "the type";
  const releases = Object.hasOwn(schema["x-elsewhere"] ?? {}, name) ? schema["x-elsewhere"]![name]! : [];
  const key = describe(name, 40);
  return releases.length > 0
    ? `${title} has ${key} only in ${releases.join(" and ")}, not in ${release}`
    : `${title} has no ${key}`;
}

/** `/requests/0/load_spec` -> `$.requests[0].load_spec`. */
export function jsonPath(pointer: string): string {
  const steps = pointer.split("/").slice(1);
  return `$${steps.map((part) => step(part.replaceAll("~1", "/").replaceAll("~0", "~"))).join("")}`;
}

/** One step of a path, into a list or a property. */
export function step(part: string | number): string {
  if (/^[0-9]+$/.test(String(part))) return `[${part}]`;
  return /^\w{1,40}$/.test(String(part)) ? `.${part}` : `[${describe(String(part), 40)}]`;
}
