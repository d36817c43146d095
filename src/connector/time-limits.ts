import { configError } from "../coordinator/checks.js";
import { describe } from "../errors.js";
import { LONGEST_MS } from "../store/shared/deadline.js";

/** How long a worker waits for its store, all in milliseconds. */
export interface WorkerTimeLimits {
  /** A load, from `startLoadKv` on, the wait for earlier loads included. Default: 30,000. */
  readonly loadMs: number;
  /** A store job, from `waitForSave` on, the wait for earlier jobs and for its fence included. Default: 60,000. */
  readonly saveMs: number;
  /**
   * How much longer than that a load or a store job waits for a store that does not keep to the time it was given. A
   * `KvStore` answers once the copies under way have ended, and while they run the blocks are its. Default: 30,000.
   */
  readonly graceMs: number;
  /** A lookup with all its questions. Default: 4,000, less than a `LookupKeyClient` waits. */
  readonly lookupMs: number;
  /** A reset, the wait for store jobs included. Default: 25,000, less than a `LookupKeyServer` waits. */
  readonly resetMs: number;
  /** The registration of one memory region, and the end of it. Default: 30,000. */
  readonly registerMs: number;
  /** `close`, before calls under way are aborted; then as long once more for them to end. Default: 5,000. */
  readonly closeMs: number;
}

/** The limits of a worker that is not told any. */
export const DEFAULT_WORKER_TIME_LIMITS: WorkerTimeLimits = {
  loadMs: 30_000,
  saveMs: 60_000,
  graceMs: 30_000,
  lookupMs: 4_000,
  resetMs: 25_000,
  registerMs: 30_000,
  closeMs: 5_000,
};

/** How long the scheduler side waits for its lookup client, in milliseconds. */
export interface SchedulerTimeLimits {
  /** From the first question about a request to the answer; then the request goes on without a hit. Default: 10,000. */
  readonly lookupMs: number;
  /** A reset. Default: 60,000. */
  readonly resetMs: number;
}

/** The limits of a scheduler side that is not told any. */
export const DEFAULT_SCHEDULER_TIME_LIMITS: SchedulerTimeLimits = { lookupMs: 10_000, resetMs: 60_000 };

/** Some of the limits, in place of their defaults. */
export type TimeLimitOptions<Limits> = { readonly [Name in keyof Limits]?: number | undefined };

/**
 * The limits that somebody has given, and the default for each of the others.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a name that is none of them, and for anything but a whole number of
 * milliseconds from 1 to what a timer takes.
 */
export function checkedTimeLimits<Limits extends object>(
  given: TimeLimitOptions<Limits> | undefined,
  defaults: Limits,
): Limits {
  if (given === undefined) return defaults;
  if (typeof given !== "object" || given === null)
    throw configError(`timeLimits is ${describe(given)}; it must be an object`, { timeLimits: given });
  const limits = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaults, name))
      throw configError(
        `there is no time limit ${describe(name)}; there are ${Object.keys(defaults).join(", ")}`,
        { option: name },
      );
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > LONGEST_MS)
      throw configError(
        `timeLimits.${name} is ${describe(value)}; it is a whole number of 1 to ${LONGEST_MS}`,
        {
          option: name,
          value,
        },
      );
    limits[name as keyof Limits] = value as Limits[keyof Limits];
  }
  return limits;
}
