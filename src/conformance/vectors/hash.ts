import { HASH_ALGORITHMS, type HashAlgorithm, parseHashAlgorithm } from "../../hash/algorithm.js";
import { getBlockHash, getGroupId, makeBlockHashWithGroupId } from "../../hash/block-hash-with-group-id.js";
import { BlockHasher, type BlockHasherOptions } from "../../hash/block-hasher.js";
import { cborDumps } from "../../hash/cbor.js";
import { loadDigest } from "../../hash/digest.js";
import { toExternalBlockHash } from "../../hash/external-block-hash.js";
import {
  type BlockExtraKeys,
  ExtraKeySource,
  type ExtraKeys,
  firstMmIndex,
  toEventExtraKeys,
} from "../../hash/extra-keys.js";
import { type Hashable, SharedText } from "../../hash/hashable.js";
import { resolveNoneHash } from "../../hash/none-hash.js";
import { pickleDumps } from "../../hash/pickle.js";
import { type HashRequest, type MmFeature, promptTokens } from "../../hash/request.js";
import type { Release } from "../../release.js";
import type { JsonObject, JsonValue, VectorContext, VectorHandlers } from "./handler.js";
import {
  bytes,
  hex,
  isObject,
  list,
  number,
  optionalList,
  optionalNumber,
  optionalText,
  outcome,
  text,
} from "./json.js";
import { dissectPickle } from "./pickle-opcodes.js";

function readRequest(input: JsonObject): HashRequest {
  const { lora, prompt_embeds: embeds } = input;
  const tokens = optionalList<number>(input, "prompt_token_ids");
  const features = optionalList<JsonObject>(input, "mm_features");
  const salt = optionalText(input, "cache_salt");
  const isToken = optionalList<boolean>(input, "prompt_is_token_ids");
  return {
    ...(tokens && { promptTokenIds: tokens }),
    ...(features && { mmFeatures: features.map(readFeature) }),
    ...(isObject(lora) && { loraRequest: { loraName: text(lora, "name"), loraPath: text(lora, "path") } }),
    ...(salt !== undefined && { cacheSalt: salt }),
    ...(isToken && { promptIsTokenIds: isToken }),
    ...(isObject(embeds) && {
      promptEmbeds: { data: bytes(text(embeds, "data")), rows: list<number>(embeds, "shape")[0]! },
    }),
    sharedTexts: optionalText(input, "strings") === "shared",
  };
}

function readFeature(feature: JsonObject): MmFeature {
  return {
    identifier: text(feature, "identifier"),
    offset: number(feature, "offset"),
    length: number(feature, "length"),
  };
}

async function hasherOf(input: JsonObject, release: Release): Promise<BlockHasher> {
  const options: BlockHasherOptions = {
    release,
    algorithm: parseHashAlgorithm(text(input, "algorithm")),
    blockSize: optionalNumber(input, "hash_block_size") ?? 1,
    seed: optionalText(input, "pythonhashseed"),
    numHashLookaheadTokens: optionalNumber(input, "lookahead") ?? 0,
    rootSharing: "private",
  };
  return BlockHasher.create(options);
}

/** Extra keys as the vectors write them: bytes marked, identities gone. */
function writeKeys(keys: Hashable): JsonValue {
  if (keys instanceof SharedText) return keys.text;
  if (keys instanceof Uint8Array) return { bytes: hex(keys) };
  if (Array.isArray(keys)) return keys.map(writeKeys);
  return typeof keys === "bigint" ? keys.toString() : (keys as JsonValue);
}

function writeBlockKeys({ extraKeys, nextMmIndex }: BlockExtraKeys): JsonObject {
  return { extra_keys: writeKeys(extraKeys), next_mm_idx: nextMmIndex };
}

/** The extra keys of every block, derived once more outside of the hasher. */
function keysOfBlocks(
  hasher: BlockHasher,
  request: HashRequest,
  tokens: readonly number[],
  counts: readonly number[],
) {
  const source = new ExtraKeySource(request, hasher.release);
  const { blockSize, numHashLookaheadTokens: lookahead } = hasher;
  const features = request.mmFeatures ?? [];
  const keys: ExtraKeys[] = [];
  for (const count of counts) {
    let mmIndex = 0;
    const start = keys.length * blockSize;
    const last = features.at(-1);
    if (start > 0 && last && hasher.release === "vllm-0.27") mmIndex = -1;
    else if (start > 0 && last && last.offset + last.length > start) mmIndex = firstMmIndex(features, start);
    while (keys.length < count) {
      const from = keys.length * blockSize;
      const to = from + blockSize;
      const next =
        lookahead === 0
          ? source.blockExtraKeys(from, to, mmIndex)
          : source.lookaheadExtraKeys(from, to, to + lookahead, mmIndex);
      mmIndex = next.nextMmIndex;
      keys.push(lookahead === 0 ? next.extraKeys : [next.extraKeys, ...tokens.slice(to, to + lookahead)]);
    }
  }
  return keys;
}

async function requestBlockHashes(input: JsonObject, { release }: VectorContext): Promise<JsonValue> {
  const hasher = await hasherOf(input, release);
  const request = readRequest(input);
  const appends = optionalList<readonly number[]>(input, "appends") ?? [];
  const session = hasher.session(request);
  session.advance();
  const counts = [session.hashes.length];
  for (const tokens of appends) {
    session.append(tokens);
    counts.push(session.hashes.length);
  }
  const tokens = [...Array.from(promptTokens(request, release)), ...appends.flat()];
  const keys = keysOfBlocks(hasher, request, tokens, counts);
  const untagged =
    release === "vllm-0.27" || hasher.numHashLookaheadTokens > 0 ? null : toEventExtraKeys(keys);
  const size = hasher.blockSize;
  return {
    block_hashes: session.hashes.toHex(),
    num_tokens: session.numTokens,
    "?none_hash": hex(hasher.noneHash),
    extra_keys: keys.every((key) => key === null) ? null : keys.map(writeKeys),
    "?event_extra_keys": untagged?.map(writeKeys) ?? null,
    "?counts_after_each_step": counts,
    "?hashed_tokens":
      counts.at(-1) === 0 ? [] : keys.map((_, block) => tokens.slice(block * size, (block + 1) * size)),
  };
}

/** The request hashed with the shape of keys that KV events publish, which is how vllm-0.27 hashed. */
async function untaggedBlockHashes(input: JsonObject, { release }: VectorContext): Promise<JsonValue> {
  const { noneHash } = await hasherOf(input, release);
  const hasher = await BlockHasher.create({
    release: "vllm-0.27",
    algorithm: parseHashAlgorithm(text(input, "algorithm")),
    blockSize: number(input, "hash_block_size"),
    noneHash,
  });
  const request = readRequest(input);
  const session = hasher.session(request);
  session.advance();
  const keys = keysOfBlocks(hasher, request, [], [session.hashes.length]);
  return { extra_keys: keys.map(writeKeys), block_hashes: session.hashes.toHex() };
}

async function noneHash(input: JsonObject, { release }: VectorContext): Promise<JsonValue> {
  const algorithm = parseHashAlgorithm(text(input, "algorithm"));
  const digest = await loadDigest(algorithm);
  const resolve = () => resolveNoneHash(algorithm, digest, optionalText(input, "pythonhashseed"), release);
  const root = resolve();
  if (root.shareable)
    return { seed: root.seed ?? null, none_hash: hex(root.noneHash), length: root.noneHash.length };
  const dumps = algorithm.endsWith("_cbor") ? cborDumps : pickleDumps;
  return {
    random: true,
    length: root.noneHash.length,
    seed_length: root.seed?.length ?? 0,
    second_init_differs: hex(resolve().noneHash) !== hex(root.noneHash),
    none_hash_is_hash_of_seed_text:
      root.seed !== undefined && hex(digest(dumps(root.seed))) === hex(root.noneHash),
  };
}

/** A value in the grammar of pickle.jsonl. */
function readHashable(value: JsonValue, named: Map<number, Hashable>): Hashable {
  if (value === null || typeof value === "number" || typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((item) => readHashable(item, named));
  const entry = value as JsonObject;
  if ("ref" in entry) return named.get(number(entry, "ref"))!;
  if ("int" in entry) return BigInt(text(entry, "int"));
  if ("ints" in entry) {
    const [start, count, step, modulus] = list<number>(entry, "ints") as [number, number, number, number];
    return Array.from({ length: count }, (_, i) =>
      Number((BigInt(start) + BigInt(i) * BigInt(step)) % BigInt(modulus)),
    );
  }
  const made = readMade(entry, named);
  if ("obj" in entry) named.set(number(entry, "obj"), made);
  return made;
}

function readMade(entry: JsonObject, named: Map<number, Hashable>): Hashable {
  if ("s" in entry) return new SharedText(text(entry, "s"));
  if ("b" in entry) return bytes(text(entry, "b"));
  if ("t" in entry) return list(entry, "t").map((item) => readHashable(item, named));
  if ("text_repeat" in entry) {
    const [unit, count] = list(entry, "text_repeat") as [string, number];
    return new SharedText(unit.repeat(count));
  }
  if ("bytes_repeat" in entry) {
    const [unit, count] = list(entry, "bytes_repeat") as [string, number];
    return bytes(unit.repeat(count));
  }
  throw new TypeError(`unknown value ${JSON.stringify(entry).slice(0, 80)}`);
}

/** Longest serialisation that the vectors write out; a longer one is given by its ends and its digest. */
const LONGEST_IN_FULL = 1600;

async function writeLong(data: Uint8Array): Promise<JsonValue> {
  if (data.length <= LONGEST_IN_FULL) return hex(data);
  const sha256 = (await loadDigest("sha256"))(data);
  return {
    length: data.length,
    head: hex(data.subarray(0, 48)),
    tail: hex(data.subarray(-24)),
    sha256: hex(sha256),
  };
}

async function serialise(input: JsonObject): Promise<JsonValue> {
  const value = readHashable(input["value"]!, new Map());
  const pickle = pickleDumps(value);
  const { frames, opcodeCount } = dissectPickle(pickle);
  const digests: Record<string, JsonValue> = {};
  for (const algorithm of HASH_ALGORITHMS) {
    const digest = await loadDigest(algorithm as HashAlgorithm);
    digests[algorithm] = outcome(() => hex(digest(algorithm.endsWith("_cbor") ? cborDumps(value) : pickle)));
  }
  const cbor = outcome(() => hex(cborDumps(value)));
  return {
    ...digests,
    pickle: await writeLong(pickle),
    frames,
    opcode_count: opcodeCount,
    "?cbor": typeof cbor === "string" ? await writeLong(bytes(cbor)) : cbor,
  };
}

/** The ops of the hashing files and of pickle.jsonl. */
export const hashHandlers: VectorHandlers = {
  none_hash: noneHash,
  request_block_hashes: requestBlockHashes,
  untagged_block_hashes: untaggedBlockHashes,
  hash_block_tokens: async (input, { release }) => {
    const parent = input["parent"] === null ? null : bytes(text(input, "parent"));
    const hasher = await hasherOf(input, release);
    return hex(
      hasher.hashBlock(parent, list<number>(input, "tokens"), readExtraKeys(input["extra_keys"] ?? null)),
    );
  },
  block_extra_keys: (input, { release }) =>
    writeBlockKeys(
      new ExtraKeySource(readRequest(input), release).blockExtraKeys(
        number(input, "start"),
        number(input, "end"),
        number(input, "start_mm_idx"),
      ),
    ),
  lookahead_extra_keys: (input, { release }) =>
    writeBlockKeys(
      new ExtraKeySource(readRequest(input), release).lookaheadExtraKeys(
        number(input, "start"),
        number(input, "end"),
        number(input, "hash_end"),
        number(input, "start_mm_idx"),
      ),
    ),
  group_key: (input) => {
    const key = makeBlockHashWithGroupId(bytes(text(input, "block_hash")), number(input, "group_id"));
    return { key: hex(key), block_hash: hex(getBlockHash(key)), group_id: getGroupId(key) };
  },
  event_hash: (input) => {
    const flag = optionalText(input, "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES") ?? "1";
    const hash = toExternalBlockHash(bytes(text(input, "block_hash")), Number(flag) !== 0);
    return typeof hash === "bigint" ? { int: hash.toString() } : { bytes: hex(hash) };
  },
  get_hash_fn_by_name: (input) => parseHashAlgorithm(text(input, "name")),
  serialise,
};

/** Explicit extra keys: arrays are tuples, `{"bytes": hex}` bytes. */
function readExtraKeys(value: JsonValue): Hashable {
  if (Array.isArray(value)) return value.map(readExtraKeys);
  return isObject(value) ? bytes(text(value, "bytes")) : (value as Hashable);
}
