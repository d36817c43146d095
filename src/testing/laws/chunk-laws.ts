import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import { BlockHashListWithBlockSize } from "../../chunk/chunk-hashes.js";
import type { ChunkSpans } from "../../chunk/chunk-spans.js";
import { type ChunkOptions, type ChunkSizes, chunkTokens } from "../../chunk/chunk-tokens.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import fc from "../fast-check.js";

// Laws of chunking. Each function takes the implementation under test and returns a fast-check property.

/** Chunks as the laws look at them. */
export type ChunksUnderTest = Pick<ChunkSpans, "length" | "starts" | "ends" | "hash">;

/** Cuts a request into chunks. `chunkTokens`, or somebody else's. */
export type ChunkImplementation = (
  sizes: ChunkSizes,
  tokenLen: number,
  hashes: BlobBlockHashes,
  options?: ChunkOptions,
) => ChunksUnderTest;

/** Makes a coarse hash list of a fine one. `BlockHashListWithBlockSize`, or somebody else's. */
export type CoarseHashes = (
  hashes: BlobBlockHashes,
  hashBlockSize: number,
  blockSize: number,
) => Pick<BlockHashListWithBlockSize, "length" | "at" | "slice"> & Iterable<Uint8Array>;

/** A request to be cut into chunks: sizes, whole hash blocks of tokens, and at least as many hashes. */
export interface ChunkCase {
  readonly sizes: ChunkSizes;
  readonly tokenLen: number;
  readonly hashes: BlobBlockHashes;
}

/** Requests of up to 40 hash blocks; hash i is the byte i. */
export function chunkCase(): FastCheck.Arbitrary<ChunkCase> {
  const size = fc.integer({ min: 1, max: 6 });
  return fc.tuple(size, size, fc.nat(40), fc.nat(3)).map(([hashBlockSize, scale, blocks, spare]) => ({
    sizes: { blockSize: hashBlockSize * scale, hashBlockSize },
    tokenLen: blocks * hashBlockSize,
    hashes: new BlobBlockHashes(
      Uint8Array.from({ length: blocks + spare }, (_, index) => index),
      1,
    ),
  }));
}

/** Chunks as texts that name their span and their hash. */
export function chunkTexts(chunks: ChunksUnderTest): string[] {
  return Array.from(
    chunks.starts,
    (start, index) => `${start}-${chunks.ends[index]}:${chunks.hash(index)[0]}`,
  );
}

/** The chunks follow each other, cover all tokens, and each is named by the hash of its last token. */
export function chunksTileTheTokens(
  chunk: ChunkImplementation = chunkTokens,
): FastCheck.IProperty<[ChunkCase]> {
  return fc.property(chunkCase(), ({ sizes, tokenLen, hashes }) => {
    const chunks = chunk(sizes, tokenLen, hashes);
    assert.equal(chunks.length, Math.ceil(tokenLen / sizes.blockSize));
    let at = 0;
    for (let index = 0; index < chunks.length; index++) {
      assert.equal(chunks.starts[index], at);
      at = Math.min(at + sizes.blockSize, tokenLen);
      assert.equal(chunks.ends[index], at);
      assert.equal(chunks.hash(index)[0], at / sizes.hashBlockSize - 1);
    }
    assert.equal(at, tokenLen);
  });
}

/** A masked chunk list is the unmasked one with chunks left out: exactly those the masks say. */
export function masksOnlyShrink(
  chunk: ChunkImplementation = chunkTokens,
): FastCheck.IProperty<[ChunkCase, number, boolean[] | undefined]> {
  const mask = fc.option(fc.array(fc.boolean(), { maxLength: 45 }), { nil: undefined });
  return fc.property(chunkCase(), fc.integer({ min: -5, max: 250 }), mask, (request, maskNum, chunkMask) => {
    const { sizes, tokenLen, hashes } = request;
    const all = chunkTexts(chunk(sizes, tokenLen, hashes));
    const options = { maskNum, ...(chunkMask && { chunkMask }) };
    const left = chunkTexts(chunk(sizes, tokenLen, hashes, options));
    const first = all.findIndex((_, at) => at * sizes.blockSize >= maskNum);
    const expected =
      first < 0 ? [] : all.slice(first).filter((_, index) => chunkMask?.[index] ?? chunkMask === undefined);
    assert.deepEqual(left, expected);
  });
}

/** The chunks of all put ranks together are all chunks, each once and in order within its rank. */
export function putRanksPartitionTheChunks(
  chunk: ChunkImplementation = chunkTokens,
): FastCheck.IProperty<[ChunkCase, number, number]> {
  return fc.property(
    chunkCase(),
    fc.integer({ min: 1, max: 7 }),
    fc.nat(100),
    (request, putStep, maskNum) => {
      const { sizes, tokenLen, hashes } = request;
      const all = chunkTexts(chunk(sizes, tokenLen, hashes, { maskNum }));
      const ranks = Array.from({ length: putStep }, (_, putStepRank) =>
        chunkTexts(chunk(sizes, tokenLen, hashes, { maskNum, putStep, putStepRank })),
      );
      for (const own of ranks)
        assert.deepEqual(
          own,
          all.filter((text) => own.includes(text)),
        );
      assert.equal(
        ranks.reduce((sum, own) => sum + own.length, 0),
        all.length,
      );
      assert.deepEqual(new Set(ranks.flat()), new Set(all));
    },
  );
}

/** The chunks of a longer request begin with the full chunks of a shorter one. */
export function chunksGrowAtTheEnd(
  chunk: ChunkImplementation = chunkTokens,
): FastCheck.IProperty<[ChunkCase, number]> {
  return fc.property(chunkCase(), fc.nat(40), ({ sizes, tokenLen, hashes }, fewer) => {
    const shortLen = Math.max(0, tokenLen - fewer * sizes.hashBlockSize);
    const full = Math.floor(shortLen / sizes.blockSize);
    const long = chunkTexts(chunk(sizes, tokenLen, hashes));
    const short = chunkTexts(chunk(sizes, shortLen, hashes));
    assert.deepEqual(short.slice(0, full), long.slice(0, full));
  });
}

/** A coarse hash list has one hash a whole coarse block: the last fine hash in it. */
export function coarseHashIsTheLastFineOne(
  coarseHashes: CoarseHashes = (...args) => new BlockHashListWithBlockSize(...args),
): FastCheck.IProperty<[ChunkCase]> {
  return fc.property(chunkCase(), ({ sizes, hashes }) => {
    const coarse = coarseHashes(hashes, sizes.hashBlockSize, sizes.blockSize);
    const scale = sizes.blockSize / sizes.hashBlockSize;
    const expected = Array.from(hashes, (hash) => hash[0]!).filter((_, index) => (index + 1) % scale === 0);
    assert.equal(coarse.length, expected.length);
    assert.deepEqual(
      Array.from(coarse, (hash) => hash[0]),
      expected,
    );
    assert.deepEqual(
      coarse.slice().map((hash) => hash[0]),
      expected,
    );
    assert.equal(coarse.at(coarse.length + 1), undefined);
  });
}
