import { describe } from "../../../errors.js";
import { CLASSES, oneOf } from "./byte-set.js";
import { bytes, type PatternNode } from "./node.js";
import { Refusal } from "./refusal.js";
import type { PatternText } from "./text.js";

const CONTROLS: ReadonlyMap<string, number> = new Map([
  ["0", 0x00],
  ["t", 0x09],
  ["n", 0x0a],
  ["v", 0x0b],
  ["f", 0x0c],
  ["r", 0x0d],
]);

/**
 * The escape behind the backslash at `at`, which has been read.
 *
 * @throws Refusal for a back-reference, and for an escape that libstdc++ refuses or reads unlike other engines.
 */
export function readEscape(text: PatternText, at: number): PatternNode {
  const letter = text.next();
  const set = CLASSES.get(letter);
  if (set) return bytes(set);
  if (letter === "b" || letter === "B") return { kind: "assertion", text: `\\${letter}` };
  return bytes(oneOf(readByte(text, at, letter)));
}

/**
 * The one byte of an escape whose first character has been read.
 *
 * @throws Refusal as `readEscape`.
 */
export function readByte(text: PatternText, at: number, letter: string): number {
  if (letter === "") throw new Refusal(`the pattern ends with a backslash; write \\\\ for the character`);
  const control = CONTROLS.get(letter);
  const digit = /[0-9]/;
  if (digit.test(letter) && (control === undefined || text.takeMatch(/[0-9]/y)))
    throw new Refusal(
      `${describe(`\\${letter}`)} at ${at}: back-references and octal numbers are not sent; write out what is repeated, or \\x and two digits`,
    );
  if (control !== undefined) return control;
  if (letter === "x" || letter === "u") return readHex(text, at, letter);
  if (/[^\x20-\x7e]|[A-Za-z]/.test(letter))
    throw new Refusal(
      `${describe(`\\${letter}`)} at ${at} is no escape; \\d \\D \\w \\W \\s \\S \\b \\B \\0 \\t \\n \\v \\f \\r \\xHH, \\uHHHH and signs are allowed behind a backslash`,
    );
  return letter.charCodeAt(0);
}

function readHex(text: PatternText, at: number, letter: "x" | "u"): number {
  const digits = text.takeMatch(letter === "x" ? /[0-9A-Fa-f]{2}/y : /[0-9A-Fa-f]{4}/y);
  if (digits === null)
    throw new Refusal(`\\${letter} at ${at} needs ${letter === "x" ? "two" : "four"} hexadecimal digits`);
  const value = Number.parseInt(digits[0], 16);
  // libstdc++ keeps the low byte of \u, which is no character of UTF-8.
  if (letter === "u" && value >= 0x80)
    throw new Refusal(
      `\\u${digits[0]} at ${at}: only \\u0000 to \\u007f are allowed; write the character itself`,
    );
  return value;
}
