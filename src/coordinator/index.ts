export type { LookupOptions } from "./lookup/lookup.js";
export type { ExistsAnswers } from "./lookup/lookup-answers.js";
export { type LookupCandidates, lookupCandidates } from "./lookup/lookup-candidates.js";
export { decideLookup, findTailKeyBoundaries, type LookupDecision } from "./lookup/lookup-decision.js";
export {
  type LookupFailure,
  type LookupResult,
  LookupSession,
  type LookupSessionOptions,
  type LookupStep,
  type LookupWindows,
} from "./lookup/lookup-session.js";
export type { PrefixSearch } from "./lookup/prefix-search.js";
export { type LongestCacheHit, MooncakeStoreCoordinator } from "./mooncake-store-coordinator.js";
export {
  ABSENT,
  type BlockState,
  ExistenceTable,
  PRESENT,
  UNKNOWN,
  Wanted,
} from "./search/existence-table.js";
export type { GroupHit, Search } from "./search/group-search.js";
export type { LongestHit } from "./search/longest-hit.js";
export { type BlockMask, type ReachableBlocks, reachableBlockMask } from "./search/reachable-block-mask.js";
export {
  type BlockSizeOptions,
  eagleProofMargin,
  type KvCacheBlockSizes,
  partialHashHitsEnabled,
  resolveCacheHitAlignmentTokens,
  resolveDcpKvBlockSize,
  resolveDcpKvCacheSpec,
  resolveKvCacheBlockSizes,
} from "./spec/block-sizes.js";
export type { KvCacheConfig, MooncakeStoreCoordinatorOptions } from "./spec/coordinator-options.js";
export {
  type ChunkedLocalAttentionSpec,
  type CircularBufferSpec,
  type CrossAttentionSpec,
  type FullAttentionSpec,
  KV_CACHE_SPEC_KINDS,
  type KvCacheGroupSpec,
  type KvCacheSpec,
  type LayerSpec,
  type LayerSpecBase,
  layerSpecs,
  type MambaSpec,
  type MlaAttentionSpec,
  prefixCacheable,
  type RswaSpec,
  type SlidingWindowSpec,
  type UniformTypeKvCacheSpecs,
} from "./spec/kv-cache-spec.js";
export { type ManagerName, managerName, supportsFineGrainedHashLookup } from "./spec/manager.js";
export {
  mambaPrefillCheckpointPosition,
  replayBoundaries,
  validatePrefixCacheRetentionInterval,
} from "./spec/retention.js";
export type { StoreSpecGroup } from "./spec/spec-groups.js";
export {
  lookupRankNamespaces,
  type ParallelSizes,
  prefixCacheableGroupIds,
  tpReplicationFactor,
  validateKvCacheConfig,
} from "./spec/store-groups.js";
