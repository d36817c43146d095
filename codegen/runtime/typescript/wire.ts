import { describe } from "./errors.js";
import { type Subject, schemaError } from "./schema-error.js";

/** How bytes and 64-bit integers are written: the only thing in which JSON and MessagePack differ. */
export interface WireForm {
  /** `path` says where the value stands in its type. */
  bytes(value: Uint8Array, subject: Subject, path: string): unknown;
  uint64(value: bigint, subject: Subject, path: string): unknown;
}

/** JSON: lower-case hex and decimal strings. */
export const jsonForm: WireForm = {
  bytes: (value, subject, path) => toHex(checkedBytes(value, subject, path)),
  uint64: (value, subject, path) => String(checkedUint64(value, subject, path)),
};

/** MessagePack: bin and integers. */
export const packedForm: WireForm = { bytes: checkedBytes, uint64: checkedUint64 };

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

/** Lower-case hex of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** The bytes that hex stands for, in memory of their own. What is no hex ends the result. */
export function fromHex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}
