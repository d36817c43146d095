import { BlockHashListWithBlockSize, chunkHashesForBlockSize } from "../../chunk/chunk-hashes.js";
import { chunkSizes, chunkTokens } from "../../chunk/chunk-tokens.js";
import { MooncakeKvError } from "../../errors.js";
import { BlobBlockHashes, type BlockHashSequence, sliceRange } from "../../hash/blob-block-hashes.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import {
  bytes,
  hex,
  list,
  number,
  optionalList,
  optionalNumber,
  optionalText,
  outcome,
  text,
} from "./json.js";

/** The hashes of a vector: a blob, or a list that may hold hashes of different lengths. */
export function readHashes(input: JsonObject): BlockHashSequence {
  const hashes = list<string>(input, "hashes").map(bytes);
  return optionalText(input, "as") === "blob" ? BlobBlockHashes.from(hashes) : hashes;
}

function iterate(hashes: BlockHashSequence): string[] {
  return Array.from({ length: hashes.length }, (_, index) => hex(hashes.at(index)!));
}

function at(hashes: BlockHashSequence, index: number): string {
  const hash = hashes.at(index);
  if (hash === undefined)
    throw new MooncakeKvError("ERR_CHUNK", `there is no hash ${index} in a list of ${hashes.length}`);
  return hex(hash);
}

function slice(hashes: BlockHashSequence, query: JsonObject): string[] {
  const [start, end, step] = list<number | null>(query, "slice").map((bound) => bound ?? undefined);
  if (hashes instanceof BlobBlockHashes) return hashes.slice(start, end, step).toHex();
  if (hashes instanceof BlockHashListWithBlockSize) return hashes.slice(start, end, step).map(hex);
  return sliceRange(hashes.length, start, end, step).map((index) => at(hashes, index));
}

function find(hashes: BlockHashSequence, wanted: string): number {
  return hashes instanceof BlobBlockHashes ? hashes.indexOf(bytes(wanted)) : iterate(hashes).indexOf(wanted);
}

function answer(hashes: BlockHashSequence, query: JsonObject): JsonValue {
  const [kind] = Object.keys(query);
  switch (kind) {
    case "index":
      return at(hashes, number(query, "index"));
    case "slice":
      return slice(hashes, query);
    case "contains":
      return find(hashes, text(query, "contains")) >= 0;
    case "find": {
      const position = find(hashes, text(query, "find"));
      if (position < 0) throw new MooncakeKvError("ERR_CHUNK", "the hash is not in the list");
      return position;
    }
    case "count":
      return iterate(hashes).filter((hash) => hash === query["count"]).length;
    case "reversed":
      return iterate(hashes).reverse();
    case "iterate":
      return iterate(hashes);
    case "truthy":
      return hashes.length > 0;
    default:
      throw new TypeError(`unknown query ${kind}`);
  }
}

function answers(hashes: BlockHashSequence, input: JsonObject): JsonValue[] {
  return list<JsonObject>(input, "queries").map((query) => outcome(() => answer(hashes, query)));
}

function listed(hashes: BlockHashSequence, input: JsonObject): { [name: string]: JsonValue } {
  return { len: hashes.length, hashes: iterate(hashes), results: answers(hashes, input) };
}

const coarse = (input: JsonObject): JsonValue =>
  listed(
    new BlockHashListWithBlockSize(
      readHashes(input),
      number(input, "hash_block_size"),
      number(input, "block_size"),
    ),
    input,
  );

/** A list that remembers which positions were read. */
function recording(hashes: BlockHashSequence, positions: number[]): BlockHashSequence {
  return {
    length: hashes.length,
    at: (index) => {
      positions.push(index);
      return hashes.at(index);
    },
  };
}

function processTokens(input: JsonObject): JsonValue {
  const sizes = chunkSizes(number(input, "block_size"), optionalNumber(input, "hash_block_size"));
  const [maskNum, putStep, putStepRank] = ["mask_num", "put_step", "put_step_rank"].map((name) =>
    optionalNumber(input, name),
  );
  const chunkMask = optionalList<boolean>(input, "chunk_mask");
  const read: number[] = [];
  const chunks = chunkTokens(sizes, number(input, "token_len"), recording(readHashes(input), read), {
    ...(maskNum !== undefined && { maskNum }),
    ...(chunkMask !== undefined && { chunkMask }),
    ...(putStep !== undefined && { putStep }),
    ...(putStepRank !== undefined && { putStepRank }),
  });
  return {
    chunks: Array.from(chunks.starts, (start, index) => [
      start,
      chunks.ends[index]!,
      hex(chunks.hash(index)),
    ]),
    hash_block_size: sizes.hashBlockSize,
    "?hash_positions_read": read,
  };
}

/** The ops of chunk_hashes.jsonl and process_tokens.jsonl. */
export const chunkHandlers: VectorHandlers = {
  blob_block_hashes: (input) => {
    const hashes = new BlobBlockHashes(bytes(text(input, "blob")), number(input, "hash_len"));
    return { len: hashes.length, results: answers(hashes, input) };
  },
  chunk_hashes_for_block_size: (input) => {
    const hashes = readHashes(input);
    const chunks = chunkHashesForBlockSize(
      hashes,
      number(input, "hash_block_size"),
      number(input, "block_size"),
    );
    return { ...listed(chunks, input), same_object: chunks === hashes };
  },
  process_tokens: processTokens,
  compact_chunk_hash_list: coarse,
  block_hash_list_with_block_size: coarse,
};
