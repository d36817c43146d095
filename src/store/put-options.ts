import { describe, MooncakeKvError } from "../errors.js";

/**
 * How new objects are kept. Mirrors the fields of Mooncake's `ReplicateConfig` that decide it; every field may be left
 * out.
 */
export interface PutOptions {
  /** Memory replicas wanted. Default: 1. A backend with one segment keeps one; 0 is refused with -600. */
  readonly replicaNum?: number;
  /** Evicted only when nothing else is left (until the soft pin's time is over). Default: false. */
  readonly withSoftPin?: boolean;
  /** How long the soft pin lasts, in milliseconds. Default: the store's own. Without `withSoftPin` it is refused with -600. */
  readonly softPinTtlMs?: number;
  /** Never evicted. Default: false. */
  readonly withHardPin?: boolean;
  /** Segments to prefer, by name, in order. */
  readonly preferredSegments?: readonly string[];
  /** A group for each key of the call, `""` for none. Fixed as long as the object exists: -600 for an upsert to another. */
  readonly groupIds?: readonly string[];
}

/** What every call takes. */
export interface CallOptions {
  /** Milliseconds after which the call fails with -901 for every key that has no answer. Default: the store's own. */
  readonly deadlineMs?: number;
}

/** What removing calls take. */
export interface RemoveOptions extends CallOptions {
  /** Remove even what is under a lease. Default: false. */
  readonly force?: boolean;
}

type Check = (value: unknown) => string | undefined;

const whole =
  (least: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= least
      ? undefined
      : `a whole number of at least ${least}`;
const flag: Check = (value) => (typeof value === "boolean" ? undefined : "true or false");
const texts: Check = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? undefined : "a list of strings";

const CALL: Readonly<Record<string, Check>> = { deadlineMs: whole(0) };
const PUT: Readonly<Record<string, Check>> = {
  ...CALL,
  replicaNum: whole(0),
  withSoftPin: flag,
  softPinTtlMs: whole(1),
  withHardPin: flag,
  preferredSegments: texts,
  groupIds: texts,
};
const REMOVE: Readonly<Record<string, Check>> = { ...CALL, force: flag };

/**
 * The options of a call, checked.
 *
 * @throws MooncakeKvError `ERR_STORE` for an option that the call does not have, and for a value that it can't be.
 */
export function checkedCallOptions(operation: string, options: CallOptions = {}): CallOptions {
  return checked(operation, options, CALL);
}

/** The same for puts and upserts. */
export function checkedPutOptions(
  operation: string,
  options: PutOptions & CallOptions = {},
): PutOptions & CallOptions {
  return checked(operation, options, PUT);
}

/** The same for removing calls. */
export function checkedRemoveOptions(operation: string, options: RemoveOptions = {}): RemoveOptions {
  return checked(operation, options, REMOVE);
}

function checked<Options extends object>(
  operation: string,
  options: Options,
  checks: Readonly<Record<string, Check>>,
): Options {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw optionError(operation, `${describe(options)} are no options; they are an object`, { options });
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check)
      throw optionError(
        operation,
        `there is no option ${describe(name)}; known are ${Object.keys(checks).join(", ")}`,
        { option: name },
      );
    const expected = check(value);
    if (expected)
      throw optionError(operation, `${name} is ${describe(value)}; it is ${expected}`, {
        option: name,
        value,
      });
  }
  return options;
}

function optionError(operation: string, message: string, details: Record<string, unknown>): MooncakeKvError {
  return new MooncakeKvError("ERR_STORE", `${operation}: ${message}`, { operation, ...details });
}
