import { MooncakeKvError } from "../errors.js";

/** The error for a lookup channel that can't be used as asked, or that does not answer. */
export function lookupError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_LOOKUP", message, details, options);
}

/** The error for an endpoint, a path, a size or an option that can't work. */
export function configError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, details, options);
}
