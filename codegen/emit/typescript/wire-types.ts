import { compile, type JSONSchema } from "json-schema-to-typescript";
import type { ResolvedRelease, Schema } from "../../schema.js";
import { wireTypeName } from "./names.js";

/**
 * The module with the JSON form of each type of a release, made by json-schema-to-typescript. An interface of all of
 * them, by name, comes first: it is what keeps unreferenced types in.
 */
export async function wireTypeModule(resolved: ResolvedRelease): Promise<string> {
  const { $defs } = resolved.schema;
  const root: JSONSchema = {
    title: "WireTypes",
    description: `The JSON form of every type of ${resolved.release}, by the type's name.`,
    type: "object",
    additionalProperties: false,
    required: Object.keys($defs),
    properties: Object.fromEntries(Object.keys($defs).map((name) => [name, { $ref: `#/$defs/${name}` }])),
    $defs: Object.fromEntries(
      Object.entries($defs).map(([name, schema]) => [name, definition(name, schema)]),
    ),
  };
  return compile(root, "WireTypes", {
    bannerComment: "",
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 110, trailingComma: "all" },
  });
}

function definition(name: string, schema: Schema): JSONSchema {
  return { ...converted(schema), title: wireTypeName(name) };
}

/** What json-schema-to-typescript understands: it knows no `prefixItems`, and repeats keywords that types can't say. */
function converted(schema: Schema): JSONSchema {
  if (schema.prefixItems)
    return {
      ...(schema.description === undefined ? {} : { description: schema.description }),
      tsType: `[${schema.prefixItems.map(elementType).join(", ")}]`,
    };
  if (schema["x-type"] === "any") return { tsType: "unknown" };
  const result: JSONSchema = {};
  for (const key of ["$ref", "type", "enum", "description", "additionalProperties", "required"] as const)
    if (schema[key] !== undefined) Object.assign(result, { [key]: schema[key] });
  if (schema.anyOf) result.anyOf = schema.anyOf.map(converted);
  if (schema.items) result.items = converted(schema.items);
  if (schema.properties)
    result.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, converted(property)]),
    );
  return result;
}

function elementType(schema: Schema): string {
  switch (schema.type) {
    case "integer":
      return "number";
    case "string":
    case "boolean":
      return schema.type;
  }
  throw new Error(`a tuple can't hold ${JSON.stringify(schema)} yet`);
}
