import { isAnchored, searchSteps } from "./pattern/cost.js";
import { type Facts, factsOf } from "./pattern/facts.js";
import type { PatternNode } from "./pattern/node.js";
import { parsePattern } from "./pattern/parse.js";
import { Refusal } from "./pattern/refusal.js";
import { simplify } from "./pattern/simplify.js";
import { shown, writePattern } from "./pattern/write.js";

/** What to send to a master in place of a pattern, or why nothing is sent. */
export type MasterPattern =
  | {
      readonly ok: true;
      /** A pattern in ASCII that a master finds in the same keys, of at most `keyLimit` bytes. */
      readonly sent: string;
      /** Bytes of the longest key that is looked at; longer keys are not found. Left out: keys of any length are. */
      readonly keyLimit?: number | undefined;
    }
  | {
      readonly ok: false;
      /** The construct that is refused, and what is allowed. */
      readonly reason: string;
    };

/** Bytes of a pattern in UTF-8. */
const MAX_PATTERN_BYTES = 4096;
/** States of the automaton: a master clears an array of that length for every key, in about 2 ns a state. */
const MAX_STATES = 4096;
/**
 * Calls inside one another. One was measured to take up to 160 bytes of a master's stack; a thread has 8 MiB of it as a
 * rule, and 2 MiB where `ulimit -s` is unlimited.
 */
const MAX_DEPTH = 10_000;
/** Steps for one key: about 10 ns each, so two thirds of a second. */
const MAX_STEPS = 2 ** 26;
/** Bytes of the longest key that a master is expected to have. */
const LONGEST_KEY = 1 << 20;
const KEY_LIMITS = [4096, 2048, 1024, 512, 256] as const;

/**
 * Makes a pattern for Mooncake's `remove_by_regex` harmless. The master (`MasterService::RemoveByRegex`)
 * looks for it in every key with libstdc++'s `std::regex`, which calls itself for every byte that it consumes and tries
 * every way to match: a pattern and a key that fit ill together overflow its stack, or hold one of its threads for
 * years. Therefore
 *
 * - what makes no difference to whether a key matches is left out: `^pre-.*` is sent as `^pre-`;
 * - a pattern that still takes long on long keys is sent with a look-ahead that ends the matter for keys of more than
 *   `keyLimit` bytes, which is 256 or more;
 * - the rest is refused: what is no pattern for `std::regex`, look-ahead and back-references, what takes exponential
 *   time, and what is too large: 4 KiB, 32 groups deep, 4,096 states.
 *
 * What is sent takes at most 2^26 steps for a key of 1 MiB (two thirds of a second), and 1.6 MB of stack whatever the
 * key is.
 *
 * @param pattern ECMAScript's syntax, on the UTF-8 bytes of keys: `.` is one byte.
 */
export function masterPattern(pattern: string): MasterPattern {
  try {
    return { ok: true, ...harmless(pattern) };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message };
    throw error;
  }
}

function harmless(pattern: string): { sent: string; keyLimit?: number | undefined } {
  if (/\p{Surrogate}/u.test(pattern))
    throw new Refusal("half of a surrogate pair is in no key; keys are UTF-8");
  const size = Buffer.byteLength(pattern);
  if (size > MAX_PATTERN_BYTES)
    throw new Refusal(`the pattern has ${size} bytes; ${MAX_PATTERN_BYTES} are allowed`);
  const node = simplify(parsePattern(pattern));
  const facts = factsOf(node);
  if (facts.states > MAX_STATES)
    throw new Refusal(
      `${shown(node)} has about ${facts.states} states, repetitions multiplied out; ${MAX_STATES} are allowed`,
    );
  return withoutLimit(node, facts) ?? withLimit(node, facts) ?? tooMuch(node);
}

function withoutLimit(node: PatternNode, facts: Facts): { sent: string } | undefined {
  const flat = facts.depthPerByte === 0 && facts.depth <= MAX_DEPTH;
  if (!flat || searchSteps(node, LONGEST_KEY, true) > MAX_STEPS) return undefined;
  return { sent: writePattern(node) || "(?:)" };
}

function withLimit(node: PatternNode, facts: Facts): { sent: string; keyLimit: number } | undefined {
  const anchored = isAnchored(node);
  const depthPerByte = Math.max(facts.depthPerByte, anchored ? 1 : 2);
  const keyLimit = KEY_LIMITS.find(
    (limit) =>
      facts.depth + limit * depthPerByte <= MAX_DEPTH &&
      limit + searchSteps(node, limit, !anchored) <= MAX_STEPS,
  );
  return keyLimit && { sent: guard(keyLimit) + (anchored ? behindStart(node) : anywhere(node)), keyLimit };
}

/** Holds at the start of a key of at most `limit` bytes, and nowhere else. */
function guard(limit: number): string {
  return `^(?![^]{${limit + 1}})`;
}

/** A pattern that begins with `^`, behind the guard, which says the same. */
function behindStart(node: PatternNode): string {
  const items = node.kind === "sequence" ? node.items : [node];
  const [first] = items;
  const rest = first?.kind === "assertion" && first.text === "^" ? items.slice(1) : items;
  return writePattern({ kind: "sequence", items: rest });
}

/** The search that the guard has ended, done by the pattern itself. */
function anywhere(node: PatternNode): string {
  return `[^]*?${writePattern({ kind: "sequence", items: [node] })}`;
}

function tooMuch(node: PatternNode): never {
  throw new Refusal(
    `${shown(node)} could hold the master for long with a key of ${KEY_LIMITS.at(-1)} bytes already: its repetitions and alternatives can be combined in too many ways, or are too many for one byte; allowed are repetitions that end where the next part begins, as in [^@]*@, and up to two .* between other parts`,
  );
}
