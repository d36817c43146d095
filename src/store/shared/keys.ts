import { describe, MooncakeKvError } from "../../errors.js";
import { type FlatKeys, KeyTable } from "../../key/key-table.js";

/** Keys as a call takes them: a table, a list of text, or raw bytes with offsets (for keys that are no UTF-8). */
export type StoreKeys = KeyTable | readonly string[] | FlatKeys;

/** The keys of one call, checked: flat for the store, and as text for whoever reads an error. */
export class KeyList {
  readonly length: number;
  readonly #keys: KeyTable | FlatKeys;

  /** @throws MooncakeKvError `ERR_STORE` for anything that is no list of keys. */
  constructor(keys: StoreKeys) {
    this.#keys = checkedKeys(keys);
    this.length = this.#keys instanceof KeyTable ? this.#keys.length : this.#keys.offsets.length - 1;
  }

  /** All keys, made once and kept. */
  get flat(): FlatKeys {
    return this.#keys instanceof KeyTable ? this.#keys.flat() : this.#keys;
  }

  /** Keys [start, end). Texts are encoded a range at a time, so that a long batch is under way early. */
  range(start: number, end: number): FlatKeys {
    if (this.#keys instanceof KeyTable) return this.#keys.flatRange(start, end);
    return { bytes: this.#keys.bytes, offsets: this.#keys.offsets.subarray(start, end + 1) };
  }

  /** Key `index` as text; bytes that are no UTF-8 show as replacement characters. */
  at(index: number): string {
    const { bytes, offsets } = this.flat;
    return DECODER.decode(bytes.subarray(offsets[index], offsets[index + 1]));
  }
}

/** A byte order mark is part of a key like any other character. */
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** The keys of a call, a range at a time. */
export interface KeySource {
  readonly length: number;
  range(start: number, end: number): FlatKeys;
}

/** A batch as a source. */
export function keySource(keys: FlatKeys): KeySource {
  return { length: keys.offsets.length - 1, range: (start, end) => keyRange(keys, start, end) };
}

/** Keys [start, end) of a batch, which share its memory. */
export function keyRange({ bytes, offsets }: FlatKeys, start: number, end: number): FlatKeys {
  return { bytes, offsets: offsets.subarray(start, end + 1) };
}

/** The keys with the given numbers; a copy, unless they follow each other. */
export function pickKeys(flat: FlatKeys, rows: readonly number[]): FlatKeys {
  const first = rows[0] ?? 0;
  if (rows.every((row, index) => row === first + index)) return keyRange(flat, first, first + rows.length);
  const offsets = new Uint32Array(rows.length + 1);
  for (const [index, row] of rows.entries())
    offsets[index + 1] = offsets[index]! + flat.offsets[row + 1]! - flat.offsets[row]!;
  const bytes = new Uint8Array(offsets[rows.length]!);
  for (const [index, row] of rows.entries())
    bytes.set(flat.bytes.subarray(flat.offsets[row]!, flat.offsets[row + 1]!), offsets[index]!);
  return { bytes, offsets };
}

function checkedKeys(keys: StoreKeys): KeyTable | FlatKeys {
  if (keys instanceof KeyTable) return keys;
  if (Array.isArray(keys)) return checkedTexts(keys);
  if (isFlatKeys(keys)) return checked(keys);
  // A table of another loaded copy of the package is no instance of this one's class.
  if (typeof (keys as { flat?: unknown } | null)?.flat === "function")
    return checked((keys as unknown as KeyTable).flat());
  throw keysError(`${describe(keys)} is no list of keys; a KeyTable, strings, or { bytes, offsets } are`);
}

function checkedTexts(keys: readonly unknown[]): KeyTable {
  for (let i = 0; i < keys.length; i++)
    if (typeof keys[i] !== "string") throw keysError(`key ${i} is ${describe(keys[i])}; a key is a string`);
  return KeyTable.fromTexts(keys as readonly string[]);
}

function isFlatKeys(keys: unknown): keys is FlatKeys {
  const flat = keys as Partial<FlatKeys> | null;
  return flat?.bytes instanceof Uint8Array && flat.offsets instanceof Uint32Array;
}

function checked(keys: FlatKeys): FlatKeys {
  const { bytes, offsets } = keys;
  if (offsets.length === 0) throw keysError("offsets are empty; there is one a key plus the end");
  for (let i = 1; i < offsets.length; i++)
    if (offsets[i]! < offsets[i - 1]!)
      throw keysError(`offset ${i} is ${offsets[i]}, below the one before; offsets never fall`);
  if (offsets.at(-1)! > bytes.length)
    throw keysError(`the last offset is ${offsets.at(-1)}, but there are ${bytes.length} bytes`);
  // The caller may reuse its arrays at once, while an error may name the keys later.
  return { bytes: bytes.slice(), offsets: offsets.slice() };
}

function keysError(message: string): MooncakeKvError {
  return new MooncakeKvError("ERR_STORE", `keys: ${message}`);
}
