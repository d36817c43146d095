import { fromHex } from "#platform";
import { describe } from "../errors.js";
import { hashError } from "./hash-error.js";

/** An integer as a bigint; refuses fractions, NaN and numbers that have already lost digits. */
export function exactInteger(value: number | bigint): bigint {
  if (typeof value === "bigint") return value;
  if (!Number.isSafeInteger(value))
    throw hashError(`${describe(value)} can't be hashed as an integer; beyond 2^53 - 1 a bigint is needed`, {
      value,
    });
  return BigInt(value);
}

/** Big-endian bytes of an integer of 0 or more, without leading zeros. */
export function magnitude(value: bigint): Uint8Array {
  const digits = value.toString(16);
  return fromHex(digits.length % 2 ? `0${digits}` : digits);
}
