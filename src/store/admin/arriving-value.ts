import { constants } from "node:buffer";
import { CODE } from "../shared/codes.js";
import { AdminFailure } from "./failure.js";
import type { Destination } from "./leased-read.js";

/** The largest value: what every release of Node shows as one array of bytes. */
const LARGEST = Math.min(constants.MAX_LENGTH, 2 ** 32);

/** Bytes for which memory is taken when the first one arrives; for the others it is when these are full. */
const FIRST = 16 << 20;

/**
 * The bytes of a value while they arrive. Memory is taken for what comes, not for what was announced: whoever says that
 * a value has a terabyte has to send it.
 */
export class ArrivingValue implements Destination {
  readonly #size: number;
  #memory: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #at = 0;

  /** @throws AdminFailure -600 for a size that no typed array has. */
  constructor(size: bigint) {
    if (size > BigInt(LARGEST)) throw tooLarge(size);
    this.#size = Number(size);
  }

  /** All of it, once it is there. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#memory;
  }

  readonly sink = (bytes: Uint8Array): void => {
    const end = this.#at + bytes.length;
    while (this.#memory.length < end) this.#grow();
    this.#memory.set(bytes, this.#at);
    this.#at = end;
  };

  restart(): void {
    this.#at = 0;
  }

  #grow(): void {
    const before = this.#memory;
    try {
      this.#memory = new Uint8Array(before.length === 0 ? Math.min(this.#size, FIRST) : this.#size);
    } catch {
      // Refused by the system: the same as too large.
      throw tooLarge(BigInt(this.#size));
    }
    this.#memory.set(before);
  }
}

function tooLarge(size: bigint): AdminFailure {
  return new AdminFailure(CODE.INVALID_PARAMS, `a value of ${size} bytes is too large for one typed array`);
}
