/**
 * Everything that is pure: hashes, keys, chunks, layouts, requests, and which blocks of a prompt a hit needs. Runs in
 * Node and in a browser; loads no addon, no validator and no optional package.
 */

export * from "./chunk/index.js";
export * from "./coordinator/index.js";
export { describe, type ErrorCode, isMooncakeKvError, MooncakeKvError } from "./errors.js";
export * from "./hash/index.js";
export * from "./key/index.js";
export * from "./layout/index.js";
export { PythonFloat, pythonText } from "./python-text.js";
export { DEFAULT_RELEASE, RELEASES, type Release } from "./release.js";
export * from "./request/index.js";
