/**
 * Conformance: the runner of the golden vectors, and the recorded contract of the real Mooncake, for whoever has an
 * implementation of these formats. Needs no test framework.
 */
export * from "./contract/index.js";
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
  type VectorOptions,
} from "./vectors/runner.js";
