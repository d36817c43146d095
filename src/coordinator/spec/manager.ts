import type { KvCacheSpec } from "./kv-cache-spec.js";
import { unwrapSpec } from "./kv-cache-spec.js";

/** vLLM's classes that search the blocks of one kind of cache, by their names there. */
export type ManagerName =
  | "FullAttentionManager"
  | "RSWAManager"
  | "SlidingWindowManager"
  | "ChunkedLocalAttentionManager"
  | "MambaManager"
  | "CircularBufferManager"
  | "CrossAttentionManager";

const MANAGERS = {
  full: "FullAttentionManager",
  mla: "FullAttentionManager",
  rswa: "RSWAManager",
  swa: "SlidingWindowManager",
  swa_mla: "SlidingWindowManager",
  chunked_local: "ChunkedLocalAttentionManager",
  mamba: "MambaManager",
  circular: "CircularBufferManager",
  cross: "CrossAttentionManager",
} as const;

/** Which of vLLM's managers searches a group. A uniform group is searched as its first layer. */
export function managerName(spec: KvCacheSpec): ManagerName {
  return MANAGERS[unwrapSpec(spec).kind];
}

/** Whether that manager can end a hit inside a block. Mirrors `supports_fine_grained_hash_lookup`. */
export function supportsFineGrainedHashLookup(spec: KvCacheSpec): boolean {
  const name = managerName(spec);
  return name === "FullAttentionManager" || name === "RSWAManager" || name === "MambaManager";
}
