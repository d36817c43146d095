import type {
  BinaryEncoding,
  BinaryFrame,
  BinaryPart,
  FamilyModel,
  MemberModel,
  ReleaseModel,
  RuleModel,
  Shape,
  TypeModel,
} from "../../src/wire/model.js";
import type { ResolvedRelease, Schema, SchemaBinaryPart } from "../schema.js";

/** Pass 4: what the emitters read, made of a resolved release. */
export function buildModel(resolved: ResolvedRelease): ReleaseModel {
  const families = resolved.families.map(
    (family): FamilyModel => ({
      name: family.name,
      description: family.description,
      types: family.types.map((name) => type(name, family.name, resolved.schema.$defs[name]!)),
    }),
  );
  return { release: resolved.release, families };
}

function type(name: string, family: string, schema: Schema): TypeModel {
  const form = schema["x-type"] === "tuple" || schema["x-type"] === "tagged" ? schema["x-type"] : "object";
  const members = form === "tuple" ? tupleMembers(schema) : objectMembers(schema);
  const binary = schema["x-binary"];
  return {
    name,
    family,
    description: schema.description ?? "",
    vllm: schema["x-vllm"] ?? "",
    form,
    ...(form === "tagged" ? { options: schema.anyOf!.map((option) => referred(option.$ref!)) } : {}),
    ...(schema["x-packed"] ? { packed: schema["x-packed"] } : {}),
    members,
    rules: rules(schema, members),
    ...(binary ? { binary: binary.map((frame): BinaryFrame => frame.map(part)) } : {}),
  };
}

function objectMembers(schema: Schema): MemberModel[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    description: property.description ?? "",
    shape: shape(property),
    optional: !required.has(name),
    ...("default" in property ? { fallback: property.default } : {}),
    ...(property["x-written"] ? { written: true as const } : {}),
  }));
}

function tupleMembers(schema: Schema): MemberModel[] {
  return schema.prefixItems!.map((item, index) => ({
    name: schema["x-names"]![index]!,
    description: item.description ?? "",
    shape: shape(item),
    optional: false,
  }));
}

function shape(schema: Schema): Shape {
  if (schema.$ref !== undefined) return { kind: "reference", name: referred(schema.$ref) };
  if (schema.anyOf)
    return { kind: "nullable", of: shape(schema.anyOf.find((option) => option.type !== "null")!) };
  if (Array.isArray(schema.type)) {
    const [inner] = schema.type.filter((name) => name !== "null");
    return { kind: "nullable", of: shape({ ...schema, type: inner! }) };
  }
  switch (schema["x-type"]) {
    case "uint64":
      return { kind: "uint64" };
    case "bytes":
      return { kind: "bytes", minLength: schema.pattern?.endsWith("+$") ? 1 : 0 };
    case "uint64-or-bytes":
      return { kind: "uint64OrBytes" };
    case "any":
      return { kind: "any" };
    case "absent":
      return { kind: "absent" };
    case "set":
      return { kind: "set", items: shape(schema.items as Schema) };
    case "map": {
      const [key, value] = (schema.items as Schema).prefixItems!;
      return { kind: "map", key: shape(key!), value: shape(value!) };
    }
  }
  if (schema.enum) return { kind: "choice", values: schema.enum as string[] };
  switch (schema.type) {
    case "boolean":
      return { kind: "boolean" };
    case "number":
      return { kind: "float" };
    case "integer":
      return { kind: "integer", minimum: schema.minimum!, maximum: schema.maximum! };
    case "string":
      return { kind: "text", minLength: schema.minLength ?? 0 };
    case "array":
      return { kind: "list", items: shape(schema.items as Schema) };
  }
  throw new Error(`no shape for ${JSON.stringify(schema)}`);
}

function referred(reference: string): string {
  return reference.slice("#/$defs/".length);
}

function rules(schema: Schema, members: readonly MemberModel[]): RuleModel[] {
  const name = (key: string | number): string => (typeof key === "number" ? members[key]!.name : key);
  const found: RuleModel[] = [];
  for (const keys of schema["x-equal-length"] ?? [])
    found.push({ kind: "equal-length", members: keys.map(name) });
  for (const [a, b] of schema["x-less"] ?? []) found.push({ kind: "less", members: [name(a), name(b)] });
  for (const [a, b] of schema["x-multiple"] ?? [])
    found.push({ kind: "multiple", members: [name(a), name(b)] });
  for (const part of [schema, schema.then])
    if (part?.["x-rule"] !== undefined) found.push({ kind: "words", text: part["x-rule"] });
  return found;
}

function part({ tag, property, encoding }: SchemaBinaryPart): BinaryPart {
  return tag !== undefined
    ? { kind: "tag", text: tag }
    : { kind: "member", member: property!, encoding: encoding as BinaryEncoding };
}
