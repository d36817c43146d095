import type { PutOptions } from "../../store/shared/call-options.js";
import { CODE } from "../../store/shared/codes.js";
import type { JsonValue } from "../vectors/handler.js";
import { isObject } from "../vectors/json.js";

/**
 * A `config` of a step as put options, or the code that a Mooncake without NVMe-over-fabrics and distributed file system
 * gives for a field that `PutOptions` has no word for: this package never sends those.
 */
export function putOptions(config: JsonValue | undefined): PutOptions | number {
  if (!isObject(config)) return {};
  if (Number(config["nof_replica_num"] ?? 0) > 0) return CODE.INVALID_PARAMS;
  if (Number(config["dfs_replica_num"] ?? 0) > 0) return CODE.DFS_SERVICE_UNAVAILABLE;
  if (config["prefer_alloc_in_same_node"] === true) return CODE.INVALID_PARAMS;
  const preferred = config["preferred_segment"]
    ? [String(config["preferred_segment"])]
    : (config["preferred_segments"] as readonly string[] | undefined);
  const soft = config["soft_pin_action"] === "ENABLE" || config["with_soft_pin"] === true;
  return {
    ...(config["replica_num"] !== undefined && { replicaNum: Number(config["replica_num"]) }),
    ...(soft && { withSoftPin: true }),
    ...(config["soft_pin_ttl_ms"] !== undefined && { softPinTtlMs: Number(config["soft_pin_ttl_ms"]) }),
    ...(config["with_hard_pin"] !== undefined && { withHardPin: config["with_hard_pin"] === true }),
    ...(preferred && { preferredSegments: preferred }),
    ...(Array.isArray(config["group_ids"]) && { groupIds: config["group_ids"] as string[] }),
  };
}
