import type { Holder, Holders } from "./block-holders.js";
import { type BlockTable, NONE } from "./block-table.js";

/** How much of a prompt an engine holds. */
export interface EngineMatch {
  readonly engine: string;
  /** Tokens of the prefix that it can use. */
  readonly tokens: number;
  /** The same in block hashes of the prompt. */
  readonly blocks: number;
}

/** What a KV cache group needs of a prefix. */
export interface GroupRule {
  /** Tokens of one of its blocks. */
  readonly blockSize: number;
  /** Blocks at the end of the prefix that are enough; undefined where all are needed. */
  readonly tail: number | undefined;
}

/** A group to match: with the tags of its blocks on each medium that counts. */
export interface MatchGroup {
  readonly groupIdx: number;
  readonly rule: GroupRule;
  readonly tags: readonly number[];
}

/** What to match. */
export interface MatchRequest {
  /** Ids of the prompt's hashes, two words each. */
  readonly words: Uint32Array;
  /** Tokens of one hash. */
  readonly blockSize: number;
  readonly groups: readonly MatchGroup[];
}

/** The prefix of a prompt that each engine holds, longest first; engines without any are left out. */
export function matchPrefix(table: BlockTable, holders: Holders, request: MatchRequest): EngineMatch[] {
  const whole = request.groups.filter(({ rule }) => rule.tail === undefined);
  const tails = request.groups.filter(({ rule }) => rule.tail !== undefined);
  const runs = new Map(whole.map((group) => [group.groupIdx, prefixRuns(table, request, group)]));
  const matches: EngineMatch[] = [];
  for (const holder of holders) {
    if (holder.slot < 0) continue;
    let tokens = (request.words.length / 2) * request.blockSize;
    let step = request.blockSize;
    for (const { groupIdx, rule } of whole) {
      if (!holder.groups.has(groupIdx)) continue;
      tokens = Math.min(tokens, runs.get(groupIdx)![holder.slot]! * rule.blockSize);
      step = leastCommonMultiple(step, rule.blockSize);
    }
    const own = tails.filter(({ groupIdx }) => holder.groups.has(groupIdx));
    for (const { rule } of own) step = leastCommonMultiple(step, rule.blockSize);
    tokens = shortened(table, holder, request, own, Math.floor(tokens / step) * step, step);
    if (tokens > 0) matches.push({ engine: holder.engine, tokens, blocks: tokens / request.blockSize });
  }
  return matches.sort((a, b) => b.tokens - a.tokens || (a.engine < b.engine ? -1 : 1));
}

/** For each holder, how many blocks of a group it has from the first on without a gap. */
function prefixRuns(table: BlockTable, request: MatchRequest, { rule, tags }: MatchGroup): Uint32Array {
  const { maskWords, live } = table;
  const { words } = request;
  const scale = rule.blockSize / request.blockSize;
  const blocks = Math.floor(words.length / 2 / scale);
  const runs = new Uint32Array(32 * maskWords);
  const running = live.slice();
  let alive = true;
  for (let block = 0; block < blocks && alive; block++) {
    const at = 2 * ((block + 1) * scale - 1);
    alive = false;
    // The common case is one medium: the entry is looked up once and its words are read in place.
    const entries = tags.map((tag) => found(table, words[at]!, words[at + 1]!, tag));
    for (let word = 0; word < maskWords; word++) {
      let mask = 0;
      for (const entry of entries) if (entry !== NONE) mask |= table.mask(entry, word);
      endRuns(runs, running[word]! & ~mask, word, block);
      running[word]! &= mask;
      if (running[word] !== 0) alive = true;
    }
  }
  for (let word = 0; word < maskWords; word++) endRuns(runs, running[word]!, word, blocks);
  return runs;
}

/** An entry, noted as used. */
function found(table: BlockTable, low: number, high: number, tag: number): number {
  const entry = table.find(low, high, tag);
  if (entry !== NONE) table.touch(entry);
  return entry;
}

function endRuns(runs: Uint32Array, ended: number, word: number, length: number): void {
  for (let bits = ended; bits !== 0; bits &= bits - 1)
    runs[32 * word + 31 - Math.clz32(bits & -bits)] = length;
}

/** The longest prefix up to `tokens`, in whole steps, at whose end a holder has the tail that every group needs. */
function shortened(
  table: BlockTable,
  { slot }: Holder,
  request: MatchRequest,
  groups: readonly MatchGroup[],
  tokens: number,
  step: number,
): number {
  if (groups.length === 0) return tokens;
  const tails = groups.map((group) => ({
    ...group.rule,
    lengths: tailLengths(table, slot, request, group, tokens),
  }));
  let length = tokens;
  const enough = ({ blockSize, tail, lengths }: (typeof tails)[number]): boolean => {
    const end = length / blockSize;
    return lengths[end]! >= Math.min(tail!, end);
  };
  while (length > 0 && !tails.every(enough)) length -= step;
  return length;
}

/** For each number of blocks, how many at its end a holder has without a gap. */
function tailLengths(
  table: BlockTable,
  slot: number,
  request: MatchRequest,
  { rule, tags }: MatchGroup,
  tokens: number,
): Uint32Array {
  const scale = rule.blockSize / request.blockSize;
  const blocks = tokens / rule.blockSize;
  const lengths = new Uint32Array(blocks + 1);
  for (let block = 0; block < blocks; block++) {
    const at = 2 * ((block + 1) * scale - 1);
    const has = tags.some((tag) => {
      const entry = found(table, request.words[at]!, request.words[at + 1]!, tag);
      return entry !== NONE && ((table.mask(entry, slot >>> 5) >>> (slot & 31)) & 1) === 1;
    });
    lengths[block + 1] = has ? lengths[block]! + 1 : 0;
  }
  return lengths;
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}
