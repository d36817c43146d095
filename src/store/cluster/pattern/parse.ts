import { describe } from "../../../errors.js";
import { readBracket } from "./bracket.js";
import { DOT, oneOf } from "./byte-set.js";
import { readEscape } from "./escape.js";
import { bytes, choice, type PatternNode, repeat, sequence } from "./node.js";
import { Refusal } from "./refusal.js";
import { PatternText } from "./text.js";

/** Groups inside one another. libstdc++'s compiler recurses once a group, and so does all code here. */
const MAX_DEPTH = 32;
/** Each repetition up to a count is copied as often by libstdc++'s compiler. */
const MAX_COUNT = 4096;

const ALLOWED =
  "allowed are characters, ., [...], \\d \\w \\s, groups, |, ^, $, \\b, and the repetitions * + ? {n} {n,} {n,m}";

/**
 * Reads a pattern as libstdc++ reads ECMAScript's. What libstdc++ refuses is refused; so is what it reads unlike other
 * engines, and what can't be bounded.
 *
 * @throws Refusal with the construct and what is allowed.
 */
export function parsePattern(pattern: string): PatternNode {
  const text = new PatternText(pattern);
  const node = readChoice(text, 0);
  if (!text.atEnd) throw new Refusal(`")" at ${text.at} closes no group; write \\) for the character`);
  return node;
}

function readChoice(text: PatternText, depth: number): PatternNode {
  const branches = [readSequence(text, depth)];
  while (text.take("|")) branches.push(readSequence(text, depth));
  return choice(branches);
}

function readSequence(text: PatternText, depth: number): PatternNode {
  const items: PatternNode[] = [];
  while (!text.atEnd && !text.sees("|") && !text.sees(")")) items.push(readTerm(text, depth));
  return sequence(items);
}

function readTerm(text: PatternText, depth: number): PatternNode {
  const start = text.at;
  const node = readAtom(text, depth);
  const counts = readCounts(text);
  if (counts === undefined) return node;
  const atom = text.since(start, counts.at);
  if (node.kind === "assertion")
    throw new Refusal(`${describe(atom)} at ${start} can't be repeated: it is a place, not a character`);
  if (atom.charCodeAt(0) >= 0x80)
    throw new Refusal(
      `the repetition of ${describe(atom)} at ${start} would repeat its last byte only; write (?:${atom})`,
    );
  if (readCounts(text) !== undefined)
    throw new Refusal(`two repetitions in a row at ${counts.at}; put the first one into a group`);
  return repeat(node, counts.min, counts.max);
}

function readAtom(text: PatternText, depth: number): PatternNode {
  const at = text.at;
  const character = text.next();
  switch (character) {
    case "^":
    case "$":
      return { kind: "assertion", text: character };
    case ".":
      return bytes(DOT);
    case "[":
      return bytes(readBracket(text, at));
    case "\\":
      return readEscape(text, at);
    case "(":
      return readGroup(text, at, depth);
    case "*":
    case "+":
    case "?":
    case "{":
      throw new Refusal(
        `"${character}" at ${at} repeats nothing; write \\${character} for the character, ${ALLOWED}`,
      );
    default:
      return sequence(Array.from(new TextEncoder().encode(character), (byte) => bytes(oneOf(byte))));
  }
}

function readGroup(text: PatternText, at: number, depth: number): PatternNode {
  if (text.take("?") && !text.take(":")) {
    const ahead = text.sees("=") || text.sees("!");
    const name = ahead ? "look-ahead" : "a group with flags, a name or another extension";
    throw new Refusal(`${describe(text.since(at, text.at + 1))} at ${at}: ${name} is not sent; ${ALLOWED}`);
  }
  if (depth === MAX_DEPTH)
    throw new Refusal(`the groups at ${at} are more than ${MAX_DEPTH} deep; ${MAX_DEPTH} are allowed`);
  const node = readChoice(text, depth + 1);
  if (!text.take(")")) throw new Refusal(`"(" at ${at} is not closed; write \\( for the character`);
  return node;
}

/** The counts of a repetition, if one stands here. Lazy or greedy makes no difference to whether a key matches. */
function readCounts(text: PatternText): { min: number; max: number; at: number } | undefined {
  const at = text.at;
  const counts = text.take("*")
    ? [0, Number.POSITIVE_INFINITY]
    : text.take("+")
      ? [1, Number.POSITIVE_INFINITY]
      : text.take("?")
        ? [0, 1]
        : readInterval(text);
  if (counts === undefined) return undefined;
  text.take("?");
  return { min: counts[0]!, max: counts[1]!, at };
}

function readInterval(text: PatternText): number[] | undefined {
  if (!text.sees("{")) return undefined;
  const at = text.at;
  const match = text.takeMatch(/\{([0-9]+)(,?)([0-9]*)\}/y);
  const [, first, comma, last] = match ?? [];
  if (first === undefined || (comma === "" && last !== ""))
    throw new Refusal(`"{" at ${at} begins no {n}, {n,} or {n,m}; write \\{ for the character`);
  const min = Number(first);
  const max = comma === "" ? min : last === "" ? Number.POSITIVE_INFINITY : Number(last);
  if (max < min) throw new Refusal(`${match![0]} at ${at}: the second count is below the first`);
  if (min > MAX_COUNT || (max > MAX_COUNT && last !== ""))
    throw new Refusal(`${match![0].slice(0, 32)} at ${at}: counts up to ${MAX_COUNT} are allowed`);
  return [min, max];
}
