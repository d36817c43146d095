import { checkNames, type OptionNames } from "../checks/checks-for.js";
import { describe } from "../errors.js";
import type { Release } from "../release.js";
import { hashError } from "./hash-error.js";

/** A list of token ids: whole numbers of 0 to 2^32 - 1. */
export type TokenIds = ArrayLike<number>;

/** Where one multimodal item lies in the prompt. Mirrors vLLM's `MultiModalFeatureSpec` with its position. */
export interface MmFeature {
  /** The item's hash or uuid, as the engine knows it. */
  readonly identifier: string;
  /** First token of the placeholder. */
  readonly offset: number;
  /** Tokens of the placeholder. */
  readonly length: number;
}

/** The adapter of a LoRA request. Mirrors vLLM's `LoRARequest`. */
export interface LoraRequest {
  readonly loraName: string;
  /** Enters the hash since vllm-0.31. */
  readonly loraPath?: string | undefined;
}

/** Prompt embeddings as raw tensor bytes, row after row. */
export interface PromptEmbeds {
  readonly data: Uint8Array;
  /** Number of rows, one a prompt token. */
  readonly rows: number;
}

/** Everything of a request that enters its block hashes. Mirrors the fields of vLLM's `Request`. */
export interface HashRequest {
  /** The prompt. Absent only where `promptEmbeds` is given: the tokens then count as 0. */
  readonly promptTokenIds?: TokenIds | undefined;
  readonly loraRequest?: LoraRequest | undefined;
  /** Isolates caches on purpose; empty means none. */
  readonly cacheSalt?: string | undefined;
  /** Multimodal items, sorted by offset. */
  readonly mmFeatures?: readonly MmFeature[] | undefined;
  readonly promptEmbeds?: PromptEmbeds | undefined;
  /** With both tokens and embeddings: which positions are real tokens. The others count as token 0 (since
   * vllm-0.31). */
  readonly promptIsTokenIds?: readonly boolean[] | undefined;
  /**
   * Whether equal texts of the request are one Python object. They are not when the request came over the engine's
   * wire, as in a served engine (the default); they may be in a process that builds its requests itself. Changes
   * digests of the pickle algorithms only, and only where one block holds two equal texts.
   */
  readonly sharedTexts?: boolean | undefined;
}

const MEMBERS: OptionNames<HashRequest> = {
  promptTokenIds: 1,
  mmFeatures: 1,
  loraRequest: 1,
  cacheSalt: 1,
  promptEmbeds: 1,
  promptIsTokenIds: 1,
  sharedTexts: 1,
};

/** Checks the parts of a request that are not token ids. */
export function checkRequest(request: HashRequest): void {
  checkNames(hashError, "a request", request, MEMBERS);
  const { mmFeatures = [], promptEmbeds, promptIsTokenIds, promptTokenIds, loraRequest, cacheSalt } = request;
  if (promptTokenIds !== undefined && typeof promptTokenIds?.length !== "number")
    throw hashError(`promptTokenIds ${describe(promptTokenIds)} is not a list of token ids`);
  for (const [index, feature] of mmFeatures.entries()) {
    if (typeof feature.identifier !== "string")
      throw hashError(`mmFeatures[${index}].identifier ${describe(feature.identifier)} is not a text`);
    for (const field of ["offset", "length"] as const)
      if (!Number.isSafeInteger(feature[field]) || feature[field] < 0)
        throw hashError(
          `mmFeatures[${index}].${field} ${describe(feature[field])} is not a whole number of 0 or more`,
        );
  }
  if (loraRequest !== undefined && typeof loraRequest.loraName !== "string")
    throw hashError(`loraRequest.loraName ${describe(loraRequest.loraName)} is not a text`);
  if (cacheSalt !== undefined && typeof cacheSalt !== "string")
    throw hashError(`cacheSalt ${describe(cacheSalt)} is not a text`);
  if (promptEmbeds !== undefined) {
    const { data, rows } = promptEmbeds;
    if (!Number.isSafeInteger(rows) || rows < 0 || (rows === 0 ? data.length > 0 : data.length % rows !== 0))
      throw hashError(
        `promptEmbeds has ${data.length} bytes in ${describe(rows)} rows; rows must be of equal size`,
      );
  }
  if (promptIsTokenIds !== undefined && promptIsTokenIds.length !== (promptTokenIds?.length ?? 0))
    throw hashError(
      `promptIsTokenIds has ${promptIsTokenIds.length} entries for ${promptTokenIds?.length ?? 0} prompt tokens`,
    );
}

/**
 * The prompt tokens as they enter the hashes: 0 where an embedding stands. vllm-0.27 keeps the tokens of a mixed
 * prompt as they are.
 *
 * @throws MooncakeKvError `ERR_HASH` without tokens and embeddings, or when there are not as many of each; as in
 * vLLM's `length_from_prompt_token_ids_or_embeds`.
 */
export function promptTokens(request: HashRequest, release: Release): TokenIds {
  const { promptTokenIds, promptEmbeds, promptIsTokenIds } = request;
  if (promptTokenIds === undefined) {
    if (promptEmbeds === undefined)
      throw hashError("the request has neither promptTokenIds nor promptEmbeds; it needs one of them");
    return new Uint32Array(promptEmbeds.rows);
  }
  if (promptEmbeds !== undefined && promptEmbeds.rows !== promptTokenIds.length)
    throw hashError(
      `promptEmbeds has ${promptEmbeds.rows} rows for ${promptTokenIds.length} prompt tokens; it needs one a token`,
    );
  if (promptIsTokenIds === undefined || release === "vllm-0.27") return promptTokenIds;
  return Array.from(promptTokenIds, (token, index) => (promptIsTokenIds[index] ? token : 0));
}
