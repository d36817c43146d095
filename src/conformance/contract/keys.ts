import type { FlatKeys } from "../../key/key-table.js";
import type { JsonValue } from "../vectors/handler.js";
import { isObject } from "../vectors/json.js";

/** A key as its bytes, in one of the three ways in which a step writes it. */
export function keyBytes(key: JsonValue | undefined): Uint8Array {
  if (typeof key === "string") return new TextEncoder().encode(key);
  if (isObject(key)) {
    if (typeof key["hex"] === "string") return Uint8Array.from(Buffer.from(key["hex"], "hex"));
    if (typeof key["rep"] === "string") return new TextEncoder().encode(key["rep"].repeat(Number(key["n"])));
  }
  throw new TypeError(`${JSON.stringify(key)} is no key`);
}

/** A list of keys, which may be written as a prefix and a count. */
export function keyList(keys: JsonValue | undefined): Uint8Array[] {
  if (Array.isArray(keys)) return keys.map(keyBytes);
  if (isObject(keys) && typeof keys["prefix"] === "string")
    return numberedKeys(keys["prefix"], Number(keys["start"] ?? 0), Number(keys["n"]));
  throw new TypeError(`${JSON.stringify(keys)} is no list of keys`);
}

/** prefix + start, prefix + start + 1, ... */
export function numberedKeys(prefix: string, start: number, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) => keyBytes(`${prefix}${start + i}`));
}

/** A key as text that tells any two keys apart. */
export function keyId(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
}

/** Keys as a store takes them. */
export function flatKeys(keys: readonly Uint8Array[]): FlatKeys {
  const offsets = new Uint32Array(keys.length + 1);
  for (const [i, key] of keys.entries()) offsets[i + 1] = offsets[i]! + key.length;
  const bytes = new Uint8Array(offsets[keys.length]!);
  for (const [i, key] of keys.entries()) bytes.set(key, offsets[i]);
  return { bytes, offsets };
}
