import { choice, EMPTY, isEmpty, type PatternNode, repeat, sequence } from "./node.js";

/**
 * A pattern that is found in the same keys, without what makes no difference to that. A search may begin and end
 * anywhere, so what may be left out at either end is left out there, and what may be repeated there is not: `.*a` is
 * `a`, and `ab+` is `ab`. Where a place (`^`, `$`, `\b`) stands at an end, that end stays as it is.
 */
export function simplify(pattern: PatternNode): PatternNode {
  return trim(trim(pattern, "last"), "first");
}

type End = "first" | "last";

/** Trims a node beyond whose `end` nothing is asked of the key. Gives the same node where nothing is to be trimmed. */
function trim(node: PatternNode, end: End): PatternNode {
  switch (node.kind) {
    case "sequence": {
      const items = trimItems(node.items, end);
      return items === node.items ? node : sequence(items);
    }
    case "choice": {
      const branches = node.branches.map((branch) => trim(branch, end));
      if (branches.some(isEmpty)) return EMPTY;
      return branches.every((branch, i) => branch === node.branches[i]) ? node : choice(branches);
    }
    case "repeat": {
      if (node.min === 0) return EMPTY;
      const outermost = trim(node.body, end);
      if (isEmpty(outermost)) return EMPTY;
      if (outermost === node.body)
        return node.min === node.max ? node : repeat(node.body, node.min, node.min);
      return sequence(joined(repeat(node.body, node.min - 1, node.min - 1), outermost, end));
    }
    default:
      return node;
  }
}

function trimItems(items: readonly PatternNode[], end: End): readonly PatternNode[] {
  for (let left = items.length; left > 0; left--) {
    const others = end === "first" ? items.slice(items.length - left + 1) : items.slice(0, left - 1);
    const outermost = end === "first" ? items[items.length - left]! : items[left - 1]!;
    const trimmed = trim(outermost, end);
    if (isEmpty(trimmed)) continue;
    return trimmed === outermost && left === items.length
      ? items
      : joined({ kind: "sequence", items: others }, trimmed, end);
  }
  return [];
}

function joined(others: PatternNode, outermost: PatternNode, end: End): PatternNode[] {
  return end === "first" ? [outermost, others] : [others, outermost];
}
