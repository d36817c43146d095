/** Where a run of tokens of one layer and some heads lies in a head-major cache. */
export interface PatternSlice {
  /** The cache of one layer, as 32-bit words. */
  readonly words: Uint32Array;
  readonly layer: number;
  /** First head of this rank among the heads of the model. */
  readonly firstHead: number;
  readonly numHeads: number;
  readonly blockSize: number;
  /** Words of one head and token. */
  readonly contentWords: number;
}

/**
 * Writes made-up keys and values: every word is a function of layer, head, token, position and its place in the
 * content. Whoever knows the prompt can check any part of any cache, whichever engine wrote it.
 *
 * @param blockIds block table of the request; block i holds the tokens from `i * blockSize`.
 */
export function fillPattern(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
): void {
  visit(slice, tokens, blockIds, (words, at, count, seed) => {
    for (let i = 0; i < count; i++) words[at + i] = word(seed, i);
    return 0;
  });
}

/** Number of words that are not what `fillPattern` would have written. */
export function countDifferences(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
): number {
  return visit(slice, tokens, blockIds, (words, at, count, seed) => {
    let differences = 0;
    for (let i = 0; i < count; i++) if (words[at + i] !== word(seed, i)) differences++;
    return differences;
  });
}

type Visitor = (words: Uint32Array, at: number, count: number, seed: number) => number;

/** Calls `visitor` for each head and token of the full blocks, and adds up what it returns. */
function visit(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
  visitor: Visitor,
): number {
  const { words, layer, firstHead, numHeads, blockSize, contentWords } = slice;
  const numBlocks = Math.min(blockIds.length, Math.floor(tokens.length / blockSize));
  let total = 0;
  for (let block = 0; block < numBlocks; block++)
    for (let head = 0; head < numHeads; head++)
      for (let offset = 0; offset < blockSize; offset++) {
        const position = block * blockSize + offset;
        const at = ((blockIds[block]! * numHeads + head) * blockSize + offset) * contentWords;
        total += visitor(
          words,
          at,
          contentWords,
          seedOf(layer, firstHead + head, tokens[position]!, position),
        );
      }
  return total;
}

function seedOf(layer: number, head: number, token: number, position: number): number {
  let seed = Math.imul(layer + 1, 0x9e3779b1) ^ Math.imul(head + 1, 0x85ebca77);
  seed = Math.imul(seed ^ (seed >>> 15), 0xc2b2ae3d) ^ token;
  seed = Math.imul(seed ^ (seed >>> 13), 0x27d4eb2f) ^ position;
  return Math.imul(seed ^ (seed >>> 16), 0x165667b1) >>> 0;
}

function word(seed: number, index: number): number {
  const mixed = Math.imul(seed + Math.imul(index, 0x9e3779b1), 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
