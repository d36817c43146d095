import { type Checks, checksFor } from "../checks/checks-for.js";

/** The checks of endpoints, paths, sizes and options: `ERR_CONFIG`. */
export const configChecks: Checks = checksFor("ERR_CONFIG");

/** The error for a lookup channel that can't be used as asked, or that does not answer. */
export const lookupError: Checks["error"] = checksFor("ERR_LOOKUP").error;

/** The error for an endpoint, a path, a size or an option that can't work. */
export const configError: Checks["error"] = configChecks.error;
