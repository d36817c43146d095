import { isUtf8 } from "node:buffer";
import type { KeyList } from "../shared/keys.js";

/** How much of a request line the keys of one query may take; 100,000 bytes were seen to work. */
const LINE_BYTES = 32_768;

/** How many keys one query asks for; an answer has some 350 bytes a key. */
const KEYS_A_QUERY = 256;

/** A key as a query carries it. */
export interface CarriedKey {
  /** Position in the call. */
  readonly index: number;
  /** Bytes of the key. */
  readonly bytes: number;
  /** The key as it stands in the answer. */
  readonly text: string;
  /** The key as it stands in the request line. */
  readonly encoded: string;
}

/** The bytes of key `index`. */
export function keyBytes(keys: KeyList, index: number): Uint8Array {
  const { bytes, offsets } = keys.flat;
  return bytes.subarray(offsets[index]!, offsets[index + 1]!);
}

/**
 * Why `/batch_query_keys` can't carry a key; undefined for one that it can. Its parameter is percent-decoded and then
 * split at commas, so that a comma in a key always splits it; a key that is no UTF-8 spoils the JSON of the answer,
 * and with it the answers for all other keys.
 */
export function notForBatchQuery(key: Uint8Array): string | undefined {
  if (key.includes(0x2c))
    return "the master's /batch_query_keys splits its parameter at commas, so no key with a comma can be asked for";
  if (!isUtf8(key)) return "the master's /batch_query_keys can't answer for a key that is not UTF-8";
  return undefined;
}

/**
 * Why `/query_key` can't carry a key; undefined for one that it can. Its parameter is not decoded at all: the bytes
 * between `key=` and the next `&` are the key, and a request line has no space and no control character.
 */
export function notForKeyQuery(key: Uint8Array): string | undefined {
  for (const byte of key)
    if (byte <= 0x20 || byte === 0x7f || byte === 0x26)
      return `the master's /query_key takes its parameter undecoded, so no key with a ${NAMES.get(byte) ?? "control character"} can be asked for`;
  return undefined;
}

const NAMES: ReadonlyMap<number, string> = new Map([
  [0x20, "space"],
  [0x26, '"&"'],
]);

/** A key that is UTF-8 as text, all of it: a decoder would drop U+FEFF at its start. */
export function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString("utf8");
}

/** A key in the parameter of `/batch_query_keys`: what the server would read as something else is percent-encoded. */
export function encodeForBatchQuery(key: Uint8Array): string {
  let text = "";
  for (const byte of key)
    text += PLAIN[byte] ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return text;
}

/** A key in the parameter of `/query_key`: its bytes, one character each, which is how Node writes a request line. */
export function encodeForKeyQuery(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
}

/** Unreserved characters, and the two of which vLLM's keys are full. */
const PLAIN: readonly boolean[] = Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9\-._~@:]/.test(String.fromCharCode(byte)),
);

/** Cuts keys into queries that are neither too long nor too many-keyed. A key too long for a line goes alone. */
export function* batchQueries(keys: Iterable<CarriedKey>): Generator<CarriedKey[]> {
  let query: CarriedKey[] = [];
  let length = 0;
  for (const key of keys) {
    if (query.length > 0 && (query.length === KEYS_A_QUERY || length + key.encoded.length > LINE_BYTES)) {
      yield query;
      query = [];
      length = 0;
    }
    query.push(key);
    length += key.encoded.length + 1;
  }
  if (query.length > 0) yield query;
}
