import { type Checks, checksFor } from "../checks/checks-for.js";

/** The checks of cache groups and sizes: `ERR_CONFIG`. */
export const configChecks: Checks = checksFor("ERR_CONFIG");

/** The checks of a search, a mask or a lookup: `ERR_LOOKUP`. */
export const lookupChecks: Checks = checksFor("ERR_LOOKUP");

/** The error for cache groups and sizes that do not fit together. */
export const configError: Checks["error"] = configChecks.error;

/** The error for a search, a mask or a lookup that can't be done as asked. */
export const lookupError: Checks["error"] = lookupChecks.error;

/** A number of tokens. @throws MooncakeKvError `ERR_LOOKUP` outside [0, 2^32): the wire has no larger ones. */
export function checkTokens(name: string, value: number): number {
  return lookupChecks.whole(name, value, 0, 0xffff_ffff);
}
