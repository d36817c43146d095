import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/blob-block-hashes.js";
import { ChunkedTokenDatabase } from "../../src/layout/chunked-token-database.js";
import { LBHNCStoreLayout } from "../../src/layout/lbhnc-store-layout.js";

const metadata = { modelName: "m" };
const hashes = new BlobBlockHashes(Uint8Array.from([0, 1, 2, 3, 4]), 1);

test("the flat form and the tuples say the same", () => {
  const database = new ChunkedTokenDatabase({ metadata, blockSize: 16, hashBlockSize: 8 });
  const chunks = database.chunks(40, hashes);
  const tuples = [...database.processTokens(40, hashes)].map(([start, end, hash]) => [start, end, hash[0]]);
  assert.equal(tuples, [
    [0, 16, 1],
    [16, 32, 3],
    [32, 40, 4],
  ]);
  assert.equal(
    tuples,
    Array.from({ length: chunks.length }, (_, i) => [chunks.starts[i], chunks.ends[i], chunks.hash(i)[0]]),
  );
});

test("bad arguments are reported when the tuples are asked for, not when they are read", () => {
  const database = new ChunkedTokenDatabase({ metadata, blockSize: 16 });
  assert.throws(
    () => database.processTokens(17, hashes),
    (error: unknown) => isMooncakeKvError(error, "ERR_CHUNK"),
  );
});

test("a rank-local database keys and describes chunks as release 0.27 did", () => {
  const database = new ChunkedTokenDatabase({ metadata, blockSize: 16, hashBlockSize: 8 });
  database.setKvCachesBaseAddr([1000n, 5000n]);
  database.setBlockLen([100]);
  assert.equal([database.kvCachesBaseAddr, database.blockLen], [[1000n, 5000n], [100]]);
  assert.is(database.keyFor(Uint8Array.of(1)), "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@01");
  assert.equal(database.prepareValue(16, 32, [4, 2]), {
    segments: [
      { address: 1200n, size: 100n },
      { address: 5200n, size: 100n },
    ],
    blockId: 2,
  });
  assert.equal(
    [...database.prepareValues(database.chunks(40, hashes), [4, 2, 7]).addresses],
    [1400n, 5400n, 1200n, 5200n, 1700n, 5700n],
  );
  assert.equal(database.prepareValueForBlock(1)[1], { address: 5100n, size: 100n });
});

test("on a shared layout the rank-local members are refused by name", () => {
  const storeLayout = new LBHNCStoreLayout({
    metadata,
    blockSize: 16,
    tpSize: 2,
    tpRank: 0,
    storeTpSize: 4,
    numKvHeads: 8,
  });
  const database = new ChunkedTokenDatabase({ metadata, blockSize: 16, storeLayout });
  const calls = [
    () => database.keyFor(new Uint8Array(1)),
    () => database.kvCachesBaseAddr,
    () => database.blockLen,
    () => database.setKvCachesBaseAddr([]),
    () => database.setBlockLen([]),
    () => database.prepareValue(0, 16, [0]),
    () => database.prepareValues(database.chunks(0, hashes), [0]),
    () => database.prepareValueForBlock(0),
  ];
  for (const call of calls)
    assert.throws(
      call,
      (error: unknown) => isMooncakeKvError(error, "ERR_LAYOUT") && /LBHNCStoreLayout/.test(error.message),
    );
  assert.is(database.chunks(16, hashes).length, 1);
});

test("sizes that do not fit are refused", () => {
  const storeLayout = new ChunkedTokenDatabase({ metadata, blockSize: 32 }).storeLayout;
  assert.throws(
    () => new ChunkedTokenDatabase({ metadata, blockSize: 16, storeLayout }),
    (error: unknown) => isMooncakeKvError(error, "ERR_LAYOUT") && /16.*32/.test(error.message),
  );
  assert.throws(
    () => new ChunkedTokenDatabase({ metadata, blockSize: 16, hashBlockSize: 5 }),
    (error: unknown) => isMooncakeKvError(error, "ERR_CHUNK"),
  );
});

test.run();
