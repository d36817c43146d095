import { MooncakeKvError } from "../../errors.js";

/** An error of this backend that is no result code. */
export function sidecarError(
  message: string,
  details: Record<string, unknown> = {},
  cause?: unknown,
): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_STORE",
    `Mooncake sidecar: ${message}`,
    details,
    cause === undefined ? undefined : { cause },
  );
}
