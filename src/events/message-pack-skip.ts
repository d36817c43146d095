import { CUT_OFF, MessagePackFault, wrongHead } from "./message-pack-fault.js";

/** Bytes that a value of each head from 0xc0 to 0xdf has but for what its length counts: head, length, kind, number. */
const FIXED_BYTES = Uint8Array.of(
  ...[1, 0, 1, 1, 2, 3, 5, 3, 4, 6, 5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18, 2, 3, 5, 3, 5, 3, 5],
);
/** Bytes of the length behind each of these heads. */
const LENGTH_BYTES = Uint8Array.of(
  ...[0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4],
);

/**
 * Where the value of any kind ends that begins at a place. It takes a step a value and no memory, however deep they lie.
 *
 * @throws MessagePackFault when there is none, or it is cut off.
 */
export function endOfValue(bytes: Uint8Array, offset: number): number {
  const end = bytes.length;
  let at = offset;
  // Values that are still due, over all open lists and maps; one byte at least each.
  for (let due = 1; due > 0; due--) {
    if (at >= end) throw new MessagePackFault(CUT_OFF);
    const head = bytes[at]!;
    if (head < 0x80 || head >= 0xe0) at++;
    else if (head < 0xc0) {
      if (head >= 0xa0) at += head & 0x1f;
      else due += head >= 0x90 ? head & 0x0f : 2 * (head & 0x0f);
      at++;
    } else {
      if (head === 0xc1) throw wrongHead(bytes, at, "a value");
      const length = lengthAt(bytes, at + 1, LENGTH_BYTES[head - 0xc0]!);
      at += FIXED_BYTES[head - 0xc0]!;
      if (head >= 0xde) due += 2 * length;
      else if (head >= 0xdc) due += length;
      else at += length;
    }
    if (at + due - 1 > end) throw new MessagePackFault(CUT_OFF);
  }
  return at;
}

function lengthAt(bytes: Uint8Array, start: number, width: number): number {
  let length = 0;
  for (let at = start; at < start + width; at++) length = length * 256 + (bytes[at] ?? 0);
  return length;
}
