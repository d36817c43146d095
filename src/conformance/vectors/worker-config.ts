import { DEFAULT_DISK_STAGING_BUFFER_BYTES } from "../../connector/worker/disk-staging.js";
import type { MooncakeStoreWorkerOptions } from "../../connector/worker/mooncake-store-worker.js";
import type { WorkerConfig } from "../../connector/worker/worker-config.js";
import { prefixCacheableGroupIds } from "../../coordinator/spec/store-groups.js";
import { MooncakeKvError } from "../../errors.js";
import type { CacheTensor } from "../../layout/cache-tensor.js";
import type { KvCacheLayout } from "../../layout/store-namespace.js";
import type { JsonObject } from "./handler.js";
import { isObject, list, number, optionalList, optionalNumber, optionalText, text } from "./json.js";
import { readConnectorConfig } from "./scheduler.js";

const STORAGE_BASE = 0x7f00_0000_0000n;
const STORAGE_STEP = 0x4000_0000n;

/** The configuration of a worker in a vector. */
export function readWorkerConfig(config: JsonObject): WorkerConfig {
  return {
    ...readConnectorConfig(config),
    model: optionalText(config, "model") ?? "tinymodel",
    numKvHeads: optionalNumber(config, "num_kv_heads") ?? 2,
    tpSize: optionalNumber(config, "tp_size"),
    tpRank: optionalNumber(config, "tp_rank"),
    ppSize: optionalNumber(config, "pp_size"),
    rank: optionalNumber(config, "rank"),
    pcpRank: optionalNumber(config, "pcp_rank"),
    dcpRank: optionalNumber(config, "dcp_rank"),
    cacheLayout: (optionalText(config, "kv_cache_layout") ?? "LBHNC") as KvCacheLayout,
  };
}

/** What else a vector says about its worker. */
export function readWorkerOptions(config: JsonObject): Omit<MooncakeStoreWorkerOptions, "config" | "store"> {
  const env = isObject(config["env"]) ? config["env"] : {};
  const mooncake = isObject(config["mooncake_config"]) ? config["mooncake_config"] : {};
  const budget = optionalNumber(config, "disk_offload_buffer_budget_bytes");
  return {
    preferredSegment: preferredSegment(config),
    supportsGroupIds: config["group_ids_supported"] !== false,
    diskOffloadBufferBudgetBytes:
      mooncake["enable_offload"] === true ? (budget ?? DEFAULT_DISK_STAGING_BUFFER_BYTES) : undefined,
    diskStagingUsableRatio: optionalNumberText(env, "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO"),
    recvThreads: optionalNumber(config, "recv_threads"),
    tierLog: env["VLLM_MOONCAKE_STORE_TIER_LOG"] === "1",
    useIntBlockHashes: env["VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES"] !== "0",
  };
}

/** The segment that the configuration prefers. */
export function preferredSegment(config: JsonObject): string | undefined {
  const extra = isObject(config["extra_config"]) ? config["extra_config"] : {};
  const env = isObject(config["env"]) ? config["env"] : {};
  return (
    (
      optionalText(extra, "preferred_segment") ??
      optionalText(env, "MOONCAKE_PREFERRED_SEGMENT") ??
      ""
    ).trim() || undefined
  );
}

function optionalNumberText(env: JsonObject, name: string): number | undefined {
  const value = optionalText(env, name);
  return value === undefined ? undefined : Number(value);
}

/** The cache tensors of the layers that the store's groups have, in order. */
export function readLayers(config: JsonObject): CacheTensor[] {
  const { kvCacheGroups } = readConnectorConfig(config);
  const stored = new Set(prefixCacheableGroupIds(kvCacheGroups));
  const storages = optionalList<number>(config, "storages") ?? [];
  return (optionalList<JsonObject>(config, "layers") ?? []).flatMap((layer): CacheTensor[] => {
    // Layers of group 1 are called g1…, those of a uniform group u0, u1 and so on.
    const [, group, uniform] = /^(?:g(\d+)|(u\d+))/.exec(text(layer, "name")) ?? [];
    if (uniform === undefined && !stored.has(Number(group))) return [];
    const storage = number(layer, "storage");
    const elementSize = number(layer, "itemsize");
    const storageAddress = STORAGE_BASE + BigInt(storage) * STORAGE_STEP;
    return [
      {
        address: storageAddress + BigInt(number(layer, "offset") * elementSize),
        storageAddress,
        storageBytes: BigInt(storages[storage]!),
        shape: list<number>(layer, "shape"),
        strides: list<number>(layer, "strides"),
        elementSize,
      },
    ];
  });
}

/** Units of vLLM's size texts. */
const UNITS: Readonly<Record<string, number>> = { gb: 2 ** 30, mb: 2 ** 20, kb: 2 ** 10, b: 1, "": 1 };

/** A call on a store as a vector writes it. */
export interface RecordedSetup {
  readonly method: "setup";
  readonly args: readonly (string | number)[];
  readonly kwargs: JsonObject;
}

/** The call that sets a store up, sizes as numbers. */
export function setupCall(config: JsonObject): RecordedSetup {
  const file = isObject(config["mooncake_config"])
    ? config["mooncake_config"]
    : { metadata_server: "http://m", master_server_address: "127.0.0.1:1" };
  const env = isObject(config["env"]) ? config["env"] : {};
  const member = (name: string, absent: string) => optionalText(file, name) ?? absent;
  const mode = member("mode", "embedded");
  if (mode !== "embedded" && mode !== "standalone-store")
    throw new MooncakeKvError("ERR_CONFIG", `mode is "${mode}"; it is embedded or standalone-store`, {
      mode,
    });
  const size = (name: string): number => {
    const value = file[name] ?? 2 ** 32;
    if (typeof value === "number") return value;
    const match = /^\s*([0-9.]+)\s*(gb|mb|kb|b|)\s*$/i.exec(String(value));
    return Math.trunc(Number(match?.[1]) * UNITS[(match?.[2] ?? "").toLowerCase()]!);
  };
  const tenant = member("tenant_id", "").trim();
  const host = (optionalText(env, "MOONCAKE_REQUESTER_LOCAL_HOSTNAME") ?? "").trim() || "10.0.0.7";
  return {
    method: "setup",
    args: [
      host,
      member("metadata_server", ""),
      size("global_segment_size"),
      size("local_buffer_size"),
      member("protocol", "rdma"),
      member("device_name", ""),
      member("master_server_address", ""),
    ],
    kwargs: tenant === "" || tenant === "default" ? {} : { tenant_id: tenant },
  };
}
