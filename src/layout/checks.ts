import { describe, MooncakeKvError } from "../errors.js";

/** The first number that does not fit into 64 bits. */
export const UINT64_END: bigint = 1n << 64n;

/** The error of this room: `ERR_LAYOUT` with the facts of the message as data. */
export function layoutError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_LAYOUT", message, details);
}

/**
 * `value` if it is a whole number of at least `minimum` that a double holds exactly.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when it is not.
 */
export function checkWhole(name: string, value: number, minimum: number = Number.MIN_SAFE_INTEGER): number {
  if (!Number.isSafeInteger(value) || value < minimum) {
    const range = minimum === Number.MIN_SAFE_INTEGER ? "" : ` of ${minimum} or more`;
    throw layoutError(`${name} is ${describe(value)}; it must be a whole number${range}`, { name, value });
  }
  return value;
}

/**
 * `value` if it is a bigint in [0, 2^64).
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when it is not.
 */
export function checkUint64(name: string, value: bigint): bigint {
  if (typeof value !== "bigint" || value < 0n || value >= UINT64_END)
    throw layoutError(`${name} is ${describe(value)}; it must be a bigint in [0, 2^64)`, { name, value });
  return value;
}
