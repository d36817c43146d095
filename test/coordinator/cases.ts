import {
  ExistenceTable,
  type KvCacheGroupSpec,
  type LayerSpec,
  type LookupResult,
  type LookupSessionOptions,
  MooncakeStoreCoordinator,
  type MooncakeStoreCoordinatorOptions,
  PRESENT,
} from "../../src/coordinator/index.js";
import { type ErrorCode, isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/blob-block-hashes.js";
import type { KeyTable } from "../../src/key/key-table.js";

// What the tests of the coordinator share: groups in short form, masks as text, stores that are sets of keys.

const group = (kvCacheSpec: LayerSpec): KvCacheGroupSpec => ({ kvCacheSpec });

/** Full attention with blocks of `blockSize` tokens. */
export const F = (blockSize: number): KvCacheGroupSpec => group({ kind: "full", blockSize });

/** A sliding window. */
export const W = (blockSize: number, slidingWindow: number): KvCacheGroupSpec =>
  group({ kind: "swa", blockSize, slidingWindow });

/** Mamba in align mode. */
export const M = (blockSize: number): KvCacheGroupSpec =>
  group({ kind: "mamba", blockSize, mambaCacheMode: "align" });

/** Scratch that is never cached. */
export const C = (blockSize: number): KvCacheGroupSpec => group({ kind: "circular", blockSize });

/** A coordinator over groups; the scheduler block size is the largest block size unless given. */
export function coordinatorOf(
  kvCacheGroups: readonly KvCacheGroupSpec[],
  hashBlockSize: number,
  options: Partial<MooncakeStoreCoordinatorOptions> = {},
): MooncakeStoreCoordinator {
  const schedulerBlockSize = Math.max(...kvCacheGroups.map(({ kvCacheSpec }) => kvCacheSpec.blockSize));
  return new MooncakeStoreCoordinator({ kvCacheGroups, schedulerBlockSize, hashBlockSize, ...options });
}

/** A table in which group i has the blocks that end with the hashes `stored[i]`. */
export function table(numHashes: number, stored: readonly (readonly number[])[]): ExistenceTable {
  const existence = ExistenceTable.filled(stored.length, numHashes);
  for (const [id, indexes] of stored.entries())
    for (const index of indexes) existence.set(id, index, PRESENT);
  return existence;
}

/** The numbers from 0 to `count` - 1. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Masks as text: T for a marked block, F for another, null for "all". */
export function text(masks: readonly (Uint8Array | undefined)[]): (string | null)[] {
  return masks.map((mask) =>
    mask === undefined ? null : [...mask].map((bit) => (bit ? "T" : "F")).join(""),
  );
}

/** The positions of marked blocks. */
export function marked(mask: Uint8Array | undefined): number[] {
  return [...mask!.keys()].filter((block) => mask![block] === 1);
}

/** Hashes of four bytes; hash i is i + 1. */
export function hashes(count: number): BlobBlockHashes {
  const blob = Buffer.alloc(count * 4);
  for (let i = 0; i < count; i++) blob.writeUInt32BE(i + 1, i * 4);
  return new BlobBlockHashes(blob, 4);
}

/** The key of hash `index` of a group on a rank. */
export function key(group: number, index: number, rank: number = 0): string {
  return `m@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${group}@${(index + 1).toString(16).padStart(8, "0")}`;
}

/** Prefixes of `ranks` TP ranks for each of `groups` groups. */
export function prefixes(groups: number, ranks: number = 1): string[][] {
  return upTo(groups).map((id) => upTo(ranks).map((rank) => key(id, 0, rank).slice(0, -9)));
}

/** A lookup over a store that is a set of keys, and the keys it was asked about. */
export async function lookupIn(
  stored: ReadonlySet<string>,
  coordinator: MooncakeStoreCoordinator,
  options: Partial<LookupSessionOptions> & { readonly numTokens: number },
): Promise<{ readonly result: LookupResult; readonly questions: readonly string[][] }> {
  const questions: string[][] = [];
  const result = await coordinator.lookup({
    keyPrefixes: prefixes(coordinator.kvCacheGroups.length),
    ...options,
    blockHashes: options.blockHashes ?? hashes(Math.floor(options.numTokens / coordinator.hashBlockSize)),
    exists: (keys: KeyTable) => {
      const asked = keys.toArray();
      questions.push(asked);
      return asked.map((name) => (stored.has(name) ? 1 : 0));
    },
  });
  return { result, questions };
}

/** A check for `assert.throws`: an error of ours with this code whose message matches. */
export function ours(code: ErrorCode, pattern: RegExp) {
  return (error: unknown): boolean => isMooncakeKvError(error, code) && pattern.test(error.message);
}
