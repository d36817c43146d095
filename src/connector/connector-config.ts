import type { OptionNames } from "../checks/checks-for.js";
import { configChecks, configError } from "../coordinator/checks.js";
import { MooncakeStoreCoordinator } from "../coordinator/mooncake-store-coordinator.js";
import { resolveCacheHitAlignmentTokens, resolveKvCacheBlockSizes } from "../coordinator/spec/block-sizes.js";
import type { KvCacheGroupSpec } from "../coordinator/spec/kv-cache-spec.js";
import { prefixCacheableGroupIds, validateKvCacheConfig } from "../coordinator/spec/store-groups.js";
import { describe } from "../errors.js";
import { checkCount } from "../request/checks.js";

/** What an engine does with the store. */
export type KvRole = "kv_producer" | "kv_consumer" | "kv_both";

/** Every `KvRole`. */
export const KV_ROLES: readonly KvRole[] = ["kv_producer", "kv_consumer", "kv_both"];

/** How sparse groups are thinned out unless a configuration says otherwise: only where a prompt may be replayed. */
export const DEFAULT_RETENTION_INTERVAL: 0 = 0;

/** What an engine does with a request of which a block could not be loaded. */
export type KvLoadFailurePolicy = "fail" | "recompute";

/** What vLLM does unless it is told otherwise. */
export const DEFAULT_KV_LOAD_FAILURE_POLICY: KvLoadFailurePolicy = "fail";

/** What both halves of the connector must be told alike. */
export interface ConnectorConfig {
  readonly kvRole: KvRole;
  /** All cache groups of the engine, with block sizes as one rank sees them. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  /** `cache_config.block_size`, in tokens. */
  readonly blockSize: number;
  /** `cache_config.prefix_match_unit`, in tokens. Default: what fits the groups. */
  readonly prefixMatchUnit?: number | undefined;
  /** `prefix_cache_retention_interval`, in tokens; null keeps everything. Default: 0. */
  readonly retentionInterval?: number | null | undefined;
  /** Whether speculative decoding drops the last matched block. Default: false. */
  readonly useEagle?: boolean | undefined;
  /** Decode context parallel size. Default: 1. */
  readonly dcpSize?: number | undefined;
  /** Prefill context parallel size. Default: 1. */
  readonly pcpSize?: number | undefined;
  /** Workers that report each job: all TP x PP x PCP ranks. Default: 1. */
  readonly worldSize?: number | undefined;
  /** Whether KV events are published. Default: false. */
  readonly enableKvEvents?: boolean | undefined;
  /** vLLM's `kv_connector_extra_config`, under its own names. Default: empty. */
  readonly extraConfig?: Readonly<Record<string, unknown>> | undefined;
}

/** The names of `ConnectorConfig`. */
export const CONNECTOR_CONFIG: OptionNames<ConnectorConfig> = {
  kvRole: 1,
  kvCacheGroups: 1,
  blockSize: 1,
  prefixMatchUnit: 1,
  retentionInterval: 1,
  useEagle: 1,
  dcpSize: 1,
  pcpSize: 1,
  worldSize: 1,
  enableKvEvents: 1,
  extraConfig: 1,
};

/** The settings that follow from a configuration. */
export interface ConnectorSettings {
  readonly kvRole: KvRole;
  /** What computed tokens are a multiple of. */
  readonly blockSize: number;
  readonly hashBlockSize: number;
  /** The engine's ids of the store's groups; their positions are the store's group ids. */
  readonly storeGroupIds: readonly number[];
  /** Store groups whose blocks are Mamba states, which only boundary puts store. */
  readonly boundaryStateGroupIds: ReadonlySet<number>;
  /** An instance that only lends memory to the pool: it neither loads nor saves. */
  readonly capacityOnly: boolean;
  /** Absent for a capacity-only instance. */
  readonly coordinator: MooncakeStoreCoordinator | undefined;
  readonly enablePartialHashHits: boolean;
  readonly loadAsync: boolean;
  readonly lookupAsync: boolean;
  readonly enableLookup: boolean;
  readonly saveDecodeCache: boolean;
  readonly enableKvEvents: boolean;
  readonly numWorkers: number;
  readonly isConsumer: boolean;
  /** Whether workers save at all. */
  readonly canPut: boolean;
}

/**
 * The settings of a configuration, the same on the scheduler side and in every worker.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for cache groups that the store can't hold, sizes that do not fit together, an
 * unknown role or an option of the wrong type.
 */
export function connectorSettings(config: ConnectorConfig): ConnectorSettings {
  return settingsOf(configChecks.names("a connector's configuration", config, CONNECTOR_CONFIG));
}

/** `connectorSettings` of a configuration that may have more members. */
export function settingsOf(config: ConnectorConfig): ConnectorSettings {
  const { kvRole, kvCacheGroups, dcpSize = 1 } = config;
  const extra = config.extraConfig ?? {};
  if (typeof extra !== "object")
    throw configError(`extraConfig is ${describe(extra)}; it must be an object`, { extraConfig: extra });
  if (!KV_ROLES.includes(kvRole))
    throw configError(`kvRole is ${describe(kvRole)}; it is one of ${KV_ROLES.join(", ")}`, { kvRole });
  const enableLookup = flag(extra, "enable_lookup", true);
  const saveDecodeCache = flag(extra, "save_decode_cache", false);
  const isConsumer = kvRole === "kv_consumer";
  const capacityOnly = isConsumer && !enableLookup && !saveDecodeCache;
  const storeGroupIds = capacityOnly
    ? prefixCacheableGroupIds(kvCacheGroups)
    : validateKvCacheConfig(kvCacheGroups, config.pcpSize);
  const sizes = {
    kvCacheGroups,
    blockSize: config.blockSize,
    dcpWorldSize: dcpSize,
    prefixMatchUnit: config.prefixMatchUnit,
  };
  const { schedulerBlockSize, hashBlockSize } = resolveKvCacheBlockSizes(sizes);
  const coordinator = capacityOnly
    ? undefined
    : MooncakeStoreCoordinator.fromKvCacheConfig({
        kvCacheGroups,
        schedulerBlockSize,
        hashBlockSize,
        cacheHitAlignmentTokens: resolveCacheHitAlignmentTokens(sizes),
        dcpWorldSize: dcpSize,
        useEagle: config.useEagle,
        retentionInterval:
          config.retentionInterval === undefined ? DEFAULT_RETENTION_INTERVAL : config.retentionInterval,
      });
  return {
    kvRole,
    blockSize: schedulerBlockSize,
    hashBlockSize,
    storeGroupIds,
    boundaryStateGroupIds: new Set(
      [...storeGroupIds.keys()].filter(
        (id) => kvCacheGroups[storeGroupIds[id]!]!.kvCacheSpec.kind === "mamba",
      ),
    ),
    capacityOnly,
    coordinator,
    enablePartialHashHits: coordinator?.enablePartialHashHits ?? false,
    loadAsync: flag(extra, "load_async", true),
    lookupAsync: flag(extra, "lookup_async", false),
    enableLookup,
    saveDecodeCache,
    enableKvEvents: config.enableKvEvents ?? false,
    numWorkers: checkCount("worldSize", config.worldSize ?? 1, 1),
    isConsumer,
    canPut: !isConsumer || saveDecodeCache,
  };
}

/** An option that is on or off. @throws MooncakeKvError `ERR_CONFIG` for anything but a boolean. */
function flag(extra: Readonly<Record<string, unknown>>, name: string, absent: boolean): boolean {
  const value = extra[name] ?? absent;
  if (typeof value !== "boolean")
    throw configError(`${name} is ${describe(value)}; it is true or false`, { option: name, value });
  return value;
}
