import type { OptionNames } from "../../checks/checks-for.js";
import { configChecks, configError } from "../checks.js";
import { checkKvCacheGroups, type KvCacheGroupSpec, prefixCacheable, unwrapSpec } from "./kv-cache-spec.js";

/** What a coordinator needs to know. All numbers are tokens. */
export interface MooncakeStoreCoordinatorOptions {
  /** The groups of the store, block sizes scaled for DCP; their positions are the group ids. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  /** A common multiple of the block sizes. */
  readonly schedulerBlockSize: number;
  /** A common divisor of the block sizes. */
  readonly hashBlockSize: number;
  /** Whether speculative decoding drops the last matched block. Default: false. */
  readonly useEagle?: boolean | undefined;
  /** How sparse groups are thinned out when they are stored; null, the default, keeps what any hit needs. */
  readonly retentionInterval?: number | null | undefined;
  /** Whether hits may end below the block size, at a hash. Default: false. */
  readonly enablePartialHashHits?: boolean | undefined;
}

const OPTIONS: OptionNames<MooncakeStoreCoordinatorOptions> = {
  kvCacheGroups: 1,
  schedulerBlockSize: 1,
  hashBlockSize: 1,
  useEagle: 1,
  retentionInterval: 1,
  enablePartialHashHits: 1,
};

/** An engine's cache configuration, as the engine core resolved it. */
export interface KvCacheConfig {
  /** All groups of the engine, block sizes as one rank sees them. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  readonly schedulerBlockSize: number;
  readonly hashBlockSize: number;
  /** What `resolveCacheHitAlignmentTokens` gives; null keeps hits on whole blocks. Default: null. */
  readonly cacheHitAlignmentTokens?: number | null | undefined;
  /** Decode context parallel size. Default: 1. */
  readonly dcpWorldSize?: number | undefined;
  readonly useEagle?: boolean | undefined;
  readonly retentionInterval?: number | null | undefined;
}

/** The names of `KvCacheConfig`. */
export const KV_CACHE_CONFIG: OptionNames<KvCacheConfig> = {
  kvCacheGroups: 1,
  schedulerBlockSize: 1,
  hashBlockSize: 1,
  cacheHitAlignmentTokens: 1,
  dcpWorldSize: 1,
  useEagle: 1,
  retentionInterval: 1,
};

/**
 * Checks what a coordinator is made of.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a spec that makes no sense, for cross attention, and for sizes of which one
 * does not divide the other.
 */
export function checkOptions(options: MooncakeStoreCoordinatorOptions): void {
  configChecks.names("MooncakeStoreCoordinator", options, OPTIONS);
  const { kvCacheGroups, schedulerBlockSize, hashBlockSize } = options;
  checkKvCacheGroups(kvCacheGroups);
  configChecks.whole("schedulerBlockSize", schedulerBlockSize, 1);
  configChecks.whole("hashBlockSize", hashBlockSize, 1);
  configChecks.whole("retentionInterval", options.retentionInterval ?? 0, 0);
  const multiple = (name: string, value: number, factorName: string, factor: number) => {
    if (value % factor !== 0)
      throw configError(`${name} ${value} is no multiple of ${factorName} ${factor}`, {
        name,
        value,
        factor,
      });
  };
  for (const [id, { kvCacheSpec }] of kvCacheGroups.entries()) {
    if (!prefixCacheable(kvCacheSpec)) continue;
    if (unwrapSpec(kvCacheSpec).kind === "cross")
      throw configError(`group ${id} is cross attention, which has no reusable prefix; leave it out`, { id });
    const name = `the block size of group ${id},`;
    multiple(name, kvCacheSpec.blockSize, "hashBlockSize", hashBlockSize);
    multiple("schedulerBlockSize", schedulerBlockSize, name, kvCacheSpec.blockSize);
  }
  multiple("schedulerBlockSize", schedulerBlockSize, "hashBlockSize", hashBlockSize);
}
