export {
  type BlockSizeOptions,
  eagleProofMargin,
  type KvCacheBlockSizes,
  partialHashHitsEnabled,
  resolveCacheHitAlignmentTokens,
  resolveDcpKvBlockSize,
  resolveDcpKvCacheSpec,
  resolveKvCacheBlockSizes,
} from "./block-sizes.js";
export type { KvCacheConfig, MooncakeStoreCoordinatorOptions } from "./coordinator-options.js";
export { ABSENT, type BlockState, ExistenceTable, PRESENT, UNKNOWN, Wanted } from "./existence-table.js";
export type { GroupHit, Search } from "./group-search.js";
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
} from "./kv-cache-spec.js";
export type { LongestHit } from "./longest-hit.js";
export type { LookupOptions } from "./lookup.js";
export type { ExistsAnswers } from "./lookup-answers.js";
export { type LookupCandidates, lookupCandidates } from "./lookup-candidates.js";
export { decideLookup, findTailKeyBoundaries, type LookupDecision } from "./lookup-decision.js";
export {
  type LookupFailure,
  type LookupResult,
  LookupSession,
  type LookupSessionOptions,
  type LookupStep,
  type LookupWindows,
} from "./lookup-session.js";
export { type ManagerName, managerName, supportsFineGrainedHashLookup } from "./manager.js";
export { type LongestCacheHit, MooncakeStoreCoordinator } from "./mooncake-store-coordinator.js";
export { type BlockMask, type ReachableBlocks, reachableBlockMask } from "./reachable-block-mask.js";
export {
  mambaPrefillCheckpointPosition,
  replayBoundaries,
  validatePrefixCacheRetentionInterval,
} from "./retention.js";
export type { StoreSpecGroup } from "./spec-groups.js";
export {
  lookupRankNamespaces,
  type ParallelSizes,
  prefixCacheableGroupIds,
  tpReplicationFactor,
  validateKvCacheConfig,
} from "./store-groups.js";
