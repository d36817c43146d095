import { toHex } from "#platform";
import { describe } from "../errors.js";
import { hashError } from "./hash-error.js";

declare const blockHashBrand: unique symbol;

/** The hash of one token block: 32 bytes for the sha256 algorithms, 16 for the xxhash ones. vLLM's `BlockHash`. */
export type BlockHash = Uint8Array & { readonly [blockHashBrand]?: "BlockHash" | undefined };

/** Any indexable list of block hashes. Vectors, blobs and coarser views of them all look like this. */
export interface BlockHashSequence {
  readonly length: number;
  /** Hash `index`; a negative index counts from the end; undefined outside the list. */
  at(index: number): BlockHash | undefined;
}

/**
 * Block hashes that lie back to back in one buffer, seen as a list; no hash is copied before it is asked for.
 * Mirrors vLLM's `BlobBlockHashes`. A trailing piece shorter than one hash is ignored.
 */
export class BlobBlockHashes implements BlockHashSequence {
  /** The buffer itself: `length * hashLength` bytes, plus what was too short for a hash. */
  readonly blob: Uint8Array;
  /** Bytes of one hash. 0 means an empty list. */
  readonly hashLength: number;
  readonly length: number;

  /** @throws MooncakeKvError `ERR_HASH` when `hashLength` is not a whole number of 0 or more. */
  constructor(blob: Uint8Array, hashLength: number) {
    if (!Number.isInteger(hashLength) || hashLength < 0)
      throw hashError(`hash length ${describe(hashLength)} is not a whole number of 0 or more`, {
        hashLength,
      });
    this.blob = blob;
    this.hashLength = hashLength;
    this.length = hashLength === 0 ? 0 : Math.floor(blob.length / hashLength);
  }

  /**
   * Joins hashes of one length into a blob.
   *
   * @throws MooncakeKvError `ERR_HASH` when two lengths differ.
   */
  static from(hashes: Iterable<Uint8Array>): BlobBlockHashes {
    const list = [...hashes];
    const hashLength = list[0]?.length ?? 0;
    const odd = list.findIndex((hash) => hash.length !== hashLength);
    if (odd >= 0)
      throw hashError(
        `block hash ${odd} has ${list[odd]!.length} bytes, the first one ${hashLength}; a blob needs one length`,
        { index: odd, length: list[odd]!.length, hashLength },
      );
    return BlobBlockHashes.#joined(list, hashLength);
  }

  static #joined(hashes: readonly Uint8Array[], hashLength: number): BlobBlockHashes {
    const blob = new Uint8Array(hashes.length * hashLength);
    for (const [index, hash] of hashes.entries()) blob.set(hash, index * hashLength);
    return new BlobBlockHashes(blob, hashLength);
  }

  /** A view of hash `index` (negative counts from the end), or undefined outside the list. */
  at(index: number): BlockHash | undefined {
    const position = index < 0 ? index + this.length : index;
    if (!Number.isInteger(position) || position < 0 || position >= this.length) return undefined;
    return this.blob.subarray(position * this.hashLength, (position + 1) * this.hashLength);
  }

  /**
   * The hashes of Python's `[start:end:step]`, negative bounds and steps included. A view on the same buffer where
   * `step` is 1.
   *
   * @throws MooncakeKvError `ERR_HASH` when `step` is 0.
   */
  slice(start?: number, end?: number, step: number = 1): BlobBlockHashes {
    const range = sliceRange(this.length, start, end, step);
    if (step !== 1)
      return BlobBlockHashes.#joined(
        range.map((index) => this.at(index)!),
        this.hashLength,
      );
    const from = range[0] ?? 0;
    return new BlobBlockHashes(
      this.blob.subarray(from * this.hashLength, (from + range.length) * this.hashLength),
      this.hashLength,
    );
  }

  /** Position of the first hash equal to `hash`, or -1. */
  indexOf(hash: Uint8Array): number {
    for (let index = 0; index < this.length; index++) if (equalBytes(this.at(index)!, hash)) return index;
    return -1;
  }

  /** All hashes as lower-case hex. */
  toHex(): string[] {
    return Array.from(this, toHex);
  }

  *[Symbol.iterator](): Iterator<BlockHash> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}

/** The positions that Python's `[start:end:step]` picks from a list of `length`, as `range(*slice.indices())`. */
export function sliceRange(length: number, start?: number, end?: number, step: number = 1): number[] {
  if (!Number.isInteger(step) || step === 0)
    throw hashError(`slice step ${describe(step)} is not a whole number other than 0`, {
      step,
    });
  const [lowest, highest] = step > 0 ? [0, length] : [-1, length - 1];
  const bound = (value: number | undefined, absent: number) => {
    if (value === undefined) return absent;
    const position = Math.trunc(value) || 0;
    return Math.min(Math.max(position < 0 ? position + length : position, lowest), highest);
  };
  const from = bound(start, step > 0 ? lowest : highest);
  const to = bound(end, step > 0 ? highest : lowest);
  const positions: number[] = [];
  for (let index = from; step > 0 ? index < to : index > to; index += step) positions.push(index);
  return positions;
}
