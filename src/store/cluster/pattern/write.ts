import { ANY_BYTE, type ByteSet, DOT, KEY_END } from "./byte-set.js";
import type { PatternNode, RepeatNode } from "./node.js";

/** The text of a pattern, in ASCII, without capturing groups: libstdc++ copies the captures at every place it tries. */
export function writePattern(node: PatternNode): string {
  switch (node.kind) {
    case "bytes":
      return writeSet(node.set);
    case "assertion":
      return node.text;
    case "sequence":
      return node.items.map((item) => writePart(item, item.kind === "choice")).join("");
    case "choice":
      return node.branches.map(writePattern).join("|");
    case "repeat":
      return writePart(node.body, node.body.kind !== "bytes") + writeCounts(node);
  }
}

/** A pattern in a reason: the first 64 characters of its text. */
export function shown(node: PatternNode): string {
  const text = writePattern(node);
  return text.length <= 64 ? text : `${text.slice(0, 64)}...`;
}

function writePart(node: PatternNode, grouped: boolean): string {
  return grouped ? `(?:${writePattern(node)})` : writePattern(node);
}

function writeCounts({ min, max }: RepeatNode): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

function writeSet(set: ByteSet): string {
  if (same(set, ANY_BYTE)) return "[^]";
  if (same(set, DOT)) return ".";
  const members = runs(set, 1);
  if (members.length === 1 && members[0]![0] === members[0]![1]) return writeByte(members[0]![0]);
  // Of bytes beyond ASCII a bracket has all, which is short the other way round.
  return set[0xff] === 1
    ? `[^${runs(set, 0).map(writeRun).join("")}]`
    : `[${members.map(writeRun).join("")}]`;
}

function same(a: ByteSet, b: ByteSet): boolean {
  return a.every((has, symbol) => has === b[symbol]);
}

/** Runs of neighbours that are in the set (1), or are not (0). None has bytes of both signs: libstdc++ compares chars. */
function runs(set: ByteSet, has: 0 | 1): [first: number, last: number][] {
  const found: [number, number][] = [];
  for (let byte = 0; byte < KEY_END; byte++) {
    if (set[byte] !== has) continue;
    const run = found.at(-1);
    if (run?.[1] === byte - 1 && byte !== 0x80) run[1] = byte;
    else found.push([byte, byte]);
  }
  return found;
}

function writeRun([first, last]: [number, number]): string {
  if (first === last) return writeInBracket(first);
  return writeInBracket(first) + (last === first + 1 ? "" : "-") + writeInBracket(last);
}

const PLAIN = /^[A-Za-z0-9 !"#%&',/:;<=>@_`~-]$/;
const SYNTAX = /^[\^$\\.*+?()[\]{}|]$/;

function writeByte(byte: number): string {
  const character = String.fromCharCode(byte);
  return PLAIN.test(character) ? character : SYNTAX.test(character) ? `\\${character}` : hex(byte);
}

/** Signs have meanings of their own in brackets, some only in some places. */
function writeInBracket(byte: number): string {
  const character = String.fromCharCode(byte);
  return /^[A-Za-z0-9]$/.test(character) ? character : hex(byte);
}

function hex(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}
