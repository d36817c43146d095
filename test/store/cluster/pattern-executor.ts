import type { PatternNode } from "../../../src/store/cluster/pattern/node.js";

/** What a search found, and what it cost. */
export interface Execution {
  readonly found: boolean;
  /** Calls of `_M_dfs`. */
  readonly steps: number;
  /** Of them, inside one another at most. */
  readonly depth: number;
}

type Next = (at: number) => boolean;

/**
 * libstdc++'s depth-first executor, as far as masterPattern lets it go: every state is a call, from which the next one
 * is called. `inside`: as in a guarded pattern, a lazy `[^]*?` goes through the key; else `regex_search` does.
 */
export function executePattern(pattern: PatternNode, key: Uint8Array, inside: boolean): Execution {
  let steps = 0;
  let depth = 0;
  let deepest = 0;

  const state = (body: () => boolean): boolean => {
    steps++;
    depth++;
    deepest = Math.max(deepest, depth);
    const found = body();
    depth--;
    return found;
  };
  const isWord = (at: number) => at >= 0 && at < key.length && /\w/.test(String.fromCharCode(key[at]!));
  const holds = (text: string, at: number): boolean => {
    if (text === "^") return at === 0;
    if (text === "$") return at === key.length;
    return (isWord(at - 1) !== isWord(at)) === (text === "\\b");
  };

  const run = (node: PatternNode, at: number, next: Next): boolean => {
    switch (node.kind) {
      case "bytes":
        return state(() => at < key.length && node.set[key[at]!] === 1 && next(at + 1));
      case "assertion":
        return state(() => holds(node.text, at) && next(at));
      case "sequence":
        return node.items.reduceRight<Next>((then, item) => (from) => run(item, from, then), next)(at);
      case "choice":
        return fork(node.branches, at, next);
      case "repeat": {
        const { body, min, max } = node;
        const round = (done: number, from: number): boolean => {
          if (done < min) return run(body, from, (to) => round(done + 1, to));
          if (done === max) return next(from);
          return state(() => run(body, from, (to) => round(done + 1, to)) || next(from));
        };
        return round(0, at);
      }
    }
  };
  // `a|b|c` is compiled as (a|b)|c.
  const fork = (branches: readonly PatternNode[], at: number, next: Next): boolean =>
    branches.length === 1
      ? run(branches[0]!, at, next)
      : state(() => fork(branches.slice(0, -1), at, next) || run(branches.at(-1)!, at, next));

  const accept = () => state(() => state(() => true));
  let found = false;
  if (inside) {
    const walk = (at: number): boolean =>
      state(() => run(pattern, at, accept) || (at < key.length && state(() => walk(at + 1))));
    found = walk(0);
  } else for (let at = 0; at <= key.length && !found; at++) found = state(() => run(pattern, at, accept));
  return { found, steps, depth: deepest };
}
