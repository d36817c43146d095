export { BoundaryPut, type BoundaryPutTuple } from "./boundary-put.js";
export { MooncakeStoreConnectorMetadata } from "./connector-metadata.js";
export { createLoadSpec, type LoadSpec, type LoadSpecInit } from "./load-spec.js";
export {
  type FromRequestTrackerOptions,
  ReqMeta,
  type ReqMetaInit,
  type StepOptions,
  type StepOptions027,
  type StepOptions033,
} from "./req-meta.js";
export { RequestTracker, type RequestTrackerInit } from "./request-tracker.js";
export { createLookupResult, TailKeyBoundary } from "./tail-key-boundary.js";
export { MooncakeStoreWorkerMetadata } from "./worker-metadata.js";
