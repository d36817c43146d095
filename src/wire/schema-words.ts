import { describe } from "../errors.js";

/** The part of a JSON Schema that error messages are made of. */
export interface RuleSchema {
  readonly title?: string | undefined;
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly minLength?: number | undefined;
  readonly anyOf?: readonly RuleSchema[] | undefined;
  readonly "x-type"?: string | undefined;
  readonly "x-names"?: readonly string[] | undefined;
  readonly "x-rule"?: string | undefined;
  readonly "x-elsewhere"?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly "x-equal-length"?: readonly (readonly (string | number)[])[] | undefined;
  readonly "x-less"?: readonly (readonly (string | number)[])[] | undefined;
  readonly "x-multiple"?: readonly (readonly (string | number)[])[] | undefined;
}

/** What a failed keyword asked for, as a clause. */
export function ruleInWords(
  keyword: string,
  schema: RuleSchema,
  params: Readonly<Record<string, unknown>>,
  data: unknown,
): string {
  switch (keyword) {
    case "not":
      // A rule about members says nothing to somebody whose value has none.
      if (schema.type === "object" && (typeof data !== "object" || data === null || Array.isArray(data)))
        return `expected ${schemaInWords({ ...schema, "x-rule": undefined })}`;
      return schema["x-rule"] ?? "expected another value";
    case "x-equal-length":
    case "x-less":
    case "x-multiple":
      return `expected ${groupInWords(keyword, schema, Number(params["group"]), data)}`;
    default:
      return `expected ${schemaInWords(schema)}`;
  }
}

function groupInWords(
  keyword: "x-equal-length" | "x-less" | "x-multiple",
  schema: RuleSchema,
  group: number,
  data: unknown,
): string {
  const members = schema[keyword]![group]!;
  const values = members.map((member) => (data as Record<string | number, unknown>)[member]);
  const names = members.map((member) =>
    typeof member === "number" ? (schema["x-names"]?.[member] ?? `[${member}]`) : member,
  );
  if (keyword === "x-equal-length") {
    const lengths = values.map((value) => (value as unknown[]).length);
    return `${names.join(" and ")} to have one length, not ${lengths.join(" and ")}`;
  }
  const [a, b] = values.map((value) => describe(value));
  return keyword === "x-less"
    ? `${names[0]} to be less than ${names[1]}, not ${a} and ${b}`
    : `${names[0]} to be a multiple of ${names[1]}, not ${a} and ${b}`;
}

/** What a schema accepts, in words. */
export function schemaInWords(schema: RuleSchema): string {
  // The rule of a type is about its members together, not about what kind of value it is.
  if (schema.title === undefined && schema["x-rule"] !== undefined) return schema["x-rule"];
  if (schema.anyOf) return schema.anyOf.map(schemaInWords).join(" or ");
  if (schema.$ref !== undefined) return `the object ${schema.$ref}`;
  if (typeof schema.type === "object") {
    const [type] = schema.type.filter((name) => name !== "null");
    return `${schemaInWords({ ...schema, type: type! })}, or null`;
  }
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`;
  switch (schema.type) {
    case "null":
      return "null";
    case "boolean":
      return "true or false";
    case "integer":
      return schema.maximum === undefined
        ? "an integer"
        : `an integer from ${schema.minimum} to ${schema.maximum}`;
    case "number":
      return "a number";
    case "string":
      return schema.minLength ? "text that is not empty" : "text";
    case "object":
      return `the object ${schema.title ?? ""}`.trim();
    case "array":
      return listInWords(schema);
    default:
      return "another value";
  }
}

function listInWords(schema: RuleSchema): string {
  const names = schema["x-names"];
  if (names) return `the list [${names.join(", ")}]`;
  switch (schema["x-type"]) {
    case "set":
      return "a list without repetitions";
    case "map":
      return "a list of [key, value] pairs";
    default:
      return "a list";
  }
}
