import { BlobBlockHashes } from "../hash/blob-block-hashes.js";

/**
 * Block hashes of one question at most: 16.7 million tokens in blocks of 16. A search needs some bytes a hash and group,
 * so that without a limit one message of 1-byte hashes would need gigabytes.
 */
export const MAX_LOOKUP_HASHES: number = 2 ** 20;

/** Whether bytes begin as a MessagePack list does. */
export function startsList(bytes: Uint8Array | undefined): boolean {
  const head = bytes?.[0];
  return head !== undefined && ((head >= 0x90 && head <= 0x9f) || head === 0xdc || head === 0xdd);
}

/**
 * Reads a MessagePack list of hex hashes, the older form of a question: in one walk, into one buffer, half the size of the
 * message at most and only made once the announced hashes can be there. All hashes have the length of the first one.
 *
 * @returns the hashes, or what is wrong with the list. Never throws.
 */
export function unpackHashes(bytes: Uint8Array): BlobBlockHashes | string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = bytes[0] === 0xdc ? 3 : bytes[0] === 0xdd ? 5 : 1;
  if (at > bytes.length) return "the list of hashes ends in its first bytes";
  const count = at === 3 ? view.getUint16(1) : at === 5 ? view.getUint32(1) : bytes[0]! & 0x0f;
  if (count > MAX_LOOKUP_HASHES)
    return `the list has ${count} hashes, and a question at most ${MAX_LOOKUP_HASHES}`;
  let blob = new Uint8Array(0);
  let digits = 0;
  let to = 0;
  for (let index = 0; index < count; index++) {
    const body = textStart(bytes, at);
    if (body === undefined) return `hash ${index} is no text`;
    const length = textLength(view, at, body);
    if (index === 0) {
      digits = length;
      if (digits === 0 || digits % 2 !== 0)
        return `hash 0 has ${digits} hex digits; a hash has 2 for each of its bytes`;
      if (count * (1 + digits) > bytes.length - at)
        return `${count} hashes of ${digits} hex digits are announced, more than ${bytes.length} bytes hold`;
      blob = new Uint8Array((count * digits) / 2);
    }
    if (length !== digits) return `hash ${index} has ${length} hex digits, the first one ${digits}`;
    at = body + digits;
    if (at > bytes.length) return `hash ${index} ends in the middle`;
    const from = to;
    to += digits >>> 1;
    if (!unhex(bytes, body, blob, from, to)) return `hash ${index} is no hex`;
  }
  if (at !== bytes.length) return `${bytes.length - at} bytes follow the list of hashes`;
  return new BlobBlockHashes(blob, digits / 2);
}

/** Where the characters of the text at `at` begin; undefined where there is none. */
function textStart(bytes: Uint8Array, at: number): number | undefined {
  const head = bytes[at];
  if (head === undefined) return undefined;
  const start = head >= 0xa0 && head <= 0xbf ? at + 1 : at + 1 + (LENGTH_BYTES[head] ?? bytes.length);
  return start <= bytes.length ? start : undefined;
}

const LENGTH_BYTES: Readonly<Record<number, number>> = { 217: 1, 218: 2, 219: 4 };

function textLength(view: DataView, at: number, start: number): number {
  switch (start - at) {
    case 1:
      return view.getUint8(at) & 0x1f;
    case 2:
      return view.getUint8(at + 1);
    case 3:
      return view.getUint16(at + 1);
    default:
      return view.getUint32(at + 1);
  }
}

/** The value of each hex digit, -1 for other characters. */
const DIGITS: Int8Array = Int8Array.from({ length: 256 }, (_, code) =>
  "0123456789abcdef".indexOf(String.fromCharCode(code).toLowerCase()),
);

/** Writes the bytes [to, end), which stand as hex at `from`; false where a character is no digit. */
function unhex(bytes: Uint8Array, from: number, blob: Uint8Array, to: number, end: number): boolean {
  let bad = 0;
  for (let i = from; to < end; i += 2) {
    const high = DIGITS[bytes[i]!]!;
    const low = DIGITS[bytes[i + 1]!]!;
    bad |= high | low;
    blob[to++] = (high << 4) | low;
  }
  return bad >= 0;
}
