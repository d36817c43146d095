export { type Difference, firstDifference } from "./vectors/compare.js";
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
