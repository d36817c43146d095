import { describe } from "../../errors.js";
import { CODE } from "../shared/codes.js";
import { AdminFailure } from "./failure.js";
import type { ExactJson, ExactJsonObject } from "./json.js";

// Members of an answer, checked before they are believed. What is not as it should be is an answer of no use (-900).

/** Sizes end here: they are signed 64-bit numbers wherever Mooncake counts with them. */
const SIZE_END = 1n << 63n;
const ADDRESS_END = 1n << 64n;

/** A JSON object. */
export function object(value: ExactJson | undefined, what: string): ExactJsonObject {
  if (value instanceof Map) return value as ExactJsonObject;
  throw unexpected(what, value, "an object");
}

/** A member that is a list. */
export function list(from: ExactJsonObject, name: string): readonly ExactJson[] {
  const value = from.get(name);
  if (Array.isArray(value)) return value as readonly ExactJson[];
  throw unexpected(name, value, "a list");
}

/** A list, or nothing where the master has none to tell of. */
export function optionalList(from: ExactJsonObject, name: string): readonly ExactJson[] {
  const value = from.get(name);
  return value === null || value === undefined ? [] : list(from, name);
}

/** A member that is text. */
export function text(from: ExactJsonObject, name: string): string {
  const value = from.get(name);
  if (typeof value === "string") return value;
  throw unexpected(name, value, "text");
}

/** A member that is a number of bytes. */
export function byteCount(from: ExactJsonObject, name: string): bigint {
  const value = from.get(name);
  if (typeof value === "bigint" && value >= 0n && value < SIZE_END) return value;
  throw unexpected(name, value, "a number of bytes below 2^63");
}

/** A member that is the address of `size` bytes. */
export function address(from: ExactJsonObject, name: string, size: bigint): bigint {
  const value = from.get(name);
  if (typeof value === "bigint" && value >= 0n && value + size <= ADDRESS_END) return value;
  throw unexpected(name, value, `an address with room for ${size} bytes below 2^64`);
}

/** A member that is an address in hexadecimal digits. */
export function hexadecimal(from: ExactJsonObject, name: string): bigint {
  const value = text(from, name);
  if (/^0x[0-9a-f]{1,16}$/i.test(value)) return BigInt(value);
  throw unexpected(name, value, "an address such as 0x7f0000000000");
}

/** The failure of an answer that has one thing where another should be. */
export function unexpected(what: string, value: unknown, wanted: string): AdminFailure {
  const shown = value instanceof Map ? "an object" : Array.isArray(value) ? "a list" : describe(value);
  return new AdminFailure(
    CODE.RPC_FAIL,
    `the master's answer has ${shown} where ${what} should be ${wanted}`,
  );
}
