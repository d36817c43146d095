import { type Checks, checksFor } from "../checks/checks-for.js";

export { UINT64_END } from "../checks/checks-for.js";

/** The checks of this room: `ERR_LAYOUT`. */
export const layoutChecks: Checks = checksFor("ERR_LAYOUT");

/** The error of this room: `ERR_LAYOUT` with the facts of the message as data. */
export const layoutError: Checks["error"] = layoutChecks.error;

/** A whole number. @throws MooncakeKvError `ERR_LAYOUT` when it is none. */
export const checkWhole: Checks["whole"] = layoutChecks.whole;

/** A bigint in [0, 2^64). @throws MooncakeKvError `ERR_LAYOUT` when it is none. */
export const checkUint64: Checks["uint64"] = layoutChecks.uint64;
