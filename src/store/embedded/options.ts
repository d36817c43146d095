import type { NativeStoreOptions } from "../../native/addon.js";
import { optionError, wholeOption, wordOption } from "../shared/option-values.js";
import { parseSize } from "../shared/size.js";

/**
 * Options of the embedded store. Those of mooncake_master have its names and its defaults; a URI writes them the same
 * way, as in `embedded:?capacity=64MiB&defaultKvLeaseTtl=500`.
 */
export interface EmbeddedStoreOptions {
  /** Bytes for values, as a number, a bigint, or text such as `"1GiB"`. Default 1 GiB. */
  readonly capacity?: number | bigint | string | undefined;
  /** Threads that share one large copy. Default: as many as there are processors, at least 2 and at most 4. */
  readonly copyThreads?: number | undefined;
  /** How long a read protects what it found, in milliseconds. Default: 10,000. */
  readonly defaultKvLeaseTtl?: number | undefined;
  /** How long a soft pin lasts, in milliseconds. Default: 1,800,000. */
  readonly defaultKvSoftPinTtl?: number | undefined;
  /** The longest soft pin that a put may ask for, in milliseconds. Default: 86,400,000. */
  readonly maxKvSoftPinTtl?: number | undefined;
  /** Whether soft-pinned objects are evicted when nothing else is left. Default: true. */
  readonly allowEvictSoftPinnedObjects?: boolean | undefined;
  /** Share of the objects that a round of eviction takes at least, from 0 to 1. Default: 0.05. */
  readonly evictionRatio?: number | undefined;
  /** Share of the capacity above which eviction starts by itself, from 0 to 1. Default: 0.9. */
  readonly evictionHighWatermarkRatio?: number | undefined;
  /** Seconds after which another put may take over one that does not end. Default: 30. */
  readonly putStartDiscardTimeoutSec?: number | undefined;
  /** Seconds for which the space of a replaced object stays taken. Default: 600. */
  readonly putStartReleaseTimeoutSec?: number | undefined;
  /** `"manual"`: leases and timeouts follow `advanceClock`, for tests. Default: `"system"`. */
  readonly clock?: "system" | "manual" | undefined;
}

type Name = keyof EmbeddedStoreOptions;
type Read = (value: unknown, name: Name) => NativeStoreOptions;

const READ: Readonly<Record<Name, Read>> = {
  capacity: (value, name) => ({ capacity: parseSize(value, name) }),
  copyThreads: (value, name) => some({ copyThreads: wholeOption(name, value, { most: 64 }) }),
  defaultKvLeaseTtl: (value, name) => some({ leaseTtlMs: milliseconds(value, name) }),
  defaultKvSoftPinTtl: (value, name) => some({ softPinTtlMs: milliseconds(value, name) }),
  maxKvSoftPinTtl: (value, name) => some({ maxSoftPinTtlMs: milliseconds(value, name) }),
  allowEvictSoftPinnedObjects: (value, name) => some({ evictSoftPinned: flag(value, name) }),
  evictionRatio: (value, name) => some({ evictionRatio: ratio(value, name) }),
  evictionHighWatermarkRatio: (value, name) => some({ evictionHighWatermark: ratio(value, name) }),
  putStartDiscardTimeoutSec: (value, name) => some({ discardTimeoutMs: seconds(value, name) }),
  putStartReleaseTimeoutSec: (value, name) => some({ releaseTimeoutMs: seconds(value, name) }),
  clock: (value, name) => some({ manualClock: wordOption(name, value, ["system", "manual"]) === "manual" }),
};

/** The names of the options, as a URI writes them. */
export const EMBEDDED_OPTIONS: readonly Name[] = Object.keys(READ) as Name[];

/**
 * Checks options, whose values may still be the text of a URI.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveEmbeddedOptions(
  options: Readonly<Partial<Record<Name, unknown>>>,
): NativeStoreOptions {
  let resolved: NativeStoreOptions = { capacity: 1n << 30n };
  for (const name of EMBEDDED_OPTIONS) {
    const value = options[name];
    if (value !== undefined) resolved = { ...resolved, ...READ[name](value, name) };
  }
  return resolved;
}

/** Options other than the capacity: merging leaves that alone. */
function some(options: Omit<NativeStoreOptions, "capacity">): NativeStoreOptions {
  return options as NativeStoreOptions;
}

const LONGEST_MS = 2 ** 52;

function milliseconds(value: unknown, name: Name): number {
  return wholeOption(name, value, { least: 0, most: LONGEST_MS, unit: " milliseconds" });
}

function seconds(value: unknown, name: Name): number {
  return 1000 * wholeOption(name, value, { least: 0, most: 2 ** 42, unit: " seconds" });
}

function ratio(value: unknown, name: Name): number {
  const share = typeof value === "string" && /^\d*\.?\d+$/.test(value) ? Number(value) : value;
  if (typeof share !== "number" || !(share >= 0 && share <= 1))
    throw optionError(name, value, "a number from 0 to 1");
  return share;
}

function flag(value: unknown, name: Name): boolean {
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "false") return value === "true";
  throw optionError(name, value, "true or false");
}
