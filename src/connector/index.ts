/**
 * The connector: which blocks of an engine's requests are saved to a store and loaded from it, and when. Importing this
 * module loads neither the addon nor an optional package.
 */

export {
  type ConnectorConfig,
  type ConnectorSettings,
  connectorSettings,
  DEFAULT_KV_LOAD_FAILURE_POLICY,
  DEFAULT_RETENTION_INTERVAL,
  KV_ROLES,
  type KvLoadFailurePolicy,
  type KvRole,
} from "./connector-config.js";
export {
  MooncakeStoreConnectorStats,
  type OperationRecord,
  type OperationStatus,
  type StoreOperationName,
} from "./metrics/connector-stats.js";
export {
  loadPromClient,
  MooncakeStorePromMetrics,
  OPERATION_TIME_BUCKETS,
  type PromClient,
  type PromMetricOptions,
  type PromMetricsOptions,
} from "./metrics/prom-metrics.js";
export { NULL_BLOCK_ID } from "./null-block.js";
export type { BlockPool } from "./scheduler/block-pool.js";
export type { LookupClient, LookupClientAnswer } from "./scheduler/lookup-client.js";
export {
  MooncakeStoreScheduler,
  type MooncakeStoreSchedulerOptions,
} from "./scheduler/mooncake-store-scheduler.js";
export {
  type LookupSource,
  PendingLookups,
  type PendingLookupsOptions,
} from "./scheduler/pending-lookups.js";
export { SchedulerDriver } from "./scheduler/scheduler-driver.js";
export type { SchedulerEvent, SchedulerEventResults } from "./scheduler/scheduler-events.js";
export type { LookupCounts } from "./scheduler/scheduler-lookups.js";
export type {
  BlockIds,
  CachedRequestData,
  ConnectorBlockState,
  NewRequestData,
  SchedulerOutput,
} from "./scheduler/scheduler-output.js";
export type { PinnedSave } from "./scheduler/store-jobs.js";
export type { StoreRequest } from "./scheduler/store-request.js";
export {
  DEFAULT_SCHEDULER_TIME_LIMITS,
  DEFAULT_WORKER_TIME_LIMITS,
  type SchedulerTimeLimits,
  type TimeLimitOptions,
  type WorkerTimeLimits,
} from "./time-limits.js";
export type { ConnectorLogger } from "./user-callbacks.js";
export {
  DEFAULT_DISK_STAGING_BUFFER_BYTES,
  DEFAULT_DISK_STAGING_USABLE_RATIO,
  type DiskBatches,
  estimateDiskOffloadStagingBytes,
  type LoadBatch,
  splitDiskOffloadLoadBatches,
  usableDiskOffloadBufferBudgetBytes,
} from "./worker/disk-staging.js";
export { makeMooncakeGroupId } from "./worker/group-id.js";
export { MooncakeStoreWorker } from "./worker/mooncake-store-worker.js";
export { classifyReplicaTier, type ReplicaTier, type TierSummary } from "./worker/replica-tier.js";
export { MOONCAKE_NO_AVAILABLE_HANDLE, type SaveFence } from "./worker/save-pipeline.js";
export { resolveStoreTpSize, type SelectedLayout, selectStoreLayout } from "./worker/select-layout.js";
export type { WorkerStore } from "./worker/store-calls.js";
export {
  type WorkerConfig,
  type WorkerGroups,
  type WorkerSettings,
  workerSettings,
} from "./worker/worker-config.js";
export type { MooncakeStoreWorkerOptions, TransferResults, WorkerSnapshot } from "./worker/worker-options.js";
