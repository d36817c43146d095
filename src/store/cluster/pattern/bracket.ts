import { describe } from "../../../errors.js";
import { ANY_BYTE, type ByteSet, byteSet, CLASSES, oneOf, union } from "./byte-set.js";
import { readByte } from "./escape.js";
import { Refusal } from "./refusal.js";
import type { PatternText } from "./text.js";

const DASH = 0x2d;
const BACKSPACE = 0x08;

/**
 * The set of `[...]`, whose first bracket, at `at`, has been read.
 *
 * @throws Refusal where the bracket is not closed, is empty, or has something that libstdc++ refuses or reads unlike
 * other engines.
 */
export function readBracket(text: PatternText, at: number): ByteSet {
  const negated = text.take("^");
  if (text.take("]")) {
    // As in ECMAScript, and unlike POSIX, where a bracket that comes first is a character.
    if (negated) return ANY_BYTE;
    throw new Refusal(`[] at ${at} matches nothing; write \\] for the bracket as a character`);
  }
  const sets: ByteSet[] = [];
  if (text.take("-")) sets.push(oneOf(DASH));
  while (!text.take("]")) sets.push(readItem(text, at));
  const set = union(...sets);
  return negated ? byteSet((byte) => set[byte] === 0) : set;
}

function readItem(text: PatternText, at: number): ByteSet {
  const start = text.at;
  const low = readOne(text, at);
  if (!text.take("-")) return typeof low === "number" ? oneOf(low) : low;
  if (text.sees("]")) return union(typeof low === "number" ? oneOf(low) : low, oneOf(DASH));
  const high = readOne(text, at);
  const range = text.since(start, text.at);
  if (typeof low !== "number" || typeof high !== "number" || high < low)
    throw new Refusal(`${describe(range)} at ${start} is no range; write \\- for the character`);
  return byteSet((byte) => byte >= low && byte <= high);
}

/** One character, or the set of a class. */
function readOne(text: PatternText, at: number): number | ByteSet {
  const start = text.at;
  const character = text.next();
  if (character === "" || (character === "[" && text.atEnd))
    throw new Refusal(`"[" at ${at} is not closed; write \\[ for the character`);
  if (character === "[" && (text.sees(":") || text.sees(".") || text.sees("=")))
    throw new Refusal(
      `${text.since(start, start + 2)} at ${start}: named classes are not sent; write the characters, as in [a-z]`,
    );
  if (character === "-")
    throw new Refusal(
      `"-" at ${start} is neither first nor last nor in a range; write \\- for the character`,
    );
  if (character === "\\") return readBracketEscape(text, start);
  return ascii(character.codePointAt(0)!, character, start);
}

function readBracketEscape(text: PatternText, start: number): number | ByteSet {
  const letter = text.next();
  if (letter === "b") return BACKSPACE;
  const byte = CLASSES.get(letter) ?? readByte(text, start, letter);
  return typeof byte === "number" ? ascii(byte, text.since(start, text.at), start) : byte;
}

/** Beyond ASCII a character is several bytes, of which a bracket would match one. */
function ascii(code: number, character: string, at: number): number {
  if (code < 0x80) return code;
  throw new Refusal(
    `${describe(character)} at ${at}: only ASCII is allowed in brackets; write the characters as alternatives, as in (?:é|è)`,
  );
}
