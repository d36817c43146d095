import { pathToFileURL } from "node:url";
import {
  type KvCacheGroupSpec,
  type LookupResult,
  MooncakeStoreCoordinator,
} from "../src/coordinator/index.js";
import { BlobBlockHashes } from "../src/hash/index.js";
import { type KeyTable, PoolKey } from "../src/key/index.js";

const TOKENS = 1_000_000;
const BLOCK_SIZE = 16;
const BLOCKS = TOKENS / BLOCK_SIZE;
const HASH_BYTES = 32;
const ROUNDS = 30;

const full: KvCacheGroupSpec = { kvCacheSpec: { kind: "full", blockSize: BLOCK_SIZE } };
const window: KvCacheGroupSpec = {
  kvCacheSpec: { kind: "swa", blockSize: BLOCK_SIZE, slidingWindow: 128 },
};
const mamba: KvCacheGroupSpec = {
  kvCacheSpec: { kind: "mamba", blockSize: BLOCK_SIZE, mambaCacheMode: "align" },
};

function coordinatorOf(kvCacheGroups: readonly KvCacheGroupSpec[]): MooncakeStoreCoordinator {
  return new MooncakeStoreCoordinator({
    kvCacheGroups,
    schedulerBlockSize: BLOCK_SIZE,
    hashBlockSize: BLOCK_SIZE,
  });
}

function randomHashes(): BlobBlockHashes {
  const blob = new Uint8Array(BLOCKS * HASH_BYTES);
  let state = 1;
  for (let i = 0; i < blob.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    blob[i] = state >>> 24;
  }
  return new BlobBlockHashes(blob, HASH_BYTES);
}

/** A case of the benchmark: groups, and what the store answers to each key of a question. */
interface Case {
  readonly name: string;
  readonly groups: readonly KvCacheGroupSpec[];
  readonly answers: (keys: KeyTable) => Int32Array;
}

const ONES = new Int32Array(2 * BLOCKS).fill(1);
const ZEROS = new Int32Array(2 * BLOCKS);
const all = (keys: KeyTable) => ONES.subarray(0, keys.length);
const none = (keys: KeyTable) => ZEROS.subarray(0, keys.length);
/** Only full attention is there, so that the other groups are searched to their very beginning. */
const onlyFull = (keys: KeyTable) => (keys.at(0)!.includes("@group:0@") ? all(keys) : none(keys));

const CASES: readonly Case[] = [
  { name: "coordinator.lookup.full", groups: [full], answers: all },
  { name: "coordinator.lookup.hybrid3", groups: [full, window, mamba], answers: all },
  {
    name: "coordinator.lookup.hybrid3.mamba missing",
    groups: [full, window, mamba],
    answers: onlyFullAndWindow,
  },
  { name: "coordinator.lookup.hybrid3.only full", groups: [full, window, mamba], answers: onlyFull },
  { name: "coordinator.lookup.full.miss", groups: [full], answers: none },
  { name: "coordinator.lookup.hybrid3.miss", groups: [full, window, mamba], answers: none },
];

function onlyFullAndWindow(keys: KeyTable): Int32Array {
  return keys.at(0)!.includes("@group:2@") ? none(keys) : all(keys);
}

/** One lookup, with the keys of every question written out as they go to a store. Its own answer costs nothing. */
function lookupOnce({ groups, answers }: Case, blockHashes: BlobBlockHashes): Promise<LookupResult> {
  const keyPrefixes = groups.map((_, groupId) => [
    PoolKey.buildPrefix({ modelName: "Llama-3.1-8B-Instruct", groupId }),
  ]);
  return coordinatorOf(groups).lookup({
    numTokens: TOKENS + 1,
    blockHashes,
    keyPrefixes,
    exists: (keys) => {
      keys.flat();
      return answers(keys);
    },
  });
}

function report(name: string, value: number, unit: string, more: Record<string, number> = {}): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit, ...more }));
}

/**
 * A whole lookup of one million tokens: masks, keys, existence table, search and boundaries; median of some rounds.
 * And how many keys it asks about.
 */
export async function run(): Promise<void> {
  const hashes = randomHashes();
  for (const one of CASES) {
    let result = await lookupOnce(one, hashes);
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      result = await lookupOnce(one, hashes);
      times.push(performance.now() - start);
    }
    const median = times.sort((a, b) => a - b)[ROUNDS >> 1]!;
    report(one.name, median, "ms", { tokens: TOKENS, groups: one.groups.length, hit: result.hitLength });
    report(`${one.name}.asked`, result.keysAsked, "keys", { questions: result.questions });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await run();
