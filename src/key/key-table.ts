import { toHex, utf8 } from "#platform";
import { MooncakeKvError } from "../errors.js";
import type { BlobBlockHashes } from "../hash/blob-block-hashes.js";
import { text } from "./key-metadata.js";

/** All keys of a table as one buffer: key i is the UTF-8 text in `bytes[offsets[i], offsets[i + 1])`. */
export interface FlatKeys {
  /** All keys as UTF-8, back to back. */
  readonly bytes: Uint8Array;
  /** One offset a key, plus the end. */
  readonly offsets: Uint32Array;
}

/** Two ASCII digits of each byte: the first in the low half, the second in the high half. */
const HEX: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  const text = byte.toString(16).padStart(2, "0");
  return text.charCodeAt(0) | (text.charCodeAt(1) << 8);
});

/**
 * The keys of a batch, kept as what they are made of: a few prefixes and many digests. A key's text exists only when
 * asked for; `flat()` writes all of them into one buffer, which is what crosses the native boundary.
 */
export class KeyTable {
  /** Number of keys. */
  readonly length: number;
  readonly #source: Source;
  #flat: FlatKeys | undefined;

  private constructor(length: number, source: Source) {
    this.length = length;
    this.#source = source;
  }

  /** One key a hash: `prefix@hex`. `prefix` is what `PoolKey.buildPrefix` returns. */
  static fromHashes(prefix: string, hashes: BlobBlockHashes): KeyTable {
    return KeyTable.fromPrefixes([prefix], hashes);
  }

  /**
   * One key for each hash and each prefix, prefixes innermost: the order in which a rank that holds several shards of
   * a block lists them.
   *
   * @throws MooncakeKvError `ERR_KEY` for a prefix that UTF-8 can't carry.
   */
  static fromPrefixes(prefixes: readonly string[], hashes: BlobBlockHashes): KeyTable {
    for (const [index, prefix] of prefixes.entries()) text(`prefix ${index}`, prefix);
    return new KeyTable(prefixes.length * hashes.length, {
      kind: "hashes",
      prefixes: [...prefixes],
      hashes,
    });
  }

  /** Keys that are given as text. @throws MooncakeKvError `ERR_KEY` for one that UTF-8 can't carry. */
  static fromTexts(keys: readonly string[]): KeyTable {
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index]!;
      // The name of a key is for the error; making it for every key would cost more than the check.
      if (typeof key !== "string" || !key.isWellFormed()) text(`key ${index}`, key);
    }
    return new KeyTable(keys.length, { kind: "texts", keys: [...keys] });
  }

  /** Key `index` as text; undefined outside the table. */
  at(index: number): string | undefined {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) return undefined;
    const source = this.#source;
    if (source.kind === "texts") return source.keys[index];
    const count = source.prefixes.length;
    const hash = source.hashes.at(Math.floor(index / count))!;
    return `${source.prefixes[index % count]}@${toHex(hash)}`;
  }

  /**
   * All keys as UTF-8, made once and kept.
   *
   * @throws MooncakeKvError `ERR_KEY` when they need 4 GiB or more.
   */
  flat(): FlatKeys {
    this.#flat ??= this.#source.kind === "texts" ? flatTexts(this.#source.keys) : flatHashes(this.#source);
    return this.#flat;
  }

  /**
   * Keys [start, end) as UTF-8; the offsets count from the start of `bytes`, where the first key need not be. Texts are
   * encoded for this range alone, unless `flat` has made all of them.
   */
  flatRange(start: number, end: number): FlatKeys {
    const source = this.#source;
    if (this.#flat === undefined && source.kind === "texts") return flatTexts(source.keys.slice(start, end));
    const { bytes, offsets } = this.flat();
    return { bytes, offsets: offsets.subarray(start, end + 1) };
  }

  /** All keys as an array of text. */
  toArray(): string[] {
    return [...this];
  }

  *[Symbol.iterator](): Iterator<string> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }
}

type Source =
  | { readonly kind: "texts"; readonly keys: readonly string[] }
  | { readonly kind: "hashes"; readonly prefixes: readonly string[]; readonly hashes: BlobBlockHashes };

/** Texts that are encoded together: a call each would cost several times more. */
const TEXTS_AT_ONCE = 100;

const ENCODER = new TextEncoder();

function flatTexts(keys: readonly string[]): FlatKeys {
  const offsets = new Uint32Array(keys.length + 1);
  let characters = 0;
  for (const key of keys) characters += key.length;
  // Room for ASCII; other texts get theirs when they turn up.
  let bytes = new Uint8Array(checkedSize(characters));
  let at = 0;
  for (let start = 0; start < keys.length; start += TEXTS_AT_ONCE) {
    const end = Math.min(keys.length, start + TEXTS_AT_ONCE);
    const joined = keys.slice(start, end).join("");
    characters -= joined.length;
    let { read, written } = ENCODER.encodeInto(joined, bytes.subarray(at));
    if (read < joined.length || at + written + characters > bytes.length) {
      bytes = grown(bytes, at, checkedSize(at + utf8(joined).length + characters));
      ({ read, written } = ENCODER.encodeInto(joined, bytes.subarray(at)));
    }
    for (let index = start; index < end; index++) {
      const key = keys[index]!;
      at += written === joined.length ? key.length : utf8(key).length;
      offsets[index + 1] = at;
    }
  }
  return { bytes: bytes.subarray(0, checkedSize(at)), offsets };
}

/** The first `used` bytes in a larger memory, with room for what else may turn up. */
function grown(bytes: Uint8Array, used: number, needed: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.min(2 * needed, 0xffff_ffff));
  larger.set(bytes.subarray(0, used));
  return larger;
}

function flatHashes({ prefixes, hashes }: Extract<Source, { kind: "hashes" }>): FlatKeys {
  const heads = prefixes.map((prefix) => utf8(`${prefix}@`));
  const digits = hashes.hashLength * 2;
  const rowBytes = heads.reduce((sum, head) => sum + head.length + digits, 0);
  const bytes = new Uint8Array(checkedSize(rowBytes * hashes.length));
  const offsets = new Uint32Array(prefixes.length * hashes.length + 1);
  const { blob, hashLength } = hashes;
  let at = 0;
  let key = 0;
  for (let row = 0; row < hashes.length; row++) {
    for (const head of heads) {
      bytes.set(head, at);
      at += head.length;
      for (let i = row * hashLength; i < (row + 1) * hashLength; i++) {
        const pair = HEX[blob[i]!]!;
        bytes[at++] = pair & 0xff;
        bytes[at++] = pair >> 8;
      }
      offsets[++key] = at;
    }
  }
  return { bytes, offsets };
}

function checkedSize(size: number): number {
  if (size > 0xffff_ffff)
    throw new MooncakeKvError(
      "ERR_KEY",
      `the keys of one table need ${size} bytes; 2^32 - 1 is the limit, split it`,
      {
        size,
      },
    );
  return size;
}
