import type { KeyMetadata } from "../../key/key-metadata.js";

/**
 * The Mooncake group of a chunk: objects of one group are evicted together. The unit is the chunk with all its shards,
 * so no rank is part of it. Mirrors `_make_mooncake_group_id`.
 */
export function makeMooncakeGroupId(
  metadata: Pick<KeyMetadata, "cachePrefix" | "modelName" | "storeNamespace">,
  chunkHash: string,
): string {
  const prefix = metadata.cachePrefix === "" ? "" : `${metadata.cachePrefix}@`;
  return `vllm-mooncake-store:${prefix}${metadata.modelName}${metadata.storeNamespace}@${chunkHash}`;
}

/** The text after the last `@` of a key: the chunk's hash. */
export function chunkHashOfKey(key: string): string {
  return key.slice(key.lastIndexOf("@") + 1);
}
