import type { ChunkRanges } from "../../layout/block-rows.js";
import { type CacheTensor, groupKernelBlocks } from "../../layout/cache-tensor.js";
import { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import { LBHNCStoreLayout } from "../../layout/lbhnc-store-layout.js";
import { LBNHCStoreLayout } from "../../layout/lbnhc-store-layout.js";
import { RankLocalStoreLayout } from "../../layout/rank-local-store-layout.js";
import type { Segment, SegmentTable } from "../../layout/segment-table.js";
import { type RankNamespace, StoreLayout } from "../../layout/store-layout.js";
import { TPShardedStoreLayout } from "../../layout/tp-sharded-store-layout.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { bytes, hex, list, number, object, optionalList, optionalNumber, text } from "./json.js";
import { readKeyMetadata } from "./key.js";

type SharedLayoutClass = typeof LBHNCStoreLayout | typeof LBNHCStoreLayout;

/** Metadata for ops that look at no key. */
const NO_METADATA = { modelName: "model" };

// Members that a vector leaves out did not matter where it was recorded; any size will do.
const ANY_BLOCK_SIZE = 16;

function sharedLayoutClass(input: JsonObject): SharedLayoutClass | typeof TPShardedStoreLayout {
  const classes: Record<string, SharedLayoutClass> = { LBHNC: LBHNCStoreLayout, LBNHC: LBNHCStoreLayout };
  return classes[text(input, "layout")] ?? TPShardedStoreLayout;
}

function sizes(input: JsonObject): { blockSize: number; hashBlockSize: number | undefined } {
  return {
    blockSize: optionalNumber(input, "block_size") ?? ANY_BLOCK_SIZE,
    hashBlockSize: optionalNumber(input, "hash_block_size"),
  };
}

function readMetadata(input: JsonObject): typeof NO_METADATA {
  return input["metadata"] === undefined ? NO_METADATA : readKeyMetadata(object(input, "metadata"));
}

function sharedLayout(input: JsonObject): TPShardedStoreLayout {
  return Reflect.construct(sharedLayoutClass(input), [
    {
      ...sizes(input),
      metadata: readMetadata(input),
      tpSize: number(input, "local_tp_size"),
      tpRank: number(input, "tp_rank"),
      storeTpSize: number(input, "store_tp_size"),
      numKvHeads: number(input, "num_kv_heads"),
      checkBlockIds: false,
    },
  ]) as TPShardedStoreLayout;
}

/** A rank-local layout with the descriptors that the vector sets directly. */
function rankLocalLayout(input: JsonObject): RankLocalStoreLayout {
  const layout = new RankLocalStoreLayout({
    ...sizes(input),
    metadata: readMetadata(input),
    checkBlockIds: false,
  });
  layout.setKvCachesBaseAddr((optionalList<string>(input, "base_addrs") ?? []).map(BigInt));
  layout.setBlockLen(optionalList<number>(input, "block_lens") ?? []);
  return layout;
}

function anyLayout(input: JsonObject): StoreLayout {
  return input["layout"] === undefined ? rankLocalLayout(input) : sharedLayout(input);
}

function readTensors(input: JsonObject): CacheTensor[] {
  const storages = list<JsonObject>(input, "storages");
  return list<JsonObject>(input, "tensors").map((tensor) => {
    const storage = storages[number(tensor, "storage")]!;
    return {
      address: BigInt(text(tensor, "data_ptr")),
      storageAddress: BigInt(text(storage, "address")),
      storageBytes: BigInt(number(storage, "nbytes")),
      shape: list<number>(tensor, "shape"),
      strides: list<number>(tensor, "stride"),
      elementSize: number(tensor, "element_size"),
    };
  });
}

function readChunks(input: JsonObject): ChunkRanges {
  const chunks = list<readonly number[]>(input, "chunks");
  return {
    length: chunks.length,
    starts: chunks.map(([start]) => start!),
    ends: chunks.map(([, end]) => end!),
  };
}

function writeTable(table: SegmentTable): JsonObject {
  const rows = Array.from(table.blockIds, (_, row) => table.row(row));
  return {
    addrs: rows.map((row) => row.map(({ address }) => String(address))),
    sizes: rows.map((row) => row.map(({ size }) => Number(size))),
    block_ids: [...table.blockIds],
  };
}

function writeSegments(segments: readonly Segment[]): { addrs: string[]; sizes: number[] } {
  return {
    addrs: segments.map(({ address }) => String(address)),
    sizes: segments.map(({ size }) => Number(size)),
  };
}

function prepared(layout: StoreLayout, input: JsonObject): JsonObject {
  return writeTable(
    layout.prepareValues(
      readChunks(input),
      list<number>(input, "block_ids"),
      optionalList<number>(input, "shard_ids"),
    ),
  );
}

function registerKvCaches(input: JsonObject): JsonValue {
  const layout = anyLayout(input);
  const numBlocks = number(input, "num_blocks");
  const grouping = input["group_kernel_blocks"] === true;
  const tensors = readTensors(input).map((tensor) =>
    grouping ? groupKernelBlocks(tensor, numBlocks) : tensor,
  );
  layout.registerKvCaches(tensors, numBlocks);
  return {
    ...descriptors(layout),
    ...(grouping && {
      grouped: tensors.map(({ shape, strides, address }) => ({
        shape,
        stride: strides,
        data_ptr: String(address),
      })),
    }),
    ...(input["chunks"] !== undefined && { prepared: prepared(layout, input) }),
    ...(input["block_id"] !== undefined &&
      layout instanceof RankLocalStoreLayout && {
        block_value: writeSegments(layout.prepareValueForBlock(number(input, "block_id"))),
      }),
  };
}

function descriptors(layout: StoreLayout): JsonObject {
  if (layout instanceof RankLocalStoreLayout)
    return { kv_caches_base_addr: layout.kvCachesBaseAddr.map(String), block_len: layout.blockLen };
  const shards = (layout as TPShardedStoreLayout).segmentTemplates;
  return {
    segments: {
      addr_bases: shards.map((shard) => shard.map(({ base }) => String(base))),
      block_strides: shards.map((shard) => shard.map(({ stride }) => Number(stride))),
      sizes: shards.map((shard) => shard.map(({ size }) => Number(size))),
    },
  };
}

function prepareValues(input: JsonObject): JsonValue {
  const layout = anyLayout(input);
  if (input["tensors"] !== undefined && input["unregistered"] !== true)
    layout.registerKvCaches(readTensors(input), number(input, "num_blocks"));
  return prepared(layout, input);
}

/** A member of a token database on top of a shared layout. */
function database(input: JsonObject): JsonValue {
  const storeLayout = sharedLayout(input);
  const database = new ChunkedTokenDatabase({ ...sizes(input), metadata: readMetadata(input), storeLayout });
  switch (text(input, "call")) {
    case "key_for":
      return database.keyFor(new Uint8Array(4));
    case "kv_caches_base_addr":
      return database.kvCachesBaseAddr.map(String);
    case "block_len":
      return database.blockLen;
    case "set_kv_caches_base_addr":
      database.setKvCachesBaseAddr([]);
      return null;
    case "set_block_len":
      database.setBlockLen([]);
      return null;
    case "prepare_value_for_block":
      return writeSegments(database.prepareValueForBlock(0));
    case "local_shard_ids":
      return database.storeLayout.localShardIds;
    case "process_tokens":
      return Array.from(
        database.processTokens(number(input, "token_len"), list<string>(input, "hashes").map(bytes)),
        ([start, end, hash]) => [start, end, hex(hash)],
      );
    default:
      throw new TypeError(`unknown member ${input["call"]}`);
  }
}

function rankLocalDatabase(input: JsonObject): ChunkedTokenDatabase {
  const storeLayout = rankLocalLayout(input);
  return new ChunkedTokenDatabase({ ...sizes(input), metadata: readMetadata(input), storeLayout });
}

/** The ops of layout_rank_local.jsonl and layout_tp_shared.jsonl. */
export const layoutHandlers: VectorHandlers = {
  abstract_store_layout: () => Reflect.construct(StoreLayout, [{ ...sizes({}), metadata: NO_METADATA }]),
  shared_namespace: (input) =>
    sharedLayoutClass(input).sharedNamespace(number(input, "store_tp_size"), number(input, "pp_size")),
  construct: (input) => {
    const layout = sharedLayout(input);
    return {
      local_shard_ids: layout.localShardIds,
      shards_per_rank: layout.shardsPerRank,
      heads_per_store_shard: layout.headsPerStoreShard,
      local_num_kv_heads: layout.localNumKvHeads,
      store_tp_size: layout.storeTpSize,
      store_format: layout.storeFormat,
    };
  },
  local_shard_ids: (input) => anyLayout(input).localShardIds,
  key_for: (input) =>
    anyLayout(input).keyFor(optionalNumber(input, "shard_id") ?? 0, bytes(text(input, "chunk_hash"))),
  lookup_key_prefixes: (input) =>
    anyLayout(input).lookupKeyPrefixes(
      list(input, "rank_namespaces") as readonly JsonValue[] as readonly RankNamespace[],
    ),
  register_kv_caches: registerKvCaches,
  prepare_values: prepareValues,
  prepare_value: (input) => {
    const value = rankLocalLayout(input).prepareValue(
      number(input, "start"),
      number(input, "end"),
      list<number>(input, "block_ids"),
    );
    return { ...writeSegments(value.segments), block_id: value.blockId };
  },
  prepare_value_for_block: (input) =>
    writeSegments(rankLocalLayout(input).prepareValueForBlock(number(input, "block_id"))),
  database,
  database_key_for: (input) => rankLocalDatabase(input).keyFor(bytes(text(input, "chunk_hash"))),
  database_prepare_value_for_block: (input) => {
    const database = rankLocalDatabase(input);
    return {
      ...writeSegments(database.prepareValueForBlock(number(input, "block_id"))),
      kv_caches_base_addr: database.kvCachesBaseAddr.map(String),
      block_len: database.blockLen,
    };
  },
};
