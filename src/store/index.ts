/**
 * Stores: one interface, one folder a backend. Importing this module loads no addon; opening a store does.
 */
export type { AdminStore } from "./admin/admin-store.js";
export type { AdminSegment } from "./admin/answers.js";
export type { AdminStoreOptions } from "./admin/options.js";
export type { Arena } from "./arena.js";
export { STORE_CODES, type StoreCode, storeCode } from "./codes.js";
export { EmbeddedStore } from "./embedded/embedded-store.js";
export type { EmbeddedStoreOptions } from "./embedded/options.js";
export type { PutSessions } from "./embedded/put-sessions.js";
export type { StoreKeys } from "./keys.js";
export type { KvStore, StoreHealth } from "./kv-store.js";
export type { MooncakeStore } from "./mooncake/mooncake-store.js";
export type { MooncakeStoreOptions } from "./mooncake/options.js";
export type { MooncakeNativeStore } from "./mooncake-native/mooncake-native-store.js";
export type { MooncakeNativeStoreOptions } from "./mooncake-native/options.js";
export { type AdminStoreConfig, openStore, type StoreConfig } from "./open-store.js";
export type { CallOptions, PutOptions, RemoveOptions } from "./put-options.js";
export type { ReplicaDescriptor } from "./replica.js";
export { parseSize } from "./size.js";
export { StoreError, type StoreFailure } from "./store-error.js";
export {
  type FailureReasons,
  ReadResult,
  ReplicaResult,
  type StoreOperation,
  StoreResult,
} from "./store-result.js";
export type { StoreCounters, StoreUsage } from "./store-usage.js";
