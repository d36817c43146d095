import { MooncakeKvError } from "../errors.js";

export { configError } from "../lookup/errors.js";

/** The error for bytes that are no events. */
export function eventError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_SCHEMA", message, details, options);
}
