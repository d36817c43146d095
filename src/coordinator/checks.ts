import { describe, MooncakeKvError } from "../errors.js";

/** The error for cache groups and sizes that do not fit together. */
export function configError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, details);
}

/** The error for a search, a mask or a lookup that can't be done as asked. */
export function lookupError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_LOOKUP", message, details, options);
}

/** `value` if it is a whole number of at least `minimum`. @throws what `error` makes when it is not. */
export function checkWhole(
  error: (message: string, details: Record<string, unknown>) => MooncakeKvError,
  name: string,
  value: number,
  minimum: number,
): number {
  if (!Number.isSafeInteger(value) || value < minimum)
    throw error(`${name} is ${describe(value)}; it must be a whole number of ${minimum} or more`, {
      name,
      value,
    });
  return value;
}

/** A number of tokens. @throws MooncakeKvError `ERR_LOOKUP` outside [0, 2^32): the wire has no larger ones. */
export function checkTokens(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0 || value > 0xffff_ffff)
    throw lookupError(`${name} is ${describe(value)}; it must be a whole number of 0 to 2^32 - 1`, {
      name,
      value,
    });
  return value;
}
