import { MooncakeKvError } from "../errors.js";

/** The error of this room: `ERR_HASH` with the facts of the message as data. */
export function hashError(
  message: string,
  details: Record<string, unknown> = {},
  options?: ErrorOptions,
): MooncakeKvError {
  return new MooncakeKvError("ERR_HASH", message, details, options);
}
