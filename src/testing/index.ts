/**
 * For whoever tests an implementation of these formats: fast-check arbitraries and laws, and a store that hands its
 * puts out piece by piece. Needs the package fast-check.
 */

export { openEmbeddedTestStore } from "../conformance/embedded-test-store.js";
export type { EmbeddedExtras } from "../store/embedded/embedded-backend.js";
export type { PutSessions } from "../store/embedded/put-sessions.js";
export * from "./arbitraries/index.js";
export * from "./laws/index.js";
