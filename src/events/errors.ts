import { MooncakeKvError } from "../errors.js";

/** The error for bytes that are no events. */
export function eventError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_SCHEMA", message, details, options);
}

/** The error for an endpoint, a size or an option that can't work. */
export function configError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, details, options);
}
