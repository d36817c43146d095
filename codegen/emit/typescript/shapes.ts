import type { Shape, TypeModel } from "../../../src/wire/model.js";

/** The TypeScript type of a shape. */
export function valueType(shape: Shape): string {
  switch (shape.kind) {
    case "boolean":
      return "boolean";
    case "integer":
    case "float":
      return "number";
    case "uint64":
      return "bigint";
    case "uint64OrBytes":
      return "bigint | Uint8Array";
    case "any":
      return "unknown";
    case "text":
      return "string";
    case "choice":
      return shape.values.map((value) => JSON.stringify(value)).join(" | ");
    case "bytes":
      return "Uint8Array";
    case "list":
      return `readonly ${element(shape.items)}[]`;
    case "set":
      return `ReadonlySet<${valueType(shape.items)}>`;
    case "map":
      return `ReadonlyMap<${valueType(shape.key)}, ${valueType(shape.value)}>`;
    case "nullable":
      return `${valueType(shape.of)} | null`;
    case "reference":
      return shape.name;
    case "absent":
      throw new Error("an absent member has no type");
  }
}

function element(shape: Shape): string {
  const type = valueType(shape);
  return /^[\w.<>]+$/.test(type) ? type : `(${type})`;
}

/** The types that a shape refers to. */
export function references(shape: Shape): string[] {
  switch (shape.kind) {
    case "reference":
      return [shape.name];
    case "list":
    case "set":
      return references(shape.items);
    case "map":
      return [...references(shape.key), ...references(shape.value)];
    case "nullable":
      return references(shape.of);
    default:
      return [];
  }
}

/** The types that a type refers to: in its members, or as its options. */
export function typeReferences(type: TypeModel): string[] {
  return [...(type.options ?? []), ...type.members.flatMap((member) => references(member.shape))];
}
