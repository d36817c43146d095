import { describe, MooncakeKvError } from "../errors.js";
import { type FlatKeys, KeyTable } from "../key/key-table.js";

/** Keys as a call takes them: a table, a list of text, or raw bytes with offsets (for keys that are no UTF-8). */
export type StoreKeys = KeyTable | readonly string[] | FlatKeys;

/** The keys of one call, checked: flat for the store, and as text for whoever reads an error. */
export class KeyList {
  readonly length: number;
  readonly flat: FlatKeys;

  /** @throws MooncakeKvError `ERR_STORE` for anything that is no list of keys. */
  constructor(keys: StoreKeys) {
    this.flat = flatten(keys);
    this.length = this.flat.offsets.length - 1;
  }

  /** Key `index` as text; bytes that are no UTF-8 show as replacement characters. */
  at(index: number): string {
    const { bytes, offsets } = this.flat;
    return new TextDecoder().decode(bytes.subarray(offsets[index], offsets[index + 1]));
  }
}

function flatten(keys: StoreKeys): FlatKeys {
  if (keys instanceof KeyTable) return keys.flat();
  if (Array.isArray(keys)) return flattenTexts(keys);
  if (isFlatKeys(keys)) return checked(keys);
  // A table of another loaded copy of the package is no instance of this one's class.
  if (typeof (keys as { flat?: unknown } | null)?.flat === "function")
    return checked((keys as unknown as KeyTable).flat());
  throw keysError(`${describe(keys)} is no list of keys; a KeyTable, strings, or { bytes, offsets } are`);
}

function flattenTexts(keys: readonly unknown[]): FlatKeys {
  const odd = keys.findIndex((key) => typeof key !== "string");
  if (odd >= 0) throw keysError(`key ${odd} is ${describe(keys[odd])}; a key is a string`);
  return KeyTable.fromTexts(keys as readonly string[]).flat();
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
