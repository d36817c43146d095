import type { FailureReasons } from "./failure-reasons.js";
import type { ReplicaDescriptor } from "./replica.js";

/** One result a key, in the order of the keys, and for some of those that failed a reason. */
export interface Answer<Numbers extends Int32Array | BigInt64Array> {
  readonly codes: Numbers;
  readonly reasons?: FailureReasons | undefined;
}

/** Results of calls that give a code a key. */
export type Codes = Answer<Int32Array>;

/** Results of calls that give a number of bytes a key, or a code. */
export type Sizes = Answer<BigInt64Array>;

/** What `KvStore.get` gives: a value where the code is 0 or more. */
export interface ValueAnswer extends Sizes {
  readonly values: readonly (Uint8Array | undefined)[];
}

/** What `KvStore.replicas` gives. */
export interface ReplicaAnswer extends Codes {
  readonly replicas: readonly (readonly ReplicaDescriptor[])[];
}

/** The answer of a call that fails for every key alike; the reason stands with the first. */
export function allFailed(keys: number, code: number, reason?: string): Codes {
  const codes = new Int32Array(keys).fill(code);
  return reason === undefined || keys === 0 ? { codes } : { codes, reasons: new Map([[0, reason]]) };
}
