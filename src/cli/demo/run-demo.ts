import type { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { BlockHasher } from "../../hash/block-hasher.js";
import { DemoEngine, type Transfer } from "./demo-engine.js";
import type { DemoStep, DemoWork } from "./demo-work.js";
import { refuseDifferences } from "./kv-pattern.js";
import { GPT_OSS_20B } from "./model.js";

/** How much of the first prompt the second one repeats from the beginning; it goes on with what is left out here. */
const SHARED_PART = 0.6;
const SECOND_GOES_ON_AT = 0.7;

/** TP sizes of the two engines; the stored objects are cut for the larger one. */
const TP_A = 4;
const TP_B = 2;

/** What the first part of the demo found out. */
export interface DemoResult {
  readonly model: string;
  readonly store: string;
  readonly tokens: number;
  readonly blocks: number;
  readonly firstKey: string;
  readonly lastKey: string;
  readonly nativeHashing: boolean;
  readonly hashSeconds: number;
  readonly saved: Transfer;
  readonly loaded: Transfer;
  readonly first: DemoLookup;
  readonly second: DemoLookup;
  /** 32-bit words of all loads that differ from what engine A wrote. 0, or the demo has failed. */
  readonly differences: number;
}

/** What a lookup found of a prompt. */
export interface DemoLookup {
  readonly tokens: number;
  readonly blocks: number;
  readonly hitTokens: number;
}

/** A prompt with its hashes. */
interface Prompt {
  readonly tokens: Uint32Array;
  readonly hashes: BlobBlockHashes;
}

/**
 * One real prompt through everything: hash, keys, save by an engine of TP 4, lookup and load by an engine of TP 2,
 * comparison of every byte; then a second prompt with the same beginning.
 *
 * @throws MooncakeKvError `ERR_STORE` when the store refuses something or bytes differ.
 */
export async function runDemo({ store, tokens, kernel, cachePrefix, step }: DemoWork): Promise<DemoResult> {
  await step("hashing a prompt");
  const hasher = new BlockHasher({ blockSize: GPT_OSS_20B.blockSize, kernel });

  const started = performance.now();
  const first = { tokens, hashes: await hasher.hashAsync(tokens) };
  const hashSeconds = (performance.now() - started) / 1000;
  const part = (from: number, to: number) =>
    tokens.subarray(Math.floor(tokens.length * from), Math.floor(tokens.length * to));
  const secondTokens = Uint32Array.of(...part(0, SHARED_PART), ...part(SECOND_GOES_ON_AT, 1));
  const second = { tokens: secondTokens, hashes: await hasher.hashAsync(secondTokens) };

  const numBlocks = first.hashes.length + 1;
  const common = { store, model: GPT_OSS_20B, storeTpSize: TP_A, numBlocks, cachePrefix };
  const engineA = await DemoEngine.create({ ...common, tpSize: TP_A });
  const engineB = await DemoEngine.create({ ...common, tpSize: TP_B });
  try {
    const chunks = engineA.chunks(first.tokens, first.hashes);
    const blocksOfA = scattered(first.hashes.length, numBlocks, 7);
    await step("filling the cache of engine A");
    await engineA.compute(first.tokens, blocksOfA);
    await step("engine A saves");
    const saved = await engineA.save(chunks, blocksOfA);
    const loaded = (prompt: Prompt, stride: number) =>
      lookupAndLoad(engineB, prompt, scattered(prompt.hashes.length, numBlocks, stride), step);
    const loadOfFirst = await loaded(first, 11);
    const loadOfSecond = await loaded(second, 13);
    const keys = engineA.keys(chunks);
    const differences = loadOfFirst.differences + loadOfSecond.differences;
    refuseDifferences(differences);
    return {
      model: GPT_OSS_20B.model,
      store: store.backend,
      tokens: first.tokens.length,
      blocks: first.hashes.length,
      firstKey: keys[0],
      lastKey: keys[1],
      nativeHashing: kernel !== undefined,
      hashSeconds,
      saved,
      loaded: loadOfFirst.transfer,
      first: describeLookup(first, loadOfFirst.hitTokens),
      second: describeLookup(second, loadOfSecond.hitTokens),
      differences,
    };
  } finally {
    await engineA.close();
    await engineB.close();
  }
}

/** Loads what the store has of a prompt, and counts the words that are not what they should be. */
async function lookupAndLoad(
  engine: DemoEngine,
  prompt: Prompt,
  blockIds: readonly number[],
  step: DemoStep,
) {
  await step("engine B looks up and loads");
  const chunks = engine.chunks(prompt.tokens, prompt.hashes);
  const hitTokens = await engine.lookup(chunks);
  const hit = chunks.slice(0, hitTokens / GPT_OSS_20B.blockSize);
  const transfer = await engine.load(hit, blockIds);
  await step("comparing every byte");
  const differences = await engine.verify(prompt.tokens.subarray(0, hitTokens), blockIds);
  return { hitTokens, transfer, differences };
}

function describeLookup({ tokens, hashes }: Prompt, hitTokens: number): DemoLookup {
  return { tokens: tokens.length, blocks: hashes.length, hitTokens };
}

/** A block table whose blocks don't lie in order, as in an engine that has run for a while. Block 0 is never used. */
function scattered(length: number, numBlocks: number, step: number): number[] {
  const usable = numBlocks - 1;
  let stride = step;
  while (gcd(stride, usable) !== 1) stride++;
  return Array.from({ length }, (_, index) => 1 + ((index * stride + step) % usable));
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
