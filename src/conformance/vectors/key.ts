import { type KeyMetadata, keyMetadata } from "../../key/key-metadata.js";
import { PoolKey } from "../../key/pool-key.js";
import type { Release } from "../../release.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { isObject, list, number, object, optionalNumber, optionalText, outcome, text } from "./json.js";

/** Key metadata of a vector. */
export function readKeyMetadata(input: JsonObject): KeyMetadata {
  return keyMetadata({
    modelName: text(input, "model_name"),
    tpRank: number(input, "tp_rank"),
    pcpRank: number(input, "pcp_rank"),
    dcpRank: number(input, "dcp_rank"),
    ppRank: number(input, "pp_rank"),
    groupId: optionalNumber(input, "group_id") ?? 0,
    cachePrefix: optionalText(input, "cache_prefix") ?? "",
    storeNamespace: optionalText(input, "store_namespace") ?? "",
  });
}

function readKey(input: JsonObject): PoolKey {
  return new PoolKey(readKeyMetadata(object(input, "metadata")), text(input, "chunk_hash"));
}

function writeKeyMetadata(metadata: KeyMetadata, release: Release): JsonObject {
  return {
    model_name: metadata.modelName,
    tp_rank: metadata.tpRank,
    pcp_rank: metadata.pcpRank,
    dcp_rank: metadata.dcpRank,
    pp_rank: metadata.ppRank,
    group_id: metadata.groupId,
    cache_prefix: metadata.cachePrefix,
    ...(release !== "vllm-0.27" && { store_namespace: metadata.storeNamespace }),
  };
}

/** The ops of keys.jsonl. */
export const keyHandlers: VectorHandlers = {
  key_metadata: (input, { release }) => writeKeyMetadata(readKeyMetadata(input), release),
  to_string: (input) => readKey(input).toString(),
  build_prefix: (input) => {
    const overrides = object(input, "overrides");
    return PoolKey.buildPrefix(readKeyMetadata(object(input, "metadata")), {
      tpRank: optionalNumber(overrides, "tp_rank"),
      pcpRank: optionalNumber(overrides, "pcp_rank"),
      dcpRank: optionalNumber(overrides, "dcp_rank"),
      ppRank: optionalNumber(overrides, "pp_rank"),
    });
  },
  build_key_string: (input) => PoolKey.buildKeyString(text(input, "key_prefix"), text(input, "chunk_hash")),
  compare: (input) => {
    const [a, b] = [readKey(object(input, "a")), readKey(object(input, "b"))];
    const ordered = (test: (order: number) => boolean): JsonValue =>
      outcome(() => test(PoolKey.compareHashes(a, b)));
    return {
      eq: a.equals(b),
      ne: !a.equals(b),
      lt: ordered((order) => order < 0),
      le: ordered((order) => order <= 0),
      gt: ordered((order) => order > 0),
      ge: ordered((order) => order >= 0),
      hash_equal: a.equals(b) ? a.stableHash() === b.stableHash() : null,
    };
  },
  sort: (input) => {
    const metadata = input["metadata"]!;
    const keys = list<string>(input, "chunk_hashes").map(
      (hash, index) =>
        new PoolKey(
          readKeyMetadata(isObject(metadata) ? metadata : (metadata as readonly JsonObject[])[index]!),
          hash,
        ),
    );
    return keys
      .map((key, position) => ({ key, position }))
      .sort((a, b) => PoolKey.compareHashes(a.key, b.key))
      .map(({ position }) => position);
  },
  set: (input) => {
    const seen = new Map<string, number>();
    const first = list<JsonObject>(input, "keys").map((entry, index) => {
      const { identity } = readKey(entry);
      if (!seen.has(identity)) seen.set(identity, index);
      return seen.get(identity)!;
    });
    return { unique: seen.size, first_index: first };
  },
};
