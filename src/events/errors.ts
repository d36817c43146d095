import { type Checks, checksFor } from "../checks/checks-for.js";

export { configChecks, configError } from "../lookup/errors.js";

/** The error for bytes that are no events. */
export const eventError: Checks["error"] = checksFor("ERR_SCHEMA").error;
