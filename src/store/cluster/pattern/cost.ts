import { type ByteSet, byteSet, disjoint, KEY_END, NO_BYTE, oneOf, union } from "./byte-set.js";
import { type Facts, factsOf, powers, times } from "./facts.js";
import { bytes, type ChoiceNode, type PatternNode, type RepeatNode } from "./node.js";
import { Refusal } from "./refusal.js";
import { shown } from "./write.js";

/** What comes after a node: the bytes that can go on there, and the steps until it has failed at any other. */
interface Rest {
  readonly first: ByteSet;
  readonly entry: number;
}

/** What libstdc++ does with a node at one place of a key: at most so many steps, and ways to get through it. */
interface Cost {
  readonly steps: number;
  readonly ways: number;
}

const ACCEPT: Rest = {
  first: union(
    byteSet(() => true),
    oneOf(KEY_END),
  ),
  entry: 1,
};

/** So finely the costs of the places in a key are told apart: they have less and less of the key before them. */
const SLICES = 8;

/**
 * An upper bound of the steps (calls of `_M_dfs`) that libstdc++ takes to find a pattern in a key of at most `keyBytes`
 * bytes: at its start, and, `everywhere`, at every later place too, where `^` ends the matter.
 *
 * @throws Refusal for an endless repetition of something that can match the same bytes in several ways.
 */
export function searchSteps(pattern: PatternNode, keyBytes: number, everywhere: boolean): number {
  let { steps } = costOf(pattern, ACCEPT, keyBytes);
  if (!everywhere) return steps;
  const beyond = beyondStart(pattern);
  const slice = keyBytes / SLICES;
  for (let slices = 1; slices <= SLICES; slices++)
    steps += times(slice, 2 + costOf(beyond, ACCEPT, slices * slice).steps);
  return steps;
}

/**
 * Whether a pattern can match at the start of a key only.
 *
 * @throws Refusal as `searchSteps`.
 */
export function isAnchored(pattern: PatternNode): boolean {
  return costOf(beyondStart(pattern), ACCEPT, Number.MAX_SAFE_INTEGER).ways === 0;
}

/** The pattern with a byte that no key has in place of every `^`. */
function beyondStart(node: PatternNode): PatternNode {
  switch (node.kind) {
    case "assertion":
      return node.text === "^" ? bytes(NO_BYTE) : node;
    case "sequence":
      return { kind: "sequence", items: node.items.map(beyondStart) };
    case "choice":
      return { kind: "choice", branches: node.branches.map(beyondStart) };
    case "repeat":
      return { ...node, body: beyondStart(node.body) };
    default:
      return node;
  }
}

function costOf(node: PatternNode, rest: Rest, keyBytes: number): Cost {
  switch (node.kind) {
    case "bytes":
      return { steps: 1, ways: node.set.includes(1) ? 1 : 0 };
    case "assertion":
      return { steps: 1, ways: 1 };
    case "sequence":
      return ofSequence(node.items, rest, keyBytes);
    case "choice":
      return ofChoice(node, rest, keyBytes);
    case "repeat":
      return ofRepeat(node, rest, keyBytes);
  }
}

function ofSequence(items: readonly PatternNode[], rest: Rest, keyBytes: number): Cost {
  const rests = new Array<Rest>(items.length);
  for (let i = items.length - 1, next = rest; i >= 0; i--) {
    rests[i] = next;
    next = before(factsOf(items[i]!), next);
  }
  let steps = 0;
  let ways = 1;
  for (const [i, item] of items.entries()) {
    const cost = costOf(item, rests[i]!, keyBytes);
    steps += times(ways, cost.steps);
    ways = times(ways, cost.ways);
    if (ways === 0) break;
  }
  return { steps, ways };
}

/** The rest as seen before something else. */
function before(item: Facts, rest: Rest): Rest {
  if (item.emptyWays === 0) return item;
  return { first: union(item.first, rest.first), entry: item.entry + times(item.emptyWays, rest.entry) };
}

/** Branches that begin with different bytes exclude each other: the worst byte counts, not all branches. */
function ofChoice(node: ChoiceNode, rest: Rest, keyBytes: number): Cost {
  const steps = new Float64Array(KEY_END + 1).fill(factsOf(node).entry);
  const ways = new Float64Array(KEY_END + 1);
  for (const branch of node.branches) {
    const { first, emptyWays } = factsOf(branch);
    const cost = costOf(branch, rest, keyBytes);
    for (let symbol = 0; symbol <= KEY_END; symbol++) {
      if (first[symbol] === 0 && emptyWays === 0) continue;
      steps[symbol]! += cost.steps;
      ways[symbol]! += cost.ways;
    }
  }
  return { steps: Math.max(...steps), ways: Math.max(...ways) };
}

function ofRepeat(node: RepeatNode, rest: Rest, keyBytes: number): Cost {
  const body = factsOf(node.body);
  // Where the body's end is certain from the next byte, so is the repetition's: the way on is one.
  const certain = body.emptyWays === 0 && disjoint(body.first, rest.first);
  const again = factsOf({ ...node, min: 0 });
  const { steps, ways } = costOf(node.body, before(again, rest), keyBytes);
  const endless = node.max === Number.POSITIVE_INFINITY;
  if (endless && ways > 1)
    throw new Refusal(
      `${shown(node)} can match the same bytes in several ways, which takes exponential time; allowed is an endless repetition whose parts begin and end with bytes of their own, as in (?:[^@]+@)*`,
    );
  const rounds = Math.min(node.max, Math.floor(keyBytes / body.minBytes));
  const exits = powers(ways, node.min, rounds);
  const single = certain && ways <= 1;
  return {
    // Every exit but one ends with the next byte; where that is not so, the rest is counted for every exit.
    steps: times(powers(ways, 0, rounds), 1 + steps + (single ? rest.entry : 0)),
    ways: single ? Math.min(exits, 1) : exits,
  };
}
