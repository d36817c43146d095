import { type ByteSet, union } from "./byte-set.js";

/** Places that a pattern may ask for. */
export type Assertion = "^" | "$" | "\\b" | "\\B";

/** A parsed pattern. Groups only group: whether a key matches does not depend on what they capture. */
export type PatternNode =
  | { readonly kind: "bytes"; readonly set: ByteSet }
  | { readonly kind: "assertion"; readonly text: Assertion }
  | { readonly kind: "sequence"; readonly items: readonly PatternNode[] }
  | ChoiceNode
  | RepeatNode;

/** One of its branches; two or more. */
export interface ChoiceNode {
  readonly kind: "choice";
  readonly branches: readonly PatternNode[];
}

/** Of `min` to `max` times its body; `max` may be infinite. */
export interface RepeatNode {
  readonly kind: "repeat";
  readonly body: PatternNode;
  readonly min: number;
  readonly max: number;
}

/** What matches everywhere, and nothing longer. */
export const EMPTY: PatternNode = { kind: "sequence", items: [] };

/** Whether a node is `EMPTY`. */
export function isEmpty(node: PatternNode): boolean {
  return node.kind === "sequence" && node.items.length === 0;
}

/** One byte of a set. */
export function bytes(set: ByteSet): PatternNode {
  return { kind: "bytes", set };
}

/** Nodes after one another, without sequences inside a sequence. */
export function sequence(nodes: readonly PatternNode[]): PatternNode {
  const items = nodes.flatMap((node) => (node.kind === "sequence" ? node.items : [node]));
  return items.length === 1 ? items[0]! : { kind: "sequence", items };
}

/** One of the nodes. Bytes beside bytes are one set, so that `(a|b)*` is as harmless as `[ab]*`. */
export function choice(nodes: readonly PatternNode[]): PatternNode {
  if (nodes.length === 1) return nodes[0]!;
  if (!nodes.every(isOneByte)) return { kind: "choice", branches: nodes };
  return bytes(union(...nodes.map(({ set }) => set)));
}

/** A node repeated; what repeats nothing, or once, is left out. */
export function repeat(body: PatternNode, min: number, max: number): PatternNode {
  if (max === 0 || isEmpty(body)) return EMPTY;
  return min === 1 && max === 1 ? body : { kind: "repeat", body, min, max };
}

function isOneByte(node: PatternNode): node is PatternNode & { kind: "bytes" } {
  return node.kind === "bytes";
}
