import { eagleProofMargin } from "./block-sizes.js";
import {
  coverageSpec,
  isFullAttention,
  type KvCacheGroupSpec,
  type LayerSpec,
  prefixCacheable,
  specIdentity,
} from "./kv-cache-spec.js";
import { type ManagerName, managerName, supportsFineGrainedHashLookup } from "./manager.js";

/** Groups with equal specs: they are searched once, and a block counts only where all of them have it. */
export interface StoreSpecGroup {
  /** The spec with which they are searched; its window covers the retained tokens. */
  readonly spec: LayerSpec;
  /** Members, in order. */
  readonly groupIds: readonly number[];
  /** The kind of search, by the name of vLLM's manager. */
  readonly manager: ManagerName;
  /** Whether the last matched block is dropped, so that the draft model recomputes it. */
  readonly useEagle: boolean;
}

/**
 * Merges groups of equal specs, leaves out those that are not prefix-cacheable, and sorts full attention first. One
 * speculative member makes its whole spec group speculative; where `useEagle` is set but no group is marked, all are.
 * Mirrors `_verify_and_split_kv_cache_groups`.
 */
export function splitSpecGroups(
  kvCacheGroups: readonly KvCacheGroupSpec[],
  useEagle: boolean,
): StoreSpecGroup[] {
  const byIdentity = new Map<string, { spec: LayerSpec; groupIds: number[]; useEagle: boolean }>();
  for (const [id, group] of kvCacheGroups.entries()) {
    if (!prefixCacheable(group.kvCacheSpec)) continue;
    const spec = coverageSpec(group.kvCacheSpec);
    const identity = specIdentity(spec);
    const merged = byIdentity.get(identity) ?? { spec, groupIds: [], useEagle: false };
    merged.groupIds.push(id);
    merged.useEagle ||= group.isEagleGroup ?? false;
    byIdentity.set(identity, merged);
  }
  const merged = [...byIdentity.values()];
  const sorted = [
    ...merged.filter(({ spec }) => isFullAttention(spec)),
    ...merged.filter(({ spec }) => !isFullAttention(spec)),
  ];
  const all = useEagle && !sorted.some((group) => group.useEagle);
  return sorted.map((group) => ({
    ...group,
    useEagle: all || group.useEagle,
    manager: managerName(group.spec),
  }));
}

/** Tokens past a hit that a spec group must match before its last block is dropped. */
export function proofMargin(
  { spec }: StoreSpecGroup,
  hashBlockSize: number,
  enablePartialHashHits: boolean,
): number {
  const fine = enablePartialHashHits && supportsFineGrainedHashLookup(spec);
  return eagleProofMargin(spec.blockSize, hashBlockSize, fine);
}
