/**
 * Stores: one interface, one folder a backend. Importing this module loads no addon; opening a store does.
 */
export type { AdminExtras } from "./admin/admin-backend.js";
export type { AdminSegment } from "./admin/answers.js";
export type { AdminStoreOptions } from "./admin/options.js";
export type { Arena } from "./arena.js";
export type { BackendHealth, CallRunner, LackedCall, StoreBackend } from "./backend.js";
export { CheckedStore } from "./checked-store.js";
export { type MasterPattern, masterPattern } from "./cluster/master-pattern.js";
export type { EmbeddedExtras } from "./embedded/embedded-backend.js";
export type { EmbeddedStoreOptions } from "./embedded/options.js";
export type { KvStore, StoreHealth } from "./kv-store.js";
export type { MooncakeExtras } from "./mooncake/mooncake-backend.js";
export type { MooncakeStoreOptions } from "./mooncake/options.js";
export type { MooncakeNativeExtras } from "./mooncake-native/mooncake-native-backend.js";
export type { MooncakeNativeStoreOptions } from "./mooncake-native/options.js";
export {
  type AdminStore,
  type AdminStoreConfig,
  type EmbeddedStore,
  type EmbeddedStoreConfig,
  type MeasuredStore,
  type MooncakeNativeStore,
  type MooncakeNativeStoreConfig,
  type MooncakeStore,
  type MooncakeStoreConfig,
  openStore,
  type StoreConfig,
} from "./open-store.js";
export { type RetryOptions, retryKeys } from "./retry.js";
export type { Answer, Codes, ReplicaAnswer, Sizes, ValueAnswer } from "./shared/answers.js";
export type { CallOptions, PutOptions, RemoveOptions } from "./shared/call-options.js";
export { CODE, type CodeName, STORE_CODES, type StoreCode, storeCode } from "./shared/codes.js";
export type { Deadline } from "./shared/deadline.js";
export type { FailureReasons } from "./shared/failure-reasons.js";
export type { KeyList, StoreKeys } from "./shared/keys.js";
export type { Region } from "./shared/region.js";
export type { ReplicaDescriptor } from "./shared/replica.js";
export type { CheckedRows } from "./shared/rows.js";
export { parseSize } from "./shared/size.js";
export type { StoreCounters, StoreUsage } from "./shared/usage.js";
export type { Values } from "./shared/values.js";
export { StoreError, type StoreFailure } from "./store-error.js";
export { ReadResult, ReplicaResult, type StoreOperation, StoreResult } from "./store-result.js";
