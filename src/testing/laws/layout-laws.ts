import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import type { Segment } from "../../layout/segment-table.js";
import { fillAddresses, highestAddress } from "../../layout/segment-templates.js";
import {
  blockTable,
  byteOffset,
  engineRanks,
  fullChunks,
  type Rank,
  type RegisteredLayout,
  type SharedModel,
  sharedModelAndTp,
  sharedModelAndTwoTps,
} from "../arbitraries/layout-arbitraries.js";
import fc from "../fast-check.js";

// Laws of store layouts. Each function returns a fast-check property; those of one layout take an arbitrary of it.

/** Every segment lies in the storage of a registered tensor. */
export function segmentsStayInTheirStorage(
  layouts: FastCheck.Arbitrary<RegisteredLayout>,
): FastCheck.IProperty<unknown[]> {
  return fc.property(withBlockTable(layouts), ({ tensors, layout, chunks, blockIds }) => {
    const table = layout.prepareValues(chunks, blockIds);
    for (let row = 0; row < table.length; row++)
      for (const segment of table.row(row))
        assert.ok(
          tensors.some(
            ({ storageAddress, storageBytes }) =>
              segment.address >= storageAddress &&
              segment.address + segment.size <= storageAddress + storageBytes,
          ),
          `segment ${segment.address} + ${segment.size} leaves every storage`,
        );
  });
}

/** No two segments of a block overlap, whichever shards they belong to. */
export function segmentsOfABlockDoNotOverlap(
  layouts: FastCheck.Arbitrary<RegisteredLayout>,
): FastCheck.IProperty<unknown[]> {
  return fc.property(layouts, fc.nat(), ({ layout, numBlocks }, any) => {
    const table = layout.prepareValues(fullChunks([0], layout.blockSize), [any % numBlocks]);
    const segments = Array.from(table.blockIds, (_, row) => table.row(row))
      .flat()
      .filter(({ size }) => size > 0n)
      .sort((a, b) => Number(a.address - b.address));
    for (const [i, { address }] of segments.entries()) {
      const before = segments[i - 1];
      assert.ok(!before || before.address + before.size <= address, `segments ${i - 1} and ${i} overlap`);
    }
  });
}

/**
 * `keys` and `prepareValues` list the same objects in the same order: chunk by chunk, in each the shards of the rank;
 * and naming the shards one by one gives the same keys and rows.
 */
export function rowsFollowKeys(
  layouts: FastCheck.Arbitrary<RegisteredLayout>,
): FastCheck.IProperty<unknown[]> {
  return fc.property(withBlockTable(layouts), ({ layout, chunks, blockIds }) => {
    const table = layout.prepareValues(chunks, blockIds);
    const keys = layout.keys(chunks);
    const shards = layout.localShardIds;
    assert.equal(keys.length, chunks.length * shards.length);
    assert.equal(table.length, keys.length);
    const index = Array.from({ length: keys.length }, (_, row) => Math.floor(row / shards.length));
    const shardIds = index.map((_, row) => shards[row % shards.length]!);
    const repeated = fullChunks(
      index.map((chunk) => chunks.starts[chunk]! / layout.blockSize),
      layout.blockSize,
    );
    const named = layout.prepareValues(repeated, blockIds, shardIds);
    for (const [row, chunk] of index.entries()) {
      assert.equal(keys.at(row), layout.keyFor(shardIds[row]!, chunks.hash(chunk)));
      assert.equal(table.blockIds[row], blockIds[chunks.starts[chunk]! / layout.blockSize]);
      assert.deepEqual(named.row(row), table.row(row));
    }
    assert.deepEqual([...named.blockIds], [...table.blockIds]);
    assert.deepEqual(
      layout.keys(repeated, shardIds).toArray(),
      shardIds.map((shardId, row) => layout.keyFor(shardId, repeated.hash(row))),
    );
  });
}

/** The shards of all ranks hold every byte of a block exactly once, whatever the TP size. */
export function shardsTileABlock(): FastCheck.IProperty<unknown[]> {
  return fc.property(sharedModelAndTp(), fc.nat(), ([model, tpSize], any) => {
    const block = any % model.numBlocks;
    const seen = new Map<string, number>();
    const shards: number[] = [];
    for (const rank of engineRanks(model, tpSize)) {
      shards.push(...rank.layout.localShardIds);
      const names = namedBytes(model, rank, block);
      const table = rank.layout.prepareValues(fullChunks([0], model.blockSize), [block]);
      for (let row = 0; row < table.length; row++)
        for (const { address, size } of table.row(row))
          for (let i = 0n; i < size; i++) {
            const name = names.get(Number(address + i - rank.baseAddress));
            assert.ok(name !== undefined, "a byte of another block");
            seen.set(name, (seen.get(name) ?? 0) + 1);
          }
    }
    assert.deepEqual(
      shards,
      Array.from({ length: model.storeTpSize }, (_, shard) => shard),
    );
    const { numLayers, storeTpSize, headsPerShard, blockSize, contentSize, elementSize } = model;
    assert.equal(seen.size, numLayers * storeTpSize * headsPerShard * blockSize * contentSize * elementSize);
    for (const [name, count] of seen) assert.equal(count, 1, name);
  });
}

/** What an engine of one TP size writes, an engine of another reads: every byte at its head, token and layer. */
export function otherTpReadsTheSame(): FastCheck.IProperty<unknown[]> {
  return fc.property(
    sharedModelAndTwoTps(),
    fc.uniqueArray(fc.nat(3), { minLength: 1 }),
    fc.integer(),
    ([model, writerTp, readerTp], picks, salt) => {
      const blocks = [...new Set(picks.map((pick) => pick % model.numBlocks))];
      const chunks = fullChunks([...blocks.keys()], model.blockSize);
      const store = new Map<string, Uint8Array>();
      for (const rank of engineRanks(model, writerTp)) {
        for (const block of blocks)
          for (const [offset, name] of namedBytes(model, rank, block))
            rank.bytes[offset] = byteFor(name, block, salt);
        const table = rank.layout.prepareValues(chunks, blocks);
        for (const [row, key] of rank.layout.keys(chunks).toArray().entries()) {
          assert.ok(!store.has(key), "two ranks write one key");
          store.set(key, gather(rank, table.row(row)));
        }
      }
      // The reader has other blocks for the same chunks.
      const targets = blocks.map((block) => model.numBlocks - 1 - block);
      for (const rank of engineRanks(model, readerTp)) {
        const table = rank.layout.prepareValues(chunks, targets);
        for (const [row, key] of rank.layout.keys(chunks).toArray().entries())
          scatter(rank, table.row(row), store.get(key)!);
        for (const [index, target] of targets.entries())
          for (const [offset, name] of namedBytes(model, rank, target))
            assert.equal(rank.bytes[offset], byteFor(name, blocks[index]!, salt), name);
      }
    },
  );
}

/** The fast loops compute `base + block id * stride` exactly, up to 2^64. */
export function addressesAreExact(): FastCheck.IProperty<unknown[]> {
  const small = fc.bigInt({ min: 0n, max: 1n << 52n });
  const base = fc.oneof(small, fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), fc.constant((1n << 53n) - 1n));
  const stride = fc.oneof(fc.constantFrom(0n, 1n, 16384n), fc.bigInt({ min: 0n, max: 1n << 40n }));
  const columns = fc.array(fc.tuple(base, stride), { maxLength: 40 });
  const uniform = fc
    .tuple(fc.array(base, { maxLength: 40 }), stride)
    .map(([bases, one]) => bases.map((each): [bigint, bigint] => [each, one]));
  return fc.property(
    fc.oneof(columns, uniform),
    fc.array(fc.nat(1 << 20), { minLength: 1, maxLength: 5 }),
    (pairs, blockIds) => {
      const templates = {
        bases: BigUint64Array.from(pairs, ([each]) => each),
        strides: BigUint64Array.from(pairs, ([, each]) => each),
        sizes: new BigUint64Array(pairs.length),
      };
      const highest = highestAddress(templates, Math.max(...blockIds));
      fc.pre(highest < 1n << 64n);
      const addresses = new BigUint64Array(pairs.length * blockIds.length);
      fillAddresses(addresses, BigUint64Array.from(blockIds, BigInt), templates, highest);
      const expected = blockIds.flatMap((id) => pairs.map(([first, step]) => first + BigInt(id) * step));
      assert.deepEqual([...addresses], expected);
    },
  );
}

function withBlockTable(layouts: FastCheck.Arbitrary<RegisteredLayout>) {
  return layouts.chain((registered) => blockTable(registered).map((table) => ({ ...registered, ...table })));
}

/** The bytes of one block in a rank's memory: by offset, what each is in the model. */
function namedBytes(model: SharedModel, rank: Rank, block: number): Map<number, string> {
  const names = new Map<number, string>();
  for (let layer = 0; layer < model.numLayers; layer++)
    for (let head = 0; head < rank.numHeads; head++)
      for (let token = 0; token < model.blockSize; token++)
        for (let byte = 0; byte < model.contentSize * model.elementSize; byte++)
          names.set(
            byteOffset(rank, { layer, block, head, token, byte }),
            `layer ${layer} head ${rank.firstHead + head} token ${token} byte ${byte}`,
          );
  return names;
}

function byteFor(name: string, block: number, salt: number): number {
  let hash = salt ^ (block * 0x9e37);
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x0100_0193);
  return (hash ^ (hash >>> 15)) & 0xff;
}

function gather({ bytes, baseAddress }: Rank, segments: readonly Segment[]): Uint8Array {
  return Buffer.concat(
    segments.map(({ address, size }) => {
      const start = Number(address - baseAddress);
      return bytes.subarray(start, start + Number(size));
    }),
  );
}

function scatter({ bytes, baseAddress }: Rank, segments: readonly Segment[], value: Uint8Array): void {
  let at = 0;
  for (const { address, size } of segments) {
    bytes.set(value.subarray(at, at + Number(size)), Number(address - baseAddress));
    at += Number(size);
  }
  assert.equal(at, value.length, "the value has the size that the reader expects");
}
