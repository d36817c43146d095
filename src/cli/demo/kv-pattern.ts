import { MooncakeKvError } from "../../errors.js";

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

/** Positions of tokens: from `start`, up to `end`. */
export interface TokenSpan {
  readonly start: number;
  readonly end: number;
}

/** Word that no block holds by chance where the pattern is expected. */
const POISON = 0xdeadbeef;

/**
 * Writes made-up keys and values: every word is a function of layer, head, token, position and its place in the
 * content. Whoever knows the prompt can check any part of any cache, whichever engine wrote it.
 *
 * @param blockIds block table of the request; block i holds the tokens from `i * blockSize`. Block 0 is none: skipped.
 * @param span which tokens. Default: those of the full blocks.
 */
export function fillPattern(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
  span: TokenSpan = fullBlocks(slice, tokens, blockIds),
): void {
  visit(slice, tokens, blockIds, span, (words, at, count, seed) => {
    for (let i = 0; i < count; i++) words[at + i] = word(seed, i);
    return 0;
  });
}

/** Number of words that are not what `fillPattern` would have written. */
export function countDifferences(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
  span: TokenSpan = fullBlocks(slice, tokens, blockIds),
): number {
  return visit(slice, tokens, blockIds, span, (words, at, count, seed) => {
    let differences = 0;
    for (let i = 0; i < count; i++) if (words[at + i] !== word(seed, i)) differences++;
    return differences;
  });
}

/** Spoils blocks, so that what an earlier request left in them can't pass for what is loaded. */
export function poison(slice: PatternSlice, blockIds: readonly number[]): void {
  const blockWords = slice.numHeads * slice.blockSize * slice.contentWords;
  for (const blockId of blockIds) slice.words.fill(POISON, blockId * blockWords, (blockId + 1) * blockWords);
}

/** @throws MooncakeKvError `ERR_STORE` when there are differences. */
export function refuseDifferences(differences: number): void {
  if (differences > 0)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${differences} of the loaded 32-bit words are not what was saved`,
      { differences },
    );
}

type Visitor = (words: Uint32Array, at: number, count: number, seed: number) => number;

/** Calls `visitor` for each head and token of a span that has a block, and adds up what it returns. */
function visit(
  slice: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
  { start, end }: TokenSpan,
  visitor: Visitor,
): number {
  const { words, layer, firstHead, numHeads, blockSize, contentWords } = slice;
  let total = 0;
  for (let block = Math.floor(start / blockSize); block * blockSize < end; block++) {
    const blockId = blockIds[block]!;
    if (blockId === 0) continue;
    const first = Math.max(start, block * blockSize);
    const last = Math.min(end, (block + 1) * blockSize);
    for (let head = 0; head < numHeads; head++)
      for (let position = first; position < last; position++) {
        const at = ((blockId * numHeads + head) * blockSize + (position % blockSize)) * contentWords;
        total += visitor(
          words,
          at,
          contentWords,
          seedOf(layer, firstHead + head, tokens[position]!, position),
        );
      }
  }
  return total;
}

function fullBlocks(
  { blockSize }: PatternSlice,
  tokens: ArrayLike<number>,
  blockIds: ArrayLike<number>,
): TokenSpan {
  return { start: 0, end: Math.min(blockIds.length, Math.floor(tokens.length / blockSize)) * blockSize };
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
