import { describe } from "../errors.js";
import { anyToJson, anyToPacked } from "./any-value.js";
import { fromHex, toHex } from "./hex.js";
import { type Subject, schemaError } from "./schema-error.js";

export { anyFromJson } from "./any-value.js";
export { fromHex, toHex } from "./hex.js";

/** How bytes and 64-bit integers are written: the only thing in which JSON and MessagePack differ. */
export interface WireForm {
  /** `path` says where the value stands in its type. */
  bytes(value: Uint8Array, subject: Subject, path: string): unknown;
  uint64(value: bigint, subject: Subject, path: string): unknown;
  uint64OrBytes(value: bigint | Uint8Array, subject: Subject, path: string): unknown;
  any(value: unknown, subject: Subject, path: string): unknown;
  /** Whether this is MessagePack, where some types are lists. */
  readonly packed: boolean;
}

/** JSON: lower-case hex and decimal strings. */
export const jsonForm: WireForm = {
  bytes: (value, subject, path) => toHex(checkedBytes(value, subject, path)),
  uint64: (value, subject, path) => String(checkedUint64(value, subject, path)),
  uint64OrBytes: (value, subject, path) => uint64OrBytesToJson(checkedEither(value, subject, path)),
  any: anyToJson,
  packed: false,
};

/** MessagePack: bin and integers. */
export const packedForm: WireForm = {
  bytes: checkedBytes,
  uint64: checkedUint64,
  uint64OrBytes: checkedEither,
  any: anyToPacked,
  packed: true,
};

function checkedEither(value: bigint | Uint8Array, subject: Subject, path: string): bigint | Uint8Array {
  return value instanceof Uint8Array ? value : checkedUint64(value, subject, path);
}

function checkedBytes(value: Uint8Array, subject: Subject, path: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw schemaError(subject, path, `${describe(value)} is refused: expected a Uint8Array`, { value });
}

function checkedUint64(value: bigint, subject: Subject, path: string): bigint {
  if (typeof value === "bigint" && value >= 0n && value < 1n << 64n) return value;
  throw schemaError(subject, path, `${describe(value)} is refused: expected a bigint in [0, 2^64)`, {
    value,
  });
}

/** The JSON form of an integer or bytes: a decimal string, or 0x and hex. */
export function uint64OrBytesToJson(value: bigint | Uint8Array): string {
  return value instanceof Uint8Array ? `0x${toHex(value)}` : String(value);
}

/** What a checked JSON form of an integer or bytes stands for. */
export function uint64OrBytesFromJson(text: string): bigint | Uint8Array {
  return text.startsWith("0x") ? fromHex(text.slice(2)) : BigInt(text);
}
