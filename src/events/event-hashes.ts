import { describe } from "../errors.js";
import type { BlobBlockHashes } from "../hash/blob-block-hashes.js";
import { type ExternalBlockHash, toExternalBlockHash } from "../hash/external-block-hash.js";
import { eventError } from "./errors.js";

/** Whether the low half of a 64-bit element comes first in memory. */
export const LITTLE_ENDIAN: boolean = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/**
 * The one identity of a block hash, whatever form it came in: its last 8 bytes as an unsigned integer. Engines publish
 * whole hashes, unsigned or signed integers; all three forms of one hash have one id.
 */
export function blockHashId(hash: ExternalBlockHash): bigint {
  return typeof hash === "bigint" ? BigInt.asUintN(64, hash) : (toExternalBlockHash(hash) as bigint);
}

/** The block hashes of an event, flat: the id of each, and its bytes where the engine published them. */
export class EventHashes {
  readonly length: number;
  /** Two 32-bit words a hash: the low half of its id, then the high half. */
  readonly words: Uint32Array;
  /** The whole hash where it is known; undefined when none is. */
  readonly full: readonly (Uint8Array | undefined)[] | undefined;

  constructor(words: Uint32Array, full?: readonly (Uint8Array | undefined)[]) {
    this.length = words.length / 2;
    this.words = words;
    this.full = full;
  }

  /**
   * Hashes in any mixture of forms.
   *
   * @throws MooncakeKvError `ERR_SCHEMA` for what is neither bytes nor an integer of 64 bits.
   */
  static from(hashes: Iterable<ExternalBlockHash>): EventHashes {
    const list = [...hashes];
    const words = new Uint32Array(list.length * 2);
    const full: (Uint8Array | undefined)[] = new Array(list.length);
    for (const [index, hash] of list.entries()) {
      if (hash instanceof Uint8Array) full[index] = hash;
      else if (typeof hash !== "bigint" || hash < -(1n << 63n) || hash >= 1n << 64n)
        throw eventError(
          `block hash ${index} is ${describe(hash)}; it must be bytes, or a bigint of 64 bits`,
          { index, hash },
        );
      const id = blockHashId(hash);
      words[2 * index] = Number(id & 0xffff_ffffn);
      words[2 * index + 1] = Number(id >> 32n);
    }
    return new EventHashes(words, full.some(Boolean) ? full : undefined);
  }

  /** The ids, as 64-bit integers. */
  get ids(): BigUint64Array {
    if (LITTLE_ENDIAN && this.words.byteOffset % 8 === 0)
      return new BigUint64Array(this.words.buffer, this.words.byteOffset, this.length);
    return BigUint64Array.from({ length: this.length }, (_, index) => this.#id(index));
  }

  /** Hash `index` as it was published: bytes where they are known, else the id; undefined outside the list. */
  at(index: number): ExternalBlockHash | undefined {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) return undefined;
    return this.full?.[index] ?? this.#id(index);
  }

  *[Symbol.iterator](): Iterator<ExternalBlockHash> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }

  #id(index: number): bigint {
    return (BigInt(this.words[2 * index + 1]!) << 32n) | BigInt(this.words[2 * index]!);
  }
}

/** Block hashes that a prompt may come with: as they were hashed, as events carry them, or their ids alone. */
export type PromptHashes = BlobBlockHashes | EventHashes | BigUint64Array;

/** The ids of hashes as pairs of 32-bit words, low half first. */
export function idWords(hashes: PromptHashes): Uint32Array {
  if (hashes instanceof EventHashes) return hashes.words;
  if (hashes instanceof BigUint64Array) return EventHashes.from(hashes).words;
  const { blob, hashLength, length } = hashes;
  const words = new Uint32Array(2 * length);
  for (let index = 0; index < length; index++)
    writeIdWords(words, index, blob, index * hashLength, hashLength);
  return words;
}

/** Writes the id of a hash that lies at `start` of `bytes`. */
export function writeIdWords(
  words: Uint32Array,
  index: number,
  bytes: Uint8Array,
  start: number,
  length: number,
): void {
  let high = 0;
  let low = 0;
  const end = start + length;
  const middle = Math.max(start, end - 4);
  for (let at = Math.max(start, end - 8); at < middle; at++) high = (high << 8) | bytes[at]!;
  for (let at = middle; at < end; at++) low = (low << 8) | bytes[at]!;
  words[2 * index] = low;
  words[2 * index + 1] = high;
}
