import { describe } from "../errors.js";
import { anyToJson } from "./any-value.js";
import { toHex } from "./hex.js";
import { type Subject, schemaError, step } from "./schema-error.js";
import { uint64OrBytesToJson } from "./wire.js";

/** Where in a type MessagePack and JSON differ; undefined where they don't. */
export type PackedShape =
  | "bytes"
  | "uint64"
  | "uint64OrBytes"
  | "any"
  | { readonly items: PackedShape }
  | {
      readonly members: Readonly<Record<string, PackedShape>>;
      /** The members in their order, for a type that may be a list; behind its tag, where it has one. */
      readonly order?: readonly string[] | undefined;
      readonly tag?: string | undefined;
    }
  /** One of several types, by tag. */
  | { readonly tagged: Readonly<Record<string, PackedShape>> };

/**
 * A decoded MessagePack value in its JSON form, so that one validator serves both. Bytes become hex only where the
 * shape has bytes: elsewhere they stay, and the validator refuses them.
 */
export function packedToJson(
  value: unknown,
  shape: PackedShape | undefined,
  subject: Subject,
  path: string = "$",
): unknown {
  if (shape === "any") return anyToJson(value, subject, path);
  if (value === null) return null;
  if (typeof shape === "object" && "tagged" in shape) {
    const tag = Array.isArray(value) ? value[0] : (value as { readonly type?: unknown }).type;
    const own = typeof tag === "string" && Object.hasOwn(shape.tagged, tag) ? shape.tagged[tag] : undefined;
    // Of an unknown kind: refused by the validator.
    return own === undefined
      ? packedToJson(value, undefined, subject, path)
      : packedToJson(value, own, subject, path);
  }
  if (typeof shape === "object" && "order" in shape && Array.isArray(value))
    return packedToJson(mapOf(value, shape, subject, path), shape, subject, path);
  if (shape === "uint64OrBytes") {
    if (value instanceof Uint8Array) return uint64OrBytesToJson(value);
    if (typeof value === "bigint" || Number.isSafeInteger(value))
      return uint64OrBytesToJson(BigInt.asUintN(64, BigInt(value as bigint)));
    throw schemaError(subject, path, `${describe(value)} is refused: expected bin, or an integer`, { value });
  }
  if (shape === "bytes") {
    if (value instanceof Uint8Array) return toHex(value);
    throw schemaError(subject, path, `${describe(value)} is refused: expected bin`, { value });
  }
  if (shape === "uint64") {
    if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
    throw schemaError(
      subject,
      path,
      `${describe(value)} is refused: expected an integer from 0 to 2^64 - 1`,
      {
        value,
      },
    );
  }
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (typeof value !== "object" || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map((item, index) => inner(item, shape, index, subject, path));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, inner(item, shape, name, subject, path)]),
  );
}

function inner(
  item: unknown,
  shape: PackedShape | undefined,
  key: string | number,
  subject: Subject,
  path: string,
): unknown {
  let own: PackedShape | undefined;
  if (typeof shape === "object" && "items" in shape) own = typeof key === "number" ? shape.items : undefined;
  else if (typeof shape === "object" && "members" in shape && Object.hasOwn(shape.members, key))
    own = shape.members[key];
  // A path is only text for a message: where nothing can go wrong below, none is made.
  return packedToJson(item, own, subject, own === undefined ? path : `${path}${step(key)}`);
}

/** The map that a list stands for: its elements, under the names of the members. */
function mapOf(
  list: readonly unknown[],
  { order = [], tag }: { readonly order?: readonly string[] | undefined; readonly tag?: string | undefined },
  subject: Subject,
  path: string,
): Record<string, unknown> {
  const values = tag === undefined ? list : list.slice(1);
  if (values.length > order.length)
    throw schemaError(subject, path, `a list of ${values.length} members; the type has ${order.length}`, {
      value: list,
    });
  const named = values.map((value, index) => [order[index]!, value]);
  return { ...(tag === undefined ? {} : { type: list[0] }), ...Object.fromEntries(named) };
}

/** The error for a value of a tagged type that says it is none of the options. */
export function unknownTag(subject: Subject, value: { readonly type?: unknown }): Error {
  return schemaError(subject, "$.type", `${describe(value.type)} is refused: it is the type of no option`, {
    value: value.type,
  });
}
