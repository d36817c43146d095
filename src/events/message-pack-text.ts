import { MessagePackFault } from "./message-pack-fault.js";

/** Texts of fewer bytes are remembered: most are names of media and kinds, the same in every event. */
const LONGEST_KNOWN = 32;

/** A text, and how it lies in UTF-8. */
interface KnownText {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** The last text of each length, first and last byte. There are few such places, so that this stays small. */
const known: (KnownText | undefined)[] = new Array(2048);

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The text that lies in UTF-8 at a place.
 *
 * @throws MessagePackFault for what is no UTF-8.
 */
export function readText(bytes: Uint8Array, start: number, length: number): string {
  if (length === 0) return "";
  if (length >= LONGEST_KNOWN) return decoded(bytes, start, length);
  const place = (length * 67 + bytes[start]! * 7 + bytes[start + length - 1]!) & (known.length - 1);
  const last = known[place];
  if (last !== undefined && last.bytes.length === length) {
    let at = 0;
    while (at < length && last.bytes[at] === bytes[start + at]) at++;
    if (at === length) return last.text;
  }
  const text = decoded(bytes, start, length);
  known[place] = { bytes: bytes.slice(start, start + length), text };
  return text;
}

function decoded(bytes: Uint8Array, start: number, length: number): string {
  try {
    return utf8.decode(bytes.subarray(start, start + length));
  } catch {
    throw new MessagePackFault(`the text at byte ${start} is not UTF-8`);
  }
}
