import type { ReplicaDescriptor } from "../../store/shared/replica.js";

/** Where an object is read from. */
export type ReplicaTier = "memory" | "disk" | "unknown";

/** The tier of an object's first replica, which is the one that is read. Mirrors `_classify_replica_tier`. */
export function classifyReplicaTier(
  replicas: readonly Pick<ReplicaDescriptor, "kind">[] | null | undefined,
): ReplicaTier {
  switch (replicas?.[0]?.kind) {
    case "memory":
      return "memory";
    case "disk":
    case "local-disk":
      return "disk";
    default:
      return "unknown";
  }
}

/** What one load read from where. */
export interface TierSummary {
  readonly reqId: string;
  readonly batchKeys: number;
  readonly keysByTier: Readonly<Record<ReplicaTier, number>>;
  readonly bytesByTier: Readonly<Record<ReplicaTier, number>>;
  readonly successKeys: number;
  readonly failedKeys: number;
}

/**
 * Sums up a load by tier. Mirrors `_log_mooncake_load_tier_summary`.
 *
 * @param bytes the size of each object.
 * @param failed positions of the objects that were not read.
 */
export function tierSummary(
  reqId: string,
  tiers: readonly ReplicaTier[],
  bytes: readonly number[],
  failed: ReadonlySet<number>,
): TierSummary {
  const keysByTier = { memory: 0, disk: 0, unknown: 0 };
  const bytesByTier = { memory: 0, disk: 0, unknown: 0 };
  for (const [index, tier] of tiers.entries()) {
    keysByTier[tier]++;
    if (!failed.has(index)) bytesByTier[tier] += bytes[index]!;
  }
  return {
    reqId,
    batchKeys: tiers.length,
    keysByTier,
    bytesByTier,
    successKeys: tiers.length - failed.size,
    failedKeys: failed.size,
  };
}
