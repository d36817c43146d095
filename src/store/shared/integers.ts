import { describe, MooncakeKvError } from "../../errors.js";

/** Addresses and sizes end here. */
export const ADDRESS_END: bigint = 1n << 64n;

/**
 * A whole number in [0, 2^64), as an address or a size of a call.
 *
 * @throws MooncakeKvError `ERR_STORE` that names the operation, what the number is, and its value.
 */
export function unsigned(operation: string, what: string, value: unknown): bigint {
  const whole = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof whole !== "bigint" || whole < 0n || whole >= ADDRESS_END)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: the ${what} is ${describe(value)}; it is a whole number in [0, 2^64)`,
      { operation, value },
    );
  return whole;
}
