import { describe } from "./errors.js";
import { type Subject, schemaError, step } from "./schema-error.js";
import { toHex } from "./wire.js";

/** Where in a type bytes and 64-bit integers stand; undefined where there are none. */
export type PackedShape =
  | "bytes"
  | "uint64"
  | { readonly items: PackedShape }
  | { readonly members: Readonly<Record<string, PackedShape>> };

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
  if (value === null) return null;
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
  else if (typeof shape === "object" && Object.hasOwn(shape.members, key)) own = shape.members[key];
  // A path is only text for a message: where nothing can go wrong below, none is made.
  return packedToJson(item, own, subject, own === undefined ? path : `${path}${step(key)}`);
}
