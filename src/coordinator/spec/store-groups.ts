import type { RankNamespace } from "../../layout/store-layout.js";
import { configChecks, configError } from "../checks.js";
import {
  checkKvCacheGroups,
  type KvCacheGroupSpec,
  type KvCacheSpec,
  layerSpecs,
  prefixCacheable,
} from "./kv-cache-spec.js";

/**
 * The engine's ids of the groups that the store holds: those that may be transferred and are cached by hash. Their
 * positions in this list are the group ids of keys, masks and boundaries. Mirrors `prefix_cacheable_group_ids`.
 */
export function prefixCacheableGroupIds(groups: readonly KvCacheGroupSpec[]): number[] {
  return [...groups.keys()].filter((id) => {
    const { enableKvTransfer = true, kvCacheSpec } = groups[id]!;
    return enableKvTransfer && prefixCacheable(kvCacheSpec);
  });
}

/**
 * Refuses cache groups that the connector can't store, and gives `prefixCacheableGroupIds` of the others. Mirrors
 * `MooncakeStoreConnector._validate_kv_cache_config`.
 *
 * @param pcpSize prefill context parallel size. Default: 1.
 * @throws MooncakeKvError `ERR_CONFIG` that lists everything unsupported: no group to store, cross attention, Mamba in
 * another mode than align, prefill context parallelism with several groups.
 */
export function validateKvCacheConfig(groups: readonly KvCacheGroupSpec[], pcpSize: number = 1): number[] {
  checkKvCacheGroups(groups);
  configChecks.whole("pcpSize", pcpSize, 1);
  const ids = prefixCacheableGroupIds(groups);
  if (ids.length === 0)
    throw configError(
      "no cache group can be stored; one that is transferred and prefix-cacheable is needed",
      {
        groups: groups.length,
      },
    );
  const unsupported: string[] = [];
  for (const id of ids) {
    const spec = groups[id]!.kvCacheSpec;
    if (spec.kind === "cross") unsupported.push(`group ${id} is cross attention`);
    if (spec.kind === "mamba" && spec.mambaCacheMode !== "align")
      unsupported.push(`group ${id} has mambaCacheMode "${spec.mambaCacheMode}" instead of "align"`);
  }
  if (ids.length > 1 && pcpSize > 1)
    unsupported.push(`prefill context parallel size ${pcpSize} with ${ids.length} groups`);
  if (unsupported.length > 0)
    throw configError(`the store does not support: ${unsupported.join("; ")}`, { unsupported });
  return ids;
}

/** How an engine is spread over ranks. Sizes left out are 1. */
export interface ParallelSizes {
  readonly tpSize?: number | undefined;
  readonly ppSize?: number | undefined;
  readonly pcpSize?: number | undefined;
  readonly dcpSize?: number | undefined;
}

/**
 * How many tensor-parallel ranks hold the same bytes of a group: 1 under DCP and for Mamba, all ranks for MLA, else as
 * many as share a KV head. Mirrors `_spec_tp_replication_factor`.
 *
 * @param totalKvHeads KV heads of the whole model.
 */
export function tpReplicationFactor(spec: KvCacheSpec, sizes: ParallelSizes, totalKvHeads: number): number {
  const { tpSize = 1, dcpSize = 1 } = sizes;
  const layers = layerSpecs(spec);
  if (dcpSize > 1 || layers.some(({ kind }) => kind === "mamba")) return 1;
  if (layers.every(({ kind }) => kind === "mla" || kind === "swa_mla")) return tpSize;
  return Math.max(1, Math.floor(tpSize / totalKvHeads));
}

/**
 * The ranks that must all hold a block for it to be usable, in the order in which a lookup names them: prefill context
 * rank, then tensor-parallel rank, then pipeline rank innermost. Input of `StoreLayout.lookupKeyPrefixes`.
 *
 * @param replicationFactor what `tpReplicationFactor` says of the group.
 */
export function lookupRankNamespaces(sizes: ParallelSizes, replicationFactor: number): RankNamespace[] {
  const { tpSize = 1, ppSize = 1, pcpSize = 1, dcpSize = 1 } = sizes;
  for (const [name, size] of Object.entries({ tpSize, ppSize, pcpSize, dcpSize, replicationFactor }))
    configChecks.whole(name, size, 1);
  // DCP divides the TP ranks: each of them holds its own part, so none replicates another.
  const shards = dcpSize > 1 ? tpSize : Math.floor(tpSize / replicationFactor);
  const namespaces: RankNamespace[] = [];
  for (let pcpRank = 0; pcpRank < pcpSize; pcpRank++)
    for (let tpRank = 0; tpRank < shards; tpRank++)
      for (let ppRank = 0; ppRank < ppSize; ppRank++)
        namespaces.push([tpRank, pcpRank, dcpSize > 1 ? tpRank % dcpSize : 0, ppRank]);
  return namespaces;
}
