import { MooncakeKvError } from "../errors.js";
import { type StoreCode, storeCode } from "./shared/codes.js";

/** A key that failed, with its code. */
export interface StoreFailure {
  /** Position in the batch. */
  readonly index: number;
  readonly key: string;
  readonly code: number;
  /** Why, in words, where the backend knows more than the code says. */
  readonly reason?: string | undefined;
}

/** How many keys the text of an error names. */
const NAMED = 3;

/**
 * A call on a store that failed for some of its keys. `code` is `ERR_STORE`; `storeCode` is the result code that
 * occurred first, `failures` has every key with its own.
 */
export class StoreError extends MooncakeKvError {
  readonly storeCode: StoreCode;
  readonly failures: readonly StoreFailure[];

  /** `failures` must have at least one element. */
  constructor(operation: string, keyCount: number, failures: readonly StoreFailure[]) {
    const groups = groupByCode(failures);
    const text = [...groups].map(([code, group]) => describeGroup(storeCode(code), group)).join("; ");
    super("ERR_STORE", `${operation}: ${failures.length} of ${plural(keyCount, "key")} failed: ${text}`, {
      operation,
      keyCount,
      failures,
    });
    this.name = "StoreError";
    this.storeCode = storeCode(failures[0]!.code);
    this.failures = failures;
  }
}

function groupByCode(failures: readonly StoreFailure[]): Map<number, StoreFailure[]> {
  const groups = new Map<number, StoreFailure[]>();
  for (const failure of failures) {
    const group = groups.get(failure.code);
    if (group) group.push(failure);
    else groups.set(failure.code, [failure]);
  }
  return groups;
}

function describeGroup({ code, name, meaning }: StoreCode, group: readonly StoreFailure[]): string {
  const keys = group.slice(0, NAMED).map(({ key }) => shorten(JSON.stringify(key)));
  if (group.length > NAMED) keys.push(`and ${group.length - NAMED} more`);
  const reason = group.find((failure) => failure.reason !== undefined)?.reason;
  return `${name} (${code}, ${meaning}) for ${keys.join(", ")}${reason === undefined ? "" : `: ${reason}`}`;
}

/** Long keys differ at both ends: the prefix says whose they are, the end is the hash. */
function shorten(key: string): string {
  return key.length > 120 ? `${key.slice(0, 80)}…${key.slice(-36)}` : key;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
