/** Where a set says whether it has the end of the key, which the automaton looks at as if it were one more byte. */
export const KEY_END = 256;

/** A set of bytes, and of the end of the key: element i is 1 where the set has i, from 0 to `KEY_END`. */
export type ByteSet = Uint8Array;

/** The set that `includes` describes; it has no end of the key. */
export function byteSet(includes: (byte: number) => boolean): ByteSet {
  const set = new Uint8Array(KEY_END + 1);
  for (let byte = 0; byte < KEY_END; byte++) if (includes(byte)) set[byte] = 1;
  return set;
}

/** The set of one byte, or of `KEY_END`. */
export function oneOf(symbol: number): ByteSet {
  const set = new Uint8Array(KEY_END + 1);
  set[symbol] = 1;
  return set;
}

/** What is in one of the sets. */
export function union(...sets: readonly ByteSet[]): ByteSet {
  const all = new Uint8Array(KEY_END + 1);
  for (const set of sets) for (let symbol = 0; symbol <= KEY_END; symbol++) all[symbol]! |= set[symbol]!;
  return all;
}

/** Whether no byte, and not the end, is in both. */
export function disjoint(a: ByteSet, b: ByteSet): boolean {
  return a.every((has, symbol) => has === 0 || b[symbol] === 0);
}

/** Every byte. */
export const ANY_BYTE: ByteSet = byteSet(() => true);

/** No byte: what has it never matches. */
export const NO_BYTE: ByteSet = byteSet(() => false);

/** What `.` is: libstdc++ leaves out newline and carriage return. */
export const DOT: ByteSet = byteSet((byte) => byte !== 0x0a && byte !== 0x0d);

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;
const isWord = (byte: number) =>
  isDigit(byte) || (byte >= 0x41 && byte <= 0x5a) || byte === 0x5f || (byte >= 0x61 && byte <= 0x7a);
const isSpace = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

/** The classes of `\d`, `\w`, `\s` and their opposites, in the C locale of a master: bytes from 0x80 are in none of the three. */
export const CLASSES: ReadonlyMap<string, ByteSet> = new Map([
  ["d", byteSet(isDigit)],
  ["D", byteSet((byte) => !isDigit(byte))],
  ["w", byteSet(isWord)],
  ["W", byteSet((byte) => !isWord(byte))],
  ["s", byteSet(isSpace)],
  ["S", byteSet((byte) => !isSpace(byte))],
]);
