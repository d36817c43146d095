export type { ChunkRanges } from "./block-rows.js";
export { type CacheTensor, groupKernelBlocks, isNonOverlappingAndDense } from "./cache-tensor.js";
export { ChunkedTokenDatabase, type ChunkedTokenDatabaseOptions } from "./chunked-token-database.js";
export {
  type KvCacheShape,
  kvCacheBytes,
  kvCacheTensors,
} from "./kv-cache-tensors.js";
export { LBHNCStoreLayout } from "./lbhnc-store-layout.js";
export { LBNHCStoreLayout } from "./lbnhc-store-layout.js";
export { type BlockValue, RankLocalStoreLayout } from "./rank-local-store-layout.js";
export { type BlockIdColumn, type Segment, SegmentTable } from "./segment-table.js";
export type { SegmentTemplate } from "./segment-templates.js";
export {
  type HashedChunks,
  type RankNamespace,
  StoreLayout,
  type StoreLayoutOptions,
} from "./store-layout.js";
export {
  KV_CACHE_LAYOUTS,
  type KvCacheLayout,
  rankLocalNamespace,
  tpSharedMqaNamespace,
  tpSharedNamespace,
} from "./store-namespace.js";
export {
  type BlockPart,
  type BlockStrides,
  TPShardedStoreLayout,
  type TPShardedStoreLayoutOptions,
} from "./tp-sharded-store-layout.js";
