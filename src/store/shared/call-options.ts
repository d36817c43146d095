import {
  callOptionsCodec,
  putOptionsCodec,
  removeOptionsCodec,
} from "../../../generated/typescript/vllm-0.33/store-options-codecs.js";
import { describe, isMooncakeKvError, MooncakeKvError } from "../../errors.js";

/**
 * How new objects are kept. Mirrors the fields of Mooncake's `ReplicateConfig` that decide it; every field may be left
 * out.
 */
export interface PutOptions {
  /** Memory replicas wanted. Default: 1. A backend with one segment keeps one; 0 is refused with -600. */
  readonly replicaNum?: number | undefined;
  /** Evicted only when nothing else is left (until the soft pin's time is over). Default: false. */
  readonly withSoftPin?: boolean | undefined;
  /** How long the soft pin lasts, in milliseconds. Default: the store's own. Without `withSoftPin` it is refused with -600. */
  readonly softPinTtlMs?: number | undefined;
  /** Never evicted. Default: false. */
  readonly withHardPin?: boolean | undefined;
  /** Segments to prefer, by name, in order. */
  readonly preferredSegments?: readonly string[] | undefined;
  /** A group for each key of the call, `""` for none. Fixed as long as the object exists: -600 for an upsert to another. */
  readonly groupIds?: readonly string[] | undefined;
}

/** What every call takes. */
export interface CallOptions {
  /** Milliseconds after which the call fails with -901 for every key that has no answer. Default: the store's own. */
  readonly deadlineMs?: number | undefined;
  /**
   * Aborts the call: its promise rejects with the signal's reason as soon as nobody touches the memory of the call any
   * more. A write may have happened or not. A call that has all its answers already gives them.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What removing calls take. */
export interface RemoveOptions extends CallOptions {
  /** Remove even what is under a lease. Default: false. */
  readonly force?: boolean | undefined;
}

/**
 * The options of a call, checked.
 *
 * @throws MooncakeKvError `ERR_STORE` for an option that the call does not have, and for a value that it can't be.
 */
export function checkedCallOptions(operation: string, options: CallOptions = {}): CallOptions {
  return checked(operation, options, callOptionsCodec);
}

/** The same for puts and upserts. */
export function checkedPutOptions(
  operation: string,
  options: PutOptions & CallOptions = {},
): PutOptions & CallOptions {
  return checked(operation, options, putOptionsCodec);
}

/** The same for removing calls. */
export function checkedRemoveOptions(operation: string, options: RemoveOptions = {}): RemoveOptions {
  return checked(operation, options, removeOptionsCodec);
}

/** Checks options against their schema, where they have vLLM's snake_case; an undefined one is one left out. */
function checked<Options extends object>(operation: string, options: Options, codec: OptionsCodec): Options {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw optionError(operation, `${describe(options)} are no options; they are an object`, { options });
  const { signal, ...others } = options as CallOptions;
  if (signal !== undefined && !isSignal(signal))
    throw optionError(operation, `signal is ${describe(signal)}; it is an AbortSignal`, { option: "signal" });
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  if (given.length === 0) return options;
  const known = Object.keys(codec.fromJson({}, { validate: false }) as object);
  const unknown = given.find(([name]) => !known.includes(name));
  if (unknown)
    throw optionError(
      operation,
      `there is no option ${describe(unknown[0])}; known are ${known.join(", ")}, signal`,
      { option: unknown[0] },
    );
  try {
    codec.validate(Object.fromEntries(given.map(([name, value]) => [snakeCase(name), value])));
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    const { path, value, rule } = error.details as { path: string; value: unknown; rule: string };
    const option = camelCase(path.slice("$.".length));
    throw optionError(operation, `${option} is ${describe(value)}; ${rule}`, { option, value });
  }
  return options;
}

/** What is needed of a codec of options. */
interface OptionsCodec {
  validate(json: unknown): unknown;
  fromJson(json: unknown, options: { readonly validate: false }): unknown;
}

/** By shape: the signal may come from another realm, or be one of a library's own. */
function isSignal(value: unknown): value is AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  return (
    typeof signal === "object" &&
    typeof signal?.aborted === "boolean" &&
    typeof signal.addEventListener === "function" &&
    typeof signal.removeEventListener === "function"
  );
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function optionError(operation: string, message: string, details: Record<string, unknown>): MooncakeKvError {
  return new MooncakeKvError("ERR_STORE", `${operation}: ${message}`, { operation, ...details });
}
