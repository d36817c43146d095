/**
 * For whoever tests an implementation of these formats: the runner of the golden vectors, and fast-check arbitraries
 * and laws (needs the package fast-check).
 */
export * from "../../test/laws/index.js";
export type { EmbeddedExtras } from "../store/embedded/embedded-backend.js";
export type { PutSessions } from "../store/embedded/put-sessions.js";
export * from "./contract/index.js";
export { openEmbeddedTestStore } from "./embedded-test-store.js";
export { type Difference, firstDifference } from "./vectors/compare.js";
export { Deviation, type DeviationName } from "./vectors/deviation.js";
export type {
  JsonObject,
  JsonValue,
  VectorContext,
  VectorHandler,
  VectorHandlers,
} from "./vectors/handler.js";
export { vectorHandlers } from "./vectors/index.js";
export {
  type FileReport,
  type OpReport,
  runVectorFile,
  runVectorLines,
  type VectorFailure,
} from "./vectors/runner.js";
