import { type ByteSet, KEY_END, NO_BYTE, oneOf, union } from "./byte-set.js";
import type { PatternNode, RepeatNode } from "./node.js";
import { Refusal } from "./refusal.js";
import { shown } from "./write.js";

/** What is known of a node of itself, whatever follows it. Steps are calls of `_M_dfs` in libstdc++'s executor. */
export interface Facts {
  /** What the next byte must be for the node to consume it; `$` consumes the end of the key. */
  readonly first: ByteSet;
  /** In how many ways it matches without consuming anything; 0: it always consumes something. */
  readonly emptyWays: number;
  /** Steps until it has failed where the next byte is not in `first`. */
  readonly entry: number;
  /** Bytes that a match has at least. */
  readonly minBytes: number;
  /** States that libstdc++ compiles it to, about. */
  readonly states: number;
  /** Calls inside one another on the way through it: at most `depth` and `depthPerByte` for each byte of the key. */
  readonly depth: number;
  readonly depthPerByte: number;
}

const known = new WeakMap<PatternNode, Facts>();

/**
 * The facts of a node, found once.
 *
 * @throws Refusal for an endless repetition of something that may be empty.
 */
export function factsOf(node: PatternNode): Facts {
  const before = known.get(node);
  if (before) return before;
  const facts = find(node);
  known.set(node, facts);
  return facts;
}

function find(node: PatternNode): Facts {
  switch (node.kind) {
    case "bytes":
      return { ...ONE_STATE, first: node.set, minBytes: 1 };
    case "assertion":
      return node.text === "$"
        ? { ...ONE_STATE, first: oneOf(KEY_END) }
        : { ...ONE_STATE, first: NO_BYTE, emptyWays: 1 };
    case "sequence":
      return ofSequence(node.items.map(factsOf));
    case "choice":
      return ofChoice(node.branches.map(factsOf));
    case "repeat":
      return ofRepeat(node, factsOf(node.body));
  }
}

const ONE_STATE = { emptyWays: 0, entry: 1, minBytes: 0, states: 1, depth: 1, depthPerByte: 0 };

function ofSequence(items: readonly Facts[]): Facts {
  const reached: ByteSet[] = [];
  let emptyWays = 1;
  let entry = 0;
  for (const item of items) {
    if (emptyWays === 0) break;
    reached.push(item.first);
    entry += times(emptyWays, item.entry);
    emptyWays = times(emptyWays, item.emptyWays);
  }
  return {
    first: union(...reached),
    emptyWays,
    entry,
    minBytes: sum(items, "minBytes"),
    states: sum(items, "states"),
    depth: sum(items, "depth"),
    depthPerByte: Math.max(0, ...items.map((item) => item.depthPerByte)),
  };
}

function ofChoice(branches: readonly Facts[]): Facts {
  const forks = branches.length - 1;
  return {
    first: union(...branches.map((branch) => branch.first)),
    emptyWays: sum(branches, "emptyWays"),
    entry: forks + sum(branches, "entry"),
    minBytes: Math.min(...branches.map((branch) => branch.minBytes)),
    states: 2 * forks + sum(branches, "states"),
    depth: forks + Math.max(...branches.map((branch) => branch.depth)),
    depthPerByte: Math.max(...branches.map((branch) => branch.depthPerByte)),
  };
}

function ofRepeat(node: RepeatNode, body: Facts): Facts {
  const { min, max } = node;
  const endless = max === Number.POSITIVE_INFINITY;
  if (endless && body.minBytes === 0)
    throw new Refusal(
      `${shown(node)} repeats endlessly what may be empty; allowed is the endless repetition of at least one byte`,
    );
  const copies = endless ? min + 1 : max;
  const rounds = body.emptyWays === 0 ? 1 : powers(body.emptyWays, 0, copies);
  return {
    first: body.first,
    emptyWays: body.emptyWays === 0 ? (min === 0 ? 1 : 0) : powers(body.emptyWays, min, copies),
    entry: times(rounds, 1 + body.entry),
    minBytes: min * body.minBytes,
    states: copies * (body.states + 1) + body.states + 2,
    depth: (copies + 1) * (body.depth + 1),
    depthPerByte: body.depthPerByte + (endless ? (body.depth + 1) / body.minBytes : 0),
  };
}

/** The sum of `base ** k` for k from `first` to `last`. */
export function powers(base: number, first: number, last: number): number {
  if (last < first) return 0;
  if (base <= 1) return base === 1 ? last - first + 1 : first === 0 ? 1 : 0;
  const end = base ** (last + 1);
  return end === Number.POSITIVE_INFINITY ? end : (end - base ** first) / (base - 1);
}

/** A product in which nothing times endlessly many is nothing. */
export function times(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : a * b;
}

function sum(parts: readonly Facts[], name: "emptyWays" | "entry" | "minBytes" | "states" | "depth"): number {
  return parts.reduce((total, part) => total + part[name], 0);
}
