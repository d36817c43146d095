/**
 * Everything that is pure: hashes, keys, chunks, layouts, requests, and the generated wire types with their codecs.
 * Loads neither the addon nor any optional package.
 */

/** The wire types: interfaces, validators and codecs, generated from the JSON Schemas in `schema/`. */
export * as wire from "../generated/typescript/index.js";
export * from "./chunk/index.js";
export * from "./coordinator/index.js";
export { describe, type ErrorCode, isMooncakeKvError, MooncakeKvError } from "./errors.js";
export * from "./hash/index.js";
export * from "./key/index.js";
export * from "./layout/index.js";
export { PythonFloat, pythonText } from "./python-text.js";
export { DEFAULT_RELEASE, RELEASES, type Release } from "./release.js";
export * from "./request/index.js";
