/**
 * The connector: which blocks of an engine's requests are saved to a store and loaded from it, and when. Importing this
 * module loads neither the addon nor an optional package.
 */
export type { BlockPool } from "./block-pool.js";
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
} from "./connector-stats.js";
export {
  DEFAULT_DISK_STAGING_BUFFER_BYTES,
  DEFAULT_DISK_STAGING_USABLE_RATIO,
  type DiskBatches,
  estimateDiskOffloadStagingBytes,
  type LoadBatch,
  splitDiskOffloadLoadBatches,
  usableDiskOffloadBufferBudgetBytes,
} from "./disk-staging.js";
export { makeMooncakeGroupId } from "./group-id.js";
export type { LookupClient, LookupClientAnswer } from "./lookup-client.js";
export { MooncakeStoreScheduler, type MooncakeStoreSchedulerOptions } from "./mooncake-store-scheduler.js";
export { MooncakeStoreWorker } from "./mooncake-store-worker.js";
export { type LookupSource, PendingLookups, type PendingLookupsOptions } from "./pending-lookups.js";
export {
  loadPromClient,
  MooncakeStorePromMetrics,
  OPERATION_TIME_BUCKETS,
  type PromClient,
  type PromMetricOptions,
  type PromMetricsOptions,
} from "./prom-metrics.js";
export { classifyReplicaTier, type ReplicaTier, type TierSummary } from "./replica-tier.js";
export { MOONCAKE_NO_AVAILABLE_HANDLE, type SaveFence } from "./save-pipeline.js";
export { SchedulerDriver } from "./scheduler-driver.js";
export type { SchedulerEvent, SchedulerEventResults } from "./scheduler-events.js";
export type { LookupCounts } from "./scheduler-lookups.js";
export {
  type BlockIds,
  type CachedRequestData,
  type ConnectorBlockState,
  type NewRequestData,
  NULL_BLOCK_ID,
  type SchedulerOutput,
} from "./scheduler-output.js";
export { resolveStoreTpSize, type SelectedLayout, selectStoreLayout } from "./select-layout.js";
export type { WorkerStore } from "./store-calls.js";
export type { PinnedSave } from "./store-jobs.js";
export type { StoreRequest } from "./store-request.js";
export {
  DEFAULT_SCHEDULER_TIME_LIMITS,
  DEFAULT_WORKER_TIME_LIMITS,
  type SchedulerTimeLimits,
  type TimeLimitOptions,
  type WorkerTimeLimits,
} from "./time-limits.js";
export type { ConnectorLogger } from "./user-callbacks.js";
export {
  type WorkerConfig,
  type WorkerGroups,
  type WorkerSettings,
  workerSettings,
} from "./worker-config.js";
export type { MooncakeStoreWorkerOptions, TransferResults, WorkerSnapshot } from "./worker-options.js";
