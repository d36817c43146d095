export * from "./chunk/index.js";
export { describe, type ErrorCode, isMooncakeKvError, MooncakeKvError } from "./errors.js";
export * from "./hash/index.js";
export * from "./key/index.js";
export { DEFAULT_RELEASE, RELEASES, type Release } from "./release.js";
