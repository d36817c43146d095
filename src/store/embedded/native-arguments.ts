import { describe, MooncakeKvError } from "../../errors.js";
import type { NativePutConfig, NativeStoreStats } from "../../native/addon.js";
import type { PutOptions } from "../put-options.js";
import type { StoreUsage } from "../store-usage.js";

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

/** Runs a native call that fails only when the system has no memory to give. */
export function refusedMemory<T>(operation: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: the system gives no memory: ${error instanceof Error ? error.message : String(error)}`,
      { operation },
      { cause: error },
    );
  }
}

/** A whole number in [0, 2^64), or an `ERR_STORE` that names it. */
export function unsigned(operation: string, what: string, value: unknown): bigint {
  const whole = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof whole !== "bigint" || whole < 0n || whole >= 1n << 64n)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: the ${what} is ${describe(value)}; it is a whole number in [0, 2^64)`,
      { operation, value },
    );
  return whole;
}
