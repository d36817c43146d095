import type { Shape, TypeModel } from "../../../src/wire/model.js";
import { valueName } from "./names.js";
import { typeReferences } from "./shapes.js";

/** Types by name; tells what holds bytes or 64-bit integers, which JSON and MessagePack write differently. */
export class TypeTable {
  readonly #types: ReadonlyMap<string, TypeModel>;

  constructor(types: Iterable<TypeModel>) {
    this.#types = new Map(Array.from(types, (type) => [type.name, type]));
  }

  get(name: string): TypeModel {
    return this.#types.get(name)!;
  }

  /** The given types, each behind those that it refers to. */
  inOrder(types: readonly TypeModel[]): TypeModel[] {
    const ordered: TypeModel[] = [];
    const visit = (type: TypeModel): void => {
      if (ordered.includes(type)) return;
      for (const name of typeReferences(type)) {
        const target = this.get(name);
        if (types.includes(target)) visit(target);
      }
      ordered.push(type);
    };
    for (const type of types) visit(type);
    return ordered;
  }

  /** Whether the two wire forms of a shape differ. */
  differs(shape: Shape): boolean {
    switch (shape.kind) {
      case "bytes":
      case "uint64":
      case "uint64OrBytes":
      case "any":
        return true;
      case "list":
      case "set":
        return this.differs(shape.items);
      case "map":
        return this.differs(shape.key) || this.differs(shape.value);
      case "nullable":
        return this.differs(shape.of);
      case "reference":
        return this.typeDiffers(this.get(shape.name));
      default:
        return false;
    }
  }

  typeDiffers(type: TypeModel): boolean {
    return (
      type.packed !== undefined ||
      type.form === "tagged" ||
      type.members.some((member) => this.differs(member.shape))
    );
  }
}

/** Whether the value is the same on the wire, and can't be changed by whoever shares it. */
function isPlain(shape: Shape): boolean {
  return (
    ["boolean", "integer", "float", "text", "choice"].includes(shape.kind) ||
    (shape.kind === "nullable" && isPlain(shape.of))
  );
}

/**
 * The expression that turns a value into its wire form. `path` says where it stands in its type. Lists are spread, which
 * fails for what is no list: `Array.from` would take any object for an empty one.
 */
export function toWire(types: TypeTable, subject: string, shape: Shape, value: string, path: string): string {
  const inner = (item: Shape, name: string): string => toWire(types, subject, item, name, `${path}[]`);
  if (isPlain(shape)) return value;
  switch (shape.kind) {
    case "bytes":
    case "uint64":
    case "uint64OrBytes":
    case "any":
      return `form.${shape.kind}(${value}, ${subject}, ${JSON.stringify(path)})`;
    case "list":
    case "set": {
      if (isPlain(shape.items)) return `[...${value}]`;
      const item = fresh("item", value);
      return `[...${value}].map((${item}) => ${inner(shape.items, item)})`;
    }
    case "map":
      return `[...${value}].map(([key, item]) => [${inner(shape.key, "key")}, ${inner(shape.value, "item")}])`;
    case "nullable":
      return `${value} === null ? null : ${toWire(types, subject, shape.of, value, path)}`;
    case "reference": {
      const form = types.typeDiffers(types.get(shape.name)) ? ", form" : "";
      return `${valueName(shape.name)}ToWire(${value}${form})`;
    }
    default:
      return "null";
  }
}

/** The expression that turns a JSON value into a value. */
export function fromJson(shape: Shape, json: string): string {
  if (isPlain(shape)) return json;
  switch (shape.kind) {
    case "bytes":
      return `fromHex(${json})`;
    case "uint64":
      return `BigInt(${json})`;
    case "uint64OrBytes":
      return `uint64OrBytesFromJson(${json})`;
    case "any":
      return `anyFromJson(${json})`;
    case "list":
      return listFromJson(shape.items, json);
    case "set":
      return `new Set(${isPlain(shape.items) ? json : listFromJson(shape.items, json)})`;
    case "map":
      return isPlain(shape.key) && isPlain(shape.value)
        ? `new Map(${json})`
        : `new Map(${json}.map(([key, item]) => [${fromJson(shape.key, "key")}, ${fromJson(shape.value, "item")}]))`;
    case "nullable":
      return `${json} === null ? null : ${fromJson(shape.of, json)}`;
    case "reference":
      return `${valueName(shape.name)}FromJson(${json})`;
    default:
      throw new Error(`a member of kind ${shape.kind} has no value`);
  }
}

function listFromJson(items: Shape, json: string): string {
  if (isPlain(items)) return `[...${json}]`;
  const item = fresh("item", json);
  return `${json}.map((${item}) => ${fromJson(items, item)})`;
}

/** The expression for a member that may be missing. */
export function fromOptionalJson(shape: Shape, json: string, fallback: unknown): string {
  const value = fallbackValue(shape, fallback);
  const present = fromJson(shape, json);
  const canBeNull = shape.kind === "nullable" && fallback !== null;
  if (isPlain(shape) && !canBeNull) return `${json} ?? ${value}`;
  // A nullable member whose default is null needs one test for both.
  if (shape.kind === "nullable" && fallback === null)
    return `${json} == null ? null : ${fromJson(shape.of, json)}`;
  return `${json} === undefined ? ${value} : ${present}`;
}

function fallbackValue(shape: Shape, fallback: unknown): string {
  if (isPlain(shape) || fallback === null) return JSON.stringify(fallback);
  if (Array.isArray(fallback) && fallback.length === 0)
    return shape.kind === "set" ? "new Set()" : shape.kind === "map" ? "new Map()" : "[]";
  return fromJson(shape, JSON.stringify(fallback));
}

/** The literal that tells a MessagePack reader where bytes and 64-bit integers stand. */
export function packedShape(types: TypeTable, shape: Shape): string {
  switch (shape.kind) {
    case "bytes":
    case "uint64":
    case "uint64OrBytes":
    case "any":
      return JSON.stringify(shape.kind);
    case "list":
    case "set":
      return `{ items: ${packedShape(types, shape.items)} }`;
    case "nullable":
      return packedShape(types, shape.of);
    case "map": {
      const parts = [shape.key, shape.value].flatMap((part, index) =>
        types.differs(part) ? [`${index}: ${packedShape(types, part)}`] : [],
      );
      return `{ items: { members: { ${parts.join(", ")} } } }`;
    }
    case "reference":
      return `${valueName(shape.name)}Packed`;
    default:
      throw new Error(`a ${shape.kind} looks the same in JSON and MessagePack`);
  }
}

/** `item`, or another name when `used` is an item itself. */
function fresh(name: string, used: string): string {
  return used === name ? "inner" : name;
}
