import { describe, MooncakeKvError } from "../../errors.js";
import type { NativeStoreOptions } from "../../native/addon.js";
import { parseSize } from "../size.js";

/**
 * Options of the embedded store. Those of mooncake_master have its names and its defaults; a URI writes them the same
 * way, as in `embedded:?capacity=64MiB&defaultKvLeaseTtl=500`.
 */
export interface EmbeddedStoreOptions {
  /** Bytes for values, as a number, a bigint, or text such as `"1GiB"`. Default 1 GiB. */
  readonly capacity?: number | bigint | string;
  /** Threads that share one large copy. Default: as many as there are processors, at least 2 and at most 4. */
  readonly copyThreads?: number;
  /** How long a read protects what it found, in milliseconds. Default: 10,000. */
  readonly defaultKvLeaseTtl?: number;
  /** How long a soft pin lasts, in milliseconds. Default: 1,800,000. */
  readonly defaultKvSoftPinTtl?: number;
  /** The longest soft pin that a put may ask for, in milliseconds. Default: 86,400,000. */
  readonly maxKvSoftPinTtl?: number;
  /** Whether soft-pinned objects are evicted when nothing else is left. Default: true. */
  readonly allowEvictSoftPinnedObjects?: boolean;
  /** Share of the objects that a round of eviction takes at least, from 0 to 1. Default: 0.05. */
  readonly evictionRatio?: number;
  /** Share of the capacity above which eviction starts by itself, from 0 to 1. Default: 0.9. */
  readonly evictionHighWatermarkRatio?: number;
  /** Seconds after which another put may take over one that does not end. Default: 30. */
  readonly putStartDiscardTimeoutSec?: number;
  /** Seconds for which the space of a replaced object stays taken. Default: 600. */
  readonly putStartReleaseTimeoutSec?: number;
  /** `"manual"`: leases and timeouts follow `EmbeddedStore.advanceClock`, for tests. Default: `"system"`. */
  readonly clock?: "system" | "manual";
}

type Name = keyof EmbeddedStoreOptions;
type Read = (value: unknown, name: Name) => NativeStoreOptions;

const READ: Readonly<Record<Name, Read>> = {
  capacity: (value, name) => ({ capacity: parseSize(value, name) }),
  copyThreads: (value, name) => some({ copyThreads: number(value, name, 1, 64) }),
  defaultKvLeaseTtl: (value, name) => some({ leaseTtlMs: milliseconds(value, name) }),
  defaultKvSoftPinTtl: (value, name) => some({ softPinTtlMs: milliseconds(value, name) }),
  maxKvSoftPinTtl: (value, name) => some({ maxSoftPinTtlMs: milliseconds(value, name) }),
  allowEvictSoftPinnedObjects: (value, name) => some({ evictSoftPinned: flag(value, name) }),
  evictionRatio: (value, name) => some({ evictionRatio: ratio(value, name) }),
  evictionHighWatermarkRatio: (value, name) => some({ evictionHighWatermark: ratio(value, name) }),
  putStartDiscardTimeoutSec: (value, name) => some({ discardTimeoutMs: seconds(value, name) }),
  putStartReleaseTimeoutSec: (value, name) => some({ releaseTimeoutMs: seconds(value, name) }),
  clock: (value) => some({ manualClock: clock(value) }),
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
  return number(value, name, 0, LONGEST_MS, " milliseconds");
}

function seconds(value: unknown, name: Name): number {
  return 1000 * number(value, name, 0, 2 ** 42, " seconds");
}

function number(value: unknown, name: Name, least: number, most: number, unit = ""): number {
  const count = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof count !== "number" || !Number.isInteger(count) || count < least || count > most)
    throw optionError(name, value, `a whole number from ${least} to ${most}${unit}`);
  return count;
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

function clock(value: unknown): boolean {
  if (value === "system" || value === "manual") return value === "manual";
  throw optionError("clock", value, '"system" or "manual"');
}

function optionError(option: Name, value: unknown, expected: string): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", `${option} is ${describe(value)}; it is ${expected}`, {
    option,
    value,
  });
}
