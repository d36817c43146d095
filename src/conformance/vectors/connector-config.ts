import {
  DEFAULT_KV_LOAD_FAILURE_POLICY,
  DEFAULT_RETENTION_INTERVAL,
} from "../../connector/connector-config.js";
import {
  MooncakeStoreConnectorStats,
  type OperationRecord,
} from "../../connector/metrics/connector-stats.js";
import { MooncakeStorePromMetrics, type PromMetricOptions } from "../../connector/metrics/prom-metrics.js";
import {
  DEFAULT_DISK_STAGING_BUFFER_BYTES,
  estimateDiskOffloadStagingBytes,
  splitDiskOffloadLoadBatches,
  usableDiskOffloadBufferBudgetBytes,
} from "../../connector/worker/disk-staging.js";
import { makeMooncakeGroupId } from "../../connector/worker/group-id.js";
import { MooncakeStoreWorker } from "../../connector/worker/mooncake-store-worker.js";
import { classifyReplicaTier } from "../../connector/worker/replica-tier.js";
import { MOONCAKE_NO_AVAILABLE_HANDLE } from "../../connector/worker/save-pipeline.js";
import { resolveStoreTpSize } from "../../connector/worker/select-layout.js";
import { DEFAULT_HASH_ALGORITHM } from "../../hash/algorithm.js";
import type { ReplicaDescriptor } from "../../store/shared/replica.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { inputWithFloats, list, number, object, text } from "./json.js";
import { syntheticHash } from "./scheduler.js";
import { preferredSegment, readWorkerConfig, readWorkerOptions, setupCall } from "./worker-config.js";
import { RecordingStore } from "./worker-store.js";

function splitDiskBatches(input: JsonObject): JsonValue {
  const keys = list<string>(input, "keys");
  const sizes = list<readonly number[]>(input, "sizes").map(sum);
  const { batches, oversize } = splitDiskOffloadLoadBatches(
    sizes,
    number(input, "usable_budget_bytes"),
    number(input, "raw_budget_bytes"),
  );
  return {
    batches: batches?.map(({ start, end }) => keys.slice(start, end)) ?? [],
    oversize_key: oversize === undefined ? null : keys[oversize]!,
  };
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

/** What the replicas of a vector are called. */
const REPLICA_KINDS: Readonly<Record<string, ReplicaDescriptor["kind"]>> = {
  mem: "memory",
  disk: "disk",
  local: "local-disk",
  other: "nof",
};

function readStats(data: JsonObject): MooncakeStoreConnectorStats {
  const stats = new MooncakeStoreConnectorStats();
  for (const operation of Object.keys(data))
    for (const row of list<JsonObject>(data, operation))
      stats.recordOperation(operation, {
        durationSeconds: number(row, "duration_seconds"),
        numKeys: number(row, "num_keys"),
        numBytes: number(row, "num_bytes"),
        status: text(row, "status") as OperationRecord["status"],
        numFailedKeys: number(row, "num_failed_keys"),
      });
  return stats;
}

/** Registers the metrics with a client that only writes down what it is told. */
function promMetrics(): JsonValue {
  const registered: JsonObject[] = [];
  const observations: JsonValue[] = [];
  class Metric {
    readonly #name: string;
    constructor(
      kind: string,
      { name, help, labelNames, ...rest }: PromMetricOptions & { buckets?: number[] | undefined },
    ) {
      this.#name = name;
      registered.push({
        kind,
        name,
        documentation: help,
        ...(rest.buckets && { buckets: rest.buckets }),
        labelnames: labelNames,
      });
    }
    labels(...values: string[]) {
      const note = (what: string) => (value: number) =>
        void observations.push([this.#name, values, what, value]);
      return { inc: note("inc") as (value?: number) => void, observe: note("observe") };
    }
  }
  class Counter extends Metric {
    constructor(options: PromMetricOptions) {
      super("counter", options);
    }
  }
  class Histogram extends Metric {
    constructor(options: PromMetricOptions & { readonly buckets: number[] }) {
      super("histogram", options);
    }
  }
  const labels = { model_name: "m", engine: "0" };
  const metrics = new MooncakeStorePromMetrics({ client: { Counter, Histogram }, labels });
  const stats = new MooncakeStoreConnectorStats();
  const record = {
    durationSeconds: 0.25,
    numKeys: 3,
    numBytes: 100,
    status: "partial_failure",
    numFailedKeys: 1,
  } as const;
  stats.recordOperation("save_put", record);
  stats.recordOperation("load_get", {
    ...record,
    durationSeconds: 0.5,
    status: "ok",
    numKeys: 2,
    numBytes: 7,
    numFailedKeys: 0,
  });
  metrics.observe(stats);
  return { registered, observations };
}

function workerInit(input: JsonObject): JsonValue {
  const config = object(input, "config");
  const options = readWorkerOptions(config);
  const worker = new MooncakeStoreWorker({
    ...options,
    config: readWorkerConfig(config),
    store: new RecordingStore([], options.supportsGroupIds === true),
  });
  const setup = setupCall(config);
  const { settings } = worker;
  const { groups, coordinator } = settings;
  return {
    setup_calls: [{ ...setup, args: setup.args.map((arg) => (typeof arg === "number" ? String(arg) : arg)) }],
    can_put: settings.canPut,
    capacity_only: settings.capacityOnly,
    block_size: settings.blockSize,
    hash_block_size: settings.hashBlockSize,
    tp_rank: settings.tpRank,
    pp_rank: settings.ppRank,
    pcp_rank: settings.pcpRank,
    dcp_rank: settings.dcpRank,
    is_hma_required: settings.isHmaRequired,
    enable_group_semantics: settings.enableGroupSemantics,
    supports_group_ids: options.supportsGroupIds === true,
    preferred_segment: options.preferredSegment ?? null,
    replicate_config: {
      replica_num: 1,
      with_soft_pin: false,
      preferred_segment: preferredSegment(config) ?? "",
      group_ids: options.supportsGroupIds === true ? [] : null,
    },
    disk_offload_buffer_budget_bytes: options.diskOffloadBufferBudgetBytes ?? null,
    load_async: settings.loadAsync,
    enable_kv_events: settings.enableKvEvents,
    num_recv_threads: Math.max(1, options.recvThreads ?? 1),
    ...(groups && {
      store_tp_size: groups.storeTpSize ?? null,
      replication_factors: [...groups.replicationFactors],
      lookup_key_prefixes: groups.lookupKeyPrefixes.map((prefixes) => [...prefixes]),
      groups: groups.databases.map(({ storeLayout, metadata, blockSize, hashBlockSize }) => ({
        block_size: blockSize,
        hash_block_size: hashBlockSize,
        layout: storeLayout.constructor.name,
        shards: [...storeLayout.localShardIds],
        example_keys: storeLayout.localShardIds.map((shard) =>
          storeLayout.keyFor(shard, syntheticHash(1, 0)),
        ),
        metadata: {
          model_name: metadata.modelName,
          tp_rank: metadata.tpRank,
          pcp_rank: metadata.pcpRank,
          dcp_rank: metadata.dcpRank,
          pp_rank: metadata.ppRank,
          group_id: metadata.groupId,
          cache_prefix: metadata.cachePrefix,
          store_namespace: metadata.storeNamespace,
        },
      })),
    }),
    ...(coordinator && {
      coordinator: {
        lcm_block_size: coordinator.schedulerBlockSize,
        hash_block_size: coordinator.hashBlockSize,
        use_eagle: coordinator.useEagle,
        retention_interval: coordinator.retentionInterval,
        enable_partial_hash_hits: coordinator.enablePartialHashHits,
        group_block_sizes: coordinator.kvCacheGroups.map(({ kvCacheSpec }) => kvCacheSpec.blockSize),
        eagle_group_ids: [...coordinator.eagleGroupIds].sort((a, b) => a - b),
      },
    }),
  };
}

/** The ops of config.jsonl that are about the connector. */
export const connectorConfigHandlers: VectorHandlers = {
  resolve_store_tp_size: (_input, { text: line }) => ({
    value: resolveStoreTpSize(object(inputWithFloats(line), "extra_config")) ?? null,
  }),
  make_group_id: (input) => ({
    value: makeMooncakeGroupId(
      {
        cachePrefix: text(input, "cache_prefix"),
        modelName: text(input, "model_name"),
        storeNamespace: text(input, "store_namespace"),
      },
      text(input, "chunk_hash"),
    ),
  }),
  estimate_disk_staging_bytes: (input) => ({
    bytes: estimateDiskOffloadStagingBytes(sum(list<number>(input, "sizes"))),
  }),
  usable_disk_budget: (input) => ({
    bytes: usableDiskOffloadBufferBudgetBytes(
      number(input, "raw_budget_bytes"),
      Number(text(input, "ratio")),
    ),
  }),
  split_disk_batches: splitDiskBatches,
  classify_replica_tier: (input) => {
    const replicas = input["replicas"] === null ? null : list<string>(input, "replicas");
    // A replica whose own methods raise is of no known kind.
    return { tier: classifyReplicaTier(replicas?.map((name) => ({ kind: REPLICA_KINDS[name] ?? "dfs" }))) };
  },
  worker_init: workerInit,
  metrics_reduce: (input) => ({ reduced: readStats(object(input, "data")).reduce() }),
  prom_metrics: promMetrics,
  defaults: () => {
    const [, , segment, buffer] = setupCall({}).args;
    return {
      prefix_cache_retention_interval: DEFAULT_RETENTION_INTERVAL,
      kv_load_failure_policy: DEFAULT_KV_LOAD_FAILURE_POLICY,
      prefix_caching_hash_algo: DEFAULT_HASH_ALGORITHM,
      default_global_segment_size: String(segment),
      default_local_buffer_size: String(buffer),
      default_tenant_id: "default",
      no_available_handle: MOONCAKE_NO_AVAILABLE_HANDLE,
      default_disk_staging_buffer_bytes: DEFAULT_DISK_STAGING_BUFFER_BYTES,
    };
  },
};
