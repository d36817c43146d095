import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlockHashListWithBlockSize } from "../../src/chunk/chunk-hashes.js";
import { chunkTokens } from "../../src/chunk/chunk-tokens.js";
import { MooncakeStoreCoordinator } from "../../src/coordinator/index.js";
import { parseKey } from "../../src/key/parse-key.js";
import {
  aHitIsAlignedAndBelowThePrompt,
  aHitLoadsOnlyStoredBlocks,
  type ChunkImplementation,
  type CoordinatorImplementation,
  chunksGrowAtTheEnd,
  chunksTileTheTokens,
  coarseHashIsTheLastFineOne,
  type KeyImplementation,
  keyEqualitiesAgree,
  keyOrderIsTotal,
  keyOrderIsTupleOrder,
  masksOnlyShrink,
  masksOnlyShrinkWork,
  moreBlocksNeverShortenAHit,
  ownKeys,
  parsingInvertsFormatting,
  parsingNeverCrashes,
  putRanksPartitionTheChunks,
  theLookupMaskLosesNothing,
} from "../../src/testing/index.js";
import { seed } from "../helpers/property.js";

// A law that no implementation can break says nothing. Each is held against one that is wrong in a way that has happened.

const keys = (change: Partial<KeyImplementation>): KeyImplementation => ({ ...ownKeys, ...change });

/** Chunks of this package, seen through a change of their ends. */
const chunksWithEnds =
  (end: (ends: Uint32Array, index: number) => number): ChunkImplementation =>
  (...args) => {
    const chunks = chunkTokens(...args);
    const ends = Uint32Array.from(chunks.ends, (_, index) => end(chunks.ends as Uint32Array, index));
    return { length: chunks.length, starts: chunks.starts, ends, hash: (index) => chunks.hash(index) };
  };

/** A coordinator of this package with some members changed. */
const coordinator =
  (change: (own: MooncakeStoreCoordinator) => object): CoordinatorImplementation =>
  (options) => {
    const own = new MooncakeStoreCoordinator(options);
    const changed = change(own) as Record<PropertyKey, unknown>;
    return new Proxy(own, {
      get: (_, name) => {
        const value = Object.hasOwn(changed, name) ? changed[name] : Reflect.get(own, name);
        return typeof value === "function" ? value.bind(own) : value;
      },
    });
  };

const broken: readonly (readonly [law: string, fault: string, property: fc.IRawProperty<unknown>])[] = [
  [
    "keyOrderIsTupleOrder",
    "texts by UTF-16 unit",
    keyOrderIsTupleOrder(keys({ compare: (a, b) => (a.toString() < b.toString() ? -1 : 1) })),
  ],
  ["keyOrderIsTotal", "never equal", keyOrderIsTotal(keys({ compare: () => 1 }))],
  [
    "keyEqualitiesAgree",
    "equal by hash alone",
    keyEqualitiesAgree(keys({ equals: (a, b) => a.chunkHash === b.chunkHash })),
  ],
  [
    "parsingInvertsFormatting",
    "a group that is always 0",
    parsingInvertsFormatting(keys({ parse: (key, options) => ({ ...parseKey(key, options), groupId: 0 }) })),
  ],
  [
    "parsingNeverCrashes",
    "a crash",
    parsingNeverCrashes(
      keys({
        parse: () => {
          throw new TypeError("crash");
        },
      }),
    ),
  ],
  [
    "chunksTileTheTokens",
    "the last chunk is padded to a whole block",
    chunksTileTheTokens(chunksWithEnds((ends, index) => ends[index]! + (index === ends.length - 1 ? 1 : 0))),
  ],
  [
    "masksOnlyShrink",
    "the mask is forgotten",
    masksOnlyShrink((sizes, tokenLen, hashes, { chunkMask: _, ...rest } = {}) =>
      chunkTokens(sizes, tokenLen, hashes, rest),
    ),
  ],
  [
    "putRanksPartitionTheChunks",
    "everybody puts everything",
    putRanksPartitionTheChunks((sizes, tokenLen, hashes, { maskNum } = {}) =>
      chunkTokens(sizes, tokenLen, hashes, { maskNum }),
    ),
  ],
  [
    "chunksGrowAtTheEnd",
    "the first chunk takes what is left over",
    chunksGrowAtTheEnd((...args) => {
      const chunks = chunkTokens(...args);
      const starts = Uint32Array.from(chunks.starts, (start) => start + (args[1] % args[0].blockSize));
      return { length: chunks.length, starts, ends: chunks.ends, hash: (index) => chunks.hash(index) };
    }),
  ],
  [
    "coarseHashIsTheLastFineOne",
    "the first fine hash",
    coarseHashIsTheLastFineOne((hashes, hashBlockSize, blockSize) => {
      const scale = blockSize / hashBlockSize;
      const list = Array.from(
        { length: Math.floor(hashes.length / scale) },
        (_, index) => hashes.at(index * scale)!,
      );
      return Object.assign(new BlockHashListWithBlockSize(hashes, hashBlockSize, blockSize), {
        at: (index: number) => list[index],
        slice: () => list,
        [Symbol.iterator]: () => list[Symbol.iterator](),
      });
    }),
  ],
  [
    "aHitIsAlignedAndBelowThePrompt",
    "a hit that covers the last token",
    aHitIsAlignedAndBelowThePrompt(
      coordinator((own) => ({ alignLookupLength: (length: number) => own.alignLookupLength(length + 1) })),
    ),
  ],
  [
    "aHitLoadsOnlyStoredBlocks",
    "all blocks are loaded",
    aHitLoadsOnlyStoredBlocks(
      coordinator((own) => ({
        loadMask: (...args: Parameters<MooncakeStoreCoordinator["loadMask"]>) =>
          own.loadMask(...args).map((mask) => new Uint8Array(mask.length).fill(1)),
      })),
    ),
  ],
  [
    "moreBlocksNeverShortenAHit",
    "a hit only while few blocks are there",
    moreBlocksNeverShortenAHit(
      coordinator((own) => ({
        findLongestCacheHit: (...args: Parameters<MooncakeStoreCoordinator["findLongestCacheHit"]>) => {
          const hit = own.findLongestCacheHit(...args);
          return hit.hitLength > 2 * own.schedulerBlockSize ? { ...hit, hitLength: 0 } : hit;
        },
      })),
    ),
  ],
  [
    "theLookupMaskLosesNothing",
    "a mask that leaves out every other block",
    theLookupMaskLosesNothing(
      coordinator(() => ({
        lookupMaskOf: (_: number, end: number) =>
          Uint8Array.from({ length: end }, (_block, index) => index % 2),
      })),
    ),
  ],
  [
    "masksOnlyShrinkWork",
    "a mask of another length",
    masksOnlyShrinkWork(
      coordinator((own) => ({ storeMask: () => own.kvCacheGroups.map(() => new Uint8Array(1000).fill(1)) })),
    ),
  ],
];

for (const [law, fault, property] of broken)
  test(`${law} fails for: ${fault}`, () => {
    const { failed, errorInstance } = fc.check(property, { seed, numRuns: 2000 }) as fc.RunDetails<unknown>;
    assert.ok(failed, "no counterexample was found");
    assert.ok(errorInstance);
  });

test.run();
