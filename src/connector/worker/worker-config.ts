import type { OptionNames } from "../../checks/checks-for.js";
import { configChecks, configError } from "../../coordinator/checks.js";
import type { KvCacheGroupSpec } from "../../coordinator/spec/kv-cache-spec.js";
import { lookupRankNamespaces, tpReplicationFactor } from "../../coordinator/spec/store-groups.js";
import { type KeyMetadata, keyMetadata } from "../../key/key-metadata.js";
import { modelBasename } from "../../key/model-name.js";
import { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import { LBHNCStoreLayout } from "../../layout/lbhnc-store-layout.js";
import { LBNHCStoreLayout } from "../../layout/lbnhc-store-layout.js";
import type { KvCacheLayout } from "../../layout/store-namespace.js";
import { pythonText } from "../../python-text.js";
import { checkCount } from "../../request/checks.js";
import {
  CONNECTOR_CONFIG,
  type ConnectorConfig,
  type ConnectorSettings,
  settingsOf,
} from "../connector-config.js";
import { type SelectedLayout, selectStoreLayout } from "./select-layout.js";

/** What a worker must be told besides. Ranks default to 0, sizes to 1. */
export interface WorkerConfig extends ConnectorConfig {
  /** Path or name of the model; its last part stands in the keys. */
  readonly model: string;
  /** KV heads of the whole model, over all ranks. */
  readonly numKvHeads: number;
  readonly tpSize?: number | undefined;
  readonly tpRank?: number | undefined;
  readonly ppSize?: number | undefined;
  /** Rank among all workers of the engine, which says the pipeline stage. Default: `tpRank`. */
  readonly rank?: number | undefined;
  readonly pcpRank?: number | undefined;
  readonly dcpRank?: number | undefined;
  /** Physical order of the KV cache. Default: LBNHC, as in vLLM. */
  readonly cacheLayout?: KvCacheLayout | undefined;
}

const WORKER_CONFIG: OptionNames<WorkerConfig> = {
  ...CONNECTOR_CONFIG,
  model: 1,
  numKvHeads: 1,
  tpSize: 1,
  tpRank: 1,
  ppSize: 1,
  rank: 1,
  pcpRank: 1,
  dcpRank: 1,
  cacheLayout: 1,
};

/** Who a worker is, and how its groups are stored. */
export interface WorkerSettings extends ConnectorSettings {
  readonly tpRank: number;
  readonly ppRank: number;
  readonly pcpRank: number;
  readonly dcpRank: number;
  /**
   * Whether the engine has several cache groups, so that a block id is not unique: failed loads are then reported by
   * request.
   */
  readonly isHmaRequired: boolean;
  /** Whether objects are put with the group of their chunk. */
  readonly enableGroupSemantics: boolean;
  /** Absent for a capacity-only instance, which stores nothing. */
  readonly groups: WorkerGroups | undefined;
}

/** The store's groups as one rank stores them. */
export interface WorkerGroups {
  readonly metadata: KeyMetadata;
  /** Shards that several TP sizes share; undefined where every rank stores its own part. */
  readonly storeTpSize: number | undefined;
  /** How many TP ranks hold the same bytes of each group: they share the work of storing it. */
  readonly replicationFactors: readonly number[];
  readonly databases: readonly ChunkedTokenDatabase[];
  /** For each group the prefixes under which a block must exist. */
  readonly lookupKeyPrefixes: readonly (readonly string[])[];
}

/**
 * The settings of one worker. Mirrors `MooncakeStoreWorker.__init__` of vllm-0.33, without the store.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `connectorSettings`, for a rank outside its size, and for `custom_mem_pool`,
 * which only exists where Mooncake allocates GPU memory.
 */
export function workerSettings(config: WorkerConfig): WorkerSettings {
  const settings = settingsOf(configChecks.names("a worker's configuration", config, WORKER_CONFIG));
  const extra = config.extraConfig ?? {};
  const tpSize = size("tpSize", config.tpSize);
  const ppSize = size("ppSize", config.ppSize);
  const pcpSize = size("pcpSize", config.pcpSize);
  const dcpSize = size("dcpSize", config.dcpSize);
  const tpRank = rank("tpRank", config.tpRank, tpSize);
  const pcpRank = rank("pcpRank", config.pcpRank, pcpSize);
  const dcpRank = rank("dcpRank", config.dcpRank, dcpSize);
  checkCount("numKvHeads", config.numKvHeads, 1);
  const ppRank = Math.floor(checkCount("rank", config.rank ?? tpRank) / tpSize) % ppSize;
  if (extra["custom_mem_pool"])
    throw configError(
      `custom_mem_pool ${pythonText(extra["custom_mem_pool"])} is not available: memory is given to the store by registerKvCaches`,
      { custom_mem_pool: extra["custom_mem_pool"] },
    );
  const ranks = { tpSize, tpRank, ppSize, ppRank, pcpSize, pcpRank, dcpSize, dcpRank };
  return {
    ...settings,
    tpRank,
    ppRank,
    pcpRank,
    dcpRank,
    isHmaRequired: config.kvCacheGroups.length > 1,
    enableGroupSemantics:
      pythonText(extra["enable_group_semantics"] ?? false)
        .trim()
        .toLowerCase() === "true",
    groups: settings.coordinator && workerGroups(config, settings.coordinator.kvCacheGroups, settings, ranks),
  };
}

interface Ranks {
  readonly tpSize: number;
  readonly tpRank: number;
  readonly ppSize: number;
  readonly ppRank: number;
  readonly pcpSize: number;
  readonly pcpRank: number;
  readonly dcpSize: number;
  readonly dcpRank: number;
}

function workerGroups(
  config: WorkerConfig,
  groups: readonly KvCacheGroupSpec[],
  settings: ConnectorSettings,
  ranks: Ranks,
): WorkerGroups {
  const extra = config.extraConfig ?? {};
  const selected = selectStoreLayout({
    extraConfig: extra,
    groups,
    cacheLayout: config.cacheLayout ?? "LBNHC",
    numKvHeads: config.numKvHeads,
    ...ranks,
  });
  const metadata = keyMetadata({
    // As in vLLM a path of slashes has an empty name, and a key that begins with "@".
    modelName: /^\/*$/.test(config.model) ? "" : modelBasename(config.model),
    tpRank: ranks.tpRank,
    pcpRank: ranks.pcpRank,
    dcpRank: ranks.dcpRank,
    ppRank: ranks.ppRank,
    cachePrefix: extra["cache_prefix"] === undefined ? "" : pythonText(extra["cache_prefix"]),
    storeNamespace: selected.namespace,
  });
  const replicationFactors = groups.map(({ kvCacheSpec }) =>
    tpReplicationFactor(kvCacheSpec, ranks, config.numKvHeads),
  );
  const databases = groups.map(({ kvCacheSpec }, groupId) =>
    tokenDatabase({
      metadata: {
        ...metadata,
        groupId,
        tpRank: selected.shared ? ranks.tpRank : Math.floor(ranks.tpRank / replicationFactors[groupId]!),
      },
      blockSize: kvCacheSpec.blockSize,
      hashBlockSize: settings.hashBlockSize,
      selected,
      ranks,
      numKvHeads: config.numKvHeads,
    }),
  );
  return {
    metadata,
    storeTpSize: selected.shared?.storeTpSize,
    replicationFactors,
    databases,
    lookupKeyPrefixes: databases.map(({ storeLayout }, groupId) =>
      storeLayout.lookupKeyPrefixes(lookupRankNamespaces(ranks, replicationFactors[groupId]!)),
    ),
  };
}

function tokenDatabase(options: {
  readonly metadata: KeyMetadata;
  readonly blockSize: number;
  readonly hashBlockSize: number;
  readonly selected: SelectedLayout;
  readonly ranks: Ranks;
  readonly numKvHeads: number;
}): ChunkedTokenDatabase {
  const { metadata, blockSize, hashBlockSize, ranks, numKvHeads } = options;
  const { shared } = options.selected;
  if (shared === undefined) return new ChunkedTokenDatabase({ metadata, blockSize, hashBlockSize });
  const Layout = shared.cacheLayout === "LBHNC" ? LBHNCStoreLayout : LBNHCStoreLayout;
  const storeLayout = new Layout({
    metadata,
    blockSize,
    hashBlockSize,
    tpSize: ranks.tpSize,
    tpRank: ranks.tpRank,
    storeTpSize: shared.storeTpSize,
    numKvHeads,
  });
  return new ChunkedTokenDatabase({ metadata, blockSize, hashBlockSize, storeLayout });
}

function size(name: string, value: number | undefined): number {
  return checkCount(name, value ?? 1, 1);
}

/** A rank below its size; where the size is 1 the rank is 0, whatever is said. */
function rank(name: string, value: number | undefined, limit: number): number {
  if (limit === 1) return 0;
  const checked = checkCount(name, value ?? 0);
  if (checked >= limit)
    throw configError(`${name} is ${checked}; it must be below the size, ${limit}`, {
      [name]: checked,
      limit,
    });
  return checked;
}
