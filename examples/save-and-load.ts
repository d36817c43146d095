// Saves the KV blocks of a prompt as an engine with four tensor-parallel ranks, and loads them as one with two.
import {
  BlockHasher,
  ChunkedTokenDatabase,
  kvCacheBytes,
  kvCacheTensors,
  LBHNCStoreLayout,
} from "mooncake-kv";
import { type KvStore, openStore } from "mooncake-kv/store";

const NUM_KV_HEADS = 8;
const STORE_TP_SIZE = 4;
const BLOCK_SIZE = 16;

/** The cache of one rank: its memory, its layout, and the chunks it deals with. */
async function createRank(store: KvStore, tpSize: number, tpRank: number) {
  const shape = {
    layout: "LBHNC",
    numLayers: 4,
    numBlocks: 32,
    numHeads: NUM_KV_HEADS / tpSize,
    blockSize: BLOCK_SIZE,
    contentSize: 128,
    elementSize: 2,
  } as const;
  const metadata = {
    modelName: "example-model",
    storeNamespace: LBHNCStoreLayout.sharedNamespace(STORE_TP_SIZE, 1),
  };
  const layout = new LBHNCStoreLayout({
    metadata,
    blockSize: BLOCK_SIZE,
    tpSize,
    tpRank,
    storeTpSize: STORE_TP_SIZE,
    numKvHeads: NUM_KV_HEADS,
  });
  const arena = await store.createArena(kvCacheBytes(shape));
  layout.registerKvCaches(kvCacheTensors(shape, arena.baseAddress), shape.numBlocks);
  const database = new ChunkedTokenDatabase({ metadata, blockSize: BLOCK_SIZE, storeLayout: layout });
  return { arena, layout, database };
}

const store = await openStore(process.env["STORE"] ?? "embedded:?capacity=64MiB");
const tokens = Uint32Array.from({ length: 200 }, (_, index) => index * 37);
const hashes = new BlockHasher({ blockSize: BLOCK_SIZE }).hash(tokens);

for (let tpRank = 0; tpRank < 4; tpRank++) {
  const { arena, layout, database } = await createRank(store, 4, tpRank);
  arena.bytes.fill(tpRank + 1); // what the model would have computed
  const chunks = database.chunks(hashes.length * BLOCK_SIZE, hashes);
  const blockIds = Array.from({ length: chunks.length }, (_, index) => 31 - index);
  const result = await store.putFrom(layout.keys(chunks), layout.prepareValues(chunks, blockIds));
  result.throwIfFailed();
  console.log(`rank ${tpRank} of 4 saved ${result.ok} objects`);
}

for (let tpRank = 0; tpRank < 2; tpRank++) {
  const { arena, layout, database } = await createRank(store, 2, tpRank);
  const chunks = database.chunks(hashes.length * BLOCK_SIZE, hashes);
  const blockIds = Array.from({ length: chunks.length }, (_, index) => index + 1);
  const result = await store.getInto(layout.keys(chunks), layout.prepareValues(chunks, blockIds));
  result.throwIfFailed();
  const found = new Set(arena.bytes);
  console.log(
    `rank ${tpRank} of 2 loaded ${result.ok} objects, written by ranks ${[...found]
      .filter(Boolean)
      .map((byte) => byte - 1)
      .join(" and ")}`,
  );
}
await store.close();
