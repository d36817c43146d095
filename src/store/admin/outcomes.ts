import { CODE } from "../shared/codes.js";
import type { AdminFailure } from "./failure.js";

/** What became of every key of a call: one of Mooncake's numbers, and for some failures a reason. */
export class Outcomes {
  readonly reasons: Map<number, string> = new Map();
  readonly #codes: BigInt64Array;

  /** Every key starts as failed inside (-1). */
  constructor(keys: number) {
    this.#codes = new BigInt64Array(keys).fill(BigInt(CODE.INTERNAL_ERROR));
  }

  succeed(index: number, value: bigint): void {
    this.#codes[index] = value;
  }

  fail(index: number, code: number, reason?: string): void {
    this.#codes[index] = BigInt(code);
    if (reason !== undefined) this.reasons.set(index, reason);
  }

  failWith(index: number, failure: AdminFailure): void {
    this.fail(index, failure.storeCode, failure.message);
  }

  /** All results, as 64-bit numbers. */
  sizes(): BigInt64Array {
    return this.#codes;
  }

  /** All results, as 32-bit numbers. */
  numbers(): Int32Array {
    return Int32Array.from(this.#codes, Number);
  }
}
