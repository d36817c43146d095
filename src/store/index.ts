/**
 * Stores: one interface, one folder a backend. Importing this module loads no addon; opening a store does.
 */
export type { Arena } from "./arena.js";
export { STORE_CODES, type StoreCode, storeCode } from "./codes.js";
export type { EmbeddedStoreOptions } from "./embedded/options.js";
export type { StoreKeys } from "./keys.js";
export type { KvStore, StoreHealth, StoreUsage } from "./kv-store.js";
export { openStore, type StoreConfig } from "./open-store.js";
export { parseSize } from "./size.js";
export { StoreError, type StoreFailure } from "./store-error.js";
export { type StoreOperation, StoreResult } from "./store-result.js";
