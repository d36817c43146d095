import {
  type CacheTensor,
  cacheTensorCodec,
  type StoreLayoutConfig,
  storeLayoutConfigCodec,
} from "../../../generated/typescript/index.js";
import { describe, isMooncakeKvError, MooncakeKvError } from "../../errors.js";
import type { BlobBlockHashes } from "../../hash/index.js";
import { UsageError } from "../usage-error.js";
import { parseHashes } from "./block-hashes.js";
import {
  type Members,
  membersOf,
  optionalList,
  optionalNumbers,
  requiredCount,
  requiredList,
} from "./members.js";

/** A layout with the memory it describes and the chunks to find in it. */
export interface LayoutDescription {
  readonly config: StoreLayoutConfig;
  readonly tensors: readonly CacheTensor[];
  readonly numBlocks: number;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly blockIds: readonly number[];
  readonly shardIds: readonly number[] | undefined;
  /** One a chunk. */
  readonly hashes: BlobBlockHashes | undefined;
}

const CONFIG = [
  "layout",
  "metadata",
  "block_size",
  "hash_block_size",
  "local_tp_size",
  "store_tp_size",
  "tp_rank",
  "num_kv_heads",
];
const MEMORY = ["tensors", "num_blocks", "chunks", "block_ids", "shard_ids", "hashes"];

/** The names by which keys call the layouts, beside those of the schema. */
const STORE_FORMATS: Readonly<Record<string, string>> = {
  rank_local: "RankLocal",
  tp_shared_lbhnc: "LBHNC",
  tp_shared_lbnhc: "LBNHC",
};

/**
 * A layout description of JSON: the members of the schemas' StoreLayoutConfig, CacheTensors and what to look for.
 *
 * @throws UsageError for members that are unknown, missing or of another kind; MooncakeKvError `ERR_SCHEMA` for a
 * config or tensor that the schema refuses.
 */
export function readLayoutDescription(value: unknown, source: string): LayoutDescription {
  const members = membersOf(value, source, [...CONFIG, ...MEMORY]);
  const chunks = requiredList(members, "chunks", source).map(readChunk);
  const hashes = optionalList(members, "hashes", source);
  if (hashes !== undefined && hashes.length !== chunks.length)
    throw new UsageError(`${hashes.length} hashes for ${chunks.length} chunks; each chunk needs one`);
  return {
    config: readConfig(members),
    tensors: requiredList(members, "tensors", source).map(readTensor),
    numBlocks: requiredCount(members, "num_blocks", source),
    starts: chunks.map(([start]) => start),
    ends: chunks.map(([, end]) => end),
    blockIds: optionalNumbers(members, "block_ids", source) ?? [],
    shardIds: optionalNumbers(members, "shard_ids", source),
    hashes: hashes && parseHashes(hashes),
  };
}

function readConfig(members: Members): StoreLayoutConfig {
  const own = Object.fromEntries(
    CONFIG.filter((name) => Object.hasOwn(members, name)).map((name) => [name, members[name]]),
  );
  const { layout, metadata } = own;
  return storeLayoutConfigCodec.fromJson({
    ...own,
    hash_block_size: own["hash_block_size"] ?? own["block_size"],
    layout: typeof layout === "string" ? (STORE_FORMATS[layout] ?? layout) : layout,
    metadata:
      typeof metadata === "object" && metadata !== null && !Array.isArray(metadata)
        ? { tp_rank: 0, pcp_rank: 0, dcp_rank: 0, pp_rank: 0, ...metadata }
        : metadata,
  });
}

function readTensor(value: unknown, index: number): CacheTensor {
  const tensor =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value).map(([name, item]) => [
            name,
            /address|bytes/.test(name) ? decimal(item) : item,
          ]),
        )
      : value;
  try {
    return cacheTensorCodec.fromJson(tensor);
  } catch (error) {
    if (!isMooncakeKvError(error)) throw error;
    const details = { ...error.details, tensor: index };
    throw new MooncakeKvError(error.code, `tensors[${index}]: ${error.message}`, details, { cause: error });
  }
}

/** 64-bit numbers are decimal texts in the schema; people also write hex, and small ones as numbers. */
function decimal(value: unknown): unknown {
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  return typeof value === "string" && /^0[xX][0-9a-fA-F]+$/.test(value) ? BigInt(value).toString() : value;
}

function readChunk(value: unknown, index: number): readonly [number, number] {
  const whole = (item: unknown) => Number.isSafeInteger(item) && (item as number) >= 0;
  if (!Array.isArray(value) || value.length !== 2 || !value.every(whole) || value[0] >= value[1])
    throw new UsageError(`chunks[${index}] is ${describe(value)}; a chunk is [start, end] in tokens`, {
      index,
    });
  return value as unknown as readonly [number, number];
}
