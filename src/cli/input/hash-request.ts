import { describe, MooncakeKvError } from "../../errors.js";
import type { HashRequest, LoraRequest, MmFeature, PromptEmbeds, TokenIds } from "../../hash/index.js";
import { UsageError } from "../usage-error.js";
import {
  type Members,
  membersOf,
  optionalBytes,
  optionalList,
  optionalText,
  requiredCount,
  requiredText,
} from "./members.js";
import { type InputText, looksLikeJson, parseJson } from "./read-input.js";

/** The members of a request, by vLLM's names. */
const REQUEST = [
  "prompt_token_ids",
  "lora_request",
  "cache_salt",
  "mm_features",
  "prompt_embeds",
  "prompt_is_token_ids",
];
/** Also what vLLM has beside name and path; nothing of it enters a hash. */
const LORA = ["lora_name", "lora_path", "lora_int_id"];
const FEATURE = ["identifier", "mm_position", "offset", "length", "modality", "mm_hash"];
const POSITION = ["offset", "length", "is_embed"];

/**
 * What is to be hashed: a JSON array of token ids, ids with spaces or commas between them, or a JSON object with the
 * fields of vLLM's request.
 *
 * @throws UsageError for JSON of another shape, MooncakeKvError `ERR_HASH` for what is no token id.
 */
export function readHashRequest(input: InputText): HashRequest {
  if (!looksLikeJson(input.text)) return { promptTokenIds: tokenIdsOfText(input.text) };
  const value = parseJson(input);
  if (Array.isArray(value)) return { promptTokenIds: value as number[] };
  return hashRequestOfJson(value, input.source);
}

function tokenIdsOfText(text: string): TokenIds {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0)
    throw new UsageError("no token ids in the input; write [] for a prompt without tokens");
  return words.map((word, index) => {
    if (!/^-?\d+$/.test(word))
      throw new MooncakeKvError(
        "ERR_HASH",
        `token ${index} is ${describe(word)}; token ids are whole numbers of 0 to 2^32 - 1`,
        { index, token: word },
      );
    return Number(word);
  });
}

function hashRequestOfJson(value: unknown, source: string): HashRequest {
  const members = membersOf(value, source, REQUEST);
  const tokens = optionalList(members, "prompt_token_ids", source) as readonly number[] | undefined;
  const isTokenIds = optionalList(members, "prompt_is_token_ids", source) as readonly boolean[] | undefined;
  const cacheSalt = optionalText(members, "cache_salt", source);
  const features = optionalList(members, "mm_features", source);
  const lora = members["lora_request"] ?? undefined;
  const embeds = members["prompt_embeds"] ?? undefined;
  if (tokens === undefined && embeds === undefined)
    throw new UsageError(`${source} has neither prompt_token_ids nor prompt_embeds`);
  return {
    ...(tokens && { promptTokenIds: tokens }),
    ...(isTokenIds && { promptIsTokenIds: isTokenIds }),
    ...(cacheSalt !== undefined && { cacheSalt }),
    ...(features && { mmFeatures: features.map(readFeature) }),
    ...(lora !== undefined && { loraRequest: readLora(lora) }),
    ...(embeds !== undefined && { promptEmbeds: readEmbeds(embeds) }),
  };
}

function readLora(value: unknown): LoraRequest {
  const members = membersOf(value, "lora_request", LORA);
  const loraPath = optionalText(members, "lora_path", "lora_request");
  return {
    loraName: requiredText(members, "lora_name", "lora_request"),
    ...(loraPath !== undefined && { loraPath }),
  };
}

function readFeature(value: unknown, index: number): MmFeature {
  const where = `mm_features[${index}]`;
  const members = membersOf(value, where, FEATURE);
  const inner = members["mm_position"] ?? undefined;
  const position: Members =
    inner === undefined ? members : membersOf(inner, `${where}.mm_position`, POSITION);
  return {
    identifier: requiredText(members, "identifier", where),
    offset: requiredCount(position, "offset", where),
    length: requiredCount(position, "length", where),
  };
}

function readEmbeds(value: unknown): PromptEmbeds {
  const where = "prompt_embeds";
  const members = membersOf(value, where, ["data", "rows"]);
  const data = optionalBytes(members, "data", where);
  if (data === undefined) throw new UsageError(`${where} lacks the member data: the tensor's bytes as hex`);
  return { data, rows: requiredCount(members, "rows", where) };
}
