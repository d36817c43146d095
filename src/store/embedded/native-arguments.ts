import type { NativePutConfig, NativeStoreStats } from "../../native/addon.js";
import type { PutOptions } from "../shared/call-options.js";
import type { StoreUsage } from "../shared/usage.js";

/** Put options, checked before, as the addon takes them. */
export function nativePutConfig(options: PutOptions): NativePutConfig {
  const { replicaNum, withHardPin, withSoftPin, softPinTtlMs, groupIds } = options;
  return {
    ...(replicaNum !== undefined && { replicaNum }),
    ...(withHardPin !== undefined && { hardPin: withHardPin }),
    ...(withSoftPin !== undefined && { softPin: withSoftPin }),
    ...(softPinTtlMs !== undefined && { softPinTtlMs }),
    ...(groupIds !== undefined && { groups: groupIds }),
  };
}

/** The counters of the addon as `KvStore.usage` gives them. */
export function embeddedUsage(stats: NativeStoreStats): StoreUsage {
  const { capacity, used, occupied, keys, hits, misses, stored, removed, evicted, evictedBytes, refusals } =
    stats;
  return {
    capacity,
    used,
    occupied,
    keys,
    counters: { hits, misses, stored, removed, evicted, evictedBytes, refusals },
  };
}
