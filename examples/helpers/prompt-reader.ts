// From the body of a request to the block hashes of its prompt. The tokens come from an engine: chat templates, tokenizers
// and image processors are its own.
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { BlobBlockHashes, BlockHasher, HashRequest } from "mooncake-kv";
import { bodyOf, send } from "./http-pass.js";

/** A prompt as an index is asked for it. */
export interface ReadPrompt {
  readonly tokens: number;
  readonly hashes: BlobBlockHashes;
}

/** A request whose prompt is to be read. */
export interface PromptRequest {
  /** `/v1/completions` or `/v1/chat/completions`. */
  readonly path: string;
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
}

/** Members of a request that `/tokenize` knows. */
const TOKENIZE_MEMBERS = [
  "model",
  "prompt",
  "messages",
  "tools",
  "add_generation_prompt",
  "continue_final_message",
  "add_special_tokens",
  "chat_template",
  "chat_template_kwargs",
  "mm_processor_kwargs",
];

/** Bytes of hashes that are kept of prompts read before, some four million tokens in blocks of 16. */
const KEPT_BYTES = 8 << 20;

type Json = Record<string, unknown>;
/** `features` of a rendered request: hashes and places of its items, by modality. */
interface Rendered {
  readonly mm_hashes: Record<string, string[]>;
  readonly mm_placeholders: Record<string, { readonly offset: number; readonly length: number }[]>;
}
type Prompt = Pick<HashRequest, "mmFeatures"> & { readonly promptTokenIds: readonly number[] };

/** Reads prompts, and remembers the last ones. */
export class PromptReader {
  readonly #hasher: BlockHasher;
  readonly #adapters: ReadonlyMap<string, string>;
  readonly #timeoutMs: number;
  readonly #kept = new Map<string, ReadPrompt>();
  #keptBytes = 0;

  /**
   * @param adapters path of each LoRA adapter by its name, as in `--lora-modules`.
   * @param timeoutMs for the answer of an engine.
   */
  constructor(hasher: BlockHasher, adapters: ReadonlyMap<string, string>, timeoutMs: number) {
    this.#hasher = hasher;
    this.#adapters = adapters;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * The prompt of a request; of several prompts, the first.
   *
   * @param url of the engine that is asked for its tokens.
   * @returns undefined where the engine finds no tokens in it; what is wrong it says when it gets the request.
   * @throws where the engine gives no answer.
   */
  async read(url: string, request: PromptRequest): Promise<ReadPrompt | undefined> {
    const key = createHash("sha256").update(request.path).update(request.body).digest("base64");
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      // Those that were asked for last are kept longest.
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    const asked = parsed(request.body);
    if (asked === undefined) return undefined;
    const { prompt, model, cache_salt: salt } = asked;
    const given =
      isTokens(prompt) && asked["truncate_prompt_tokens"] == null && asked["prompt_embeds"] == null;
    const tokens = given ? { promptTokenIds: prompt } : await this.#tokens(url, request, asked);
    if (tokens === undefined) return undefined;
    const loraPath = typeof model === "string" ? this.#adapters.get(model) : undefined;
    const hashes = await this.#hashes({
      ...tokens,
      ...(typeof salt === "string" && { cacheSalt: salt }),
      ...(loraPath !== undefined && { loraRequest: { loraName: model as string, loraPath } }),
    });
    return hashes && this.#keep(key, { tokens: tokens.promptTokenIds.length, hashes });
  }

  async #hashes(request: HashRequest): Promise<BlobBlockHashes | undefined> {
    try {
      return await this.#hasher.hashAsync(request);
    } catch {
      // Such as a salt that is no text in UTF-8. No engine is to blame, and none will take it.
      return undefined;
    }
  }

  async #tokens(url: string, request: PromptRequest, asked: Json): Promise<Prompt | undefined> {
    const { path } = request;
    // The whole request, to the engine's own code for it: it knows of every member that changes the tokens, and of images.
    const rendered = await this.#ask(url, request, `${path}/render`, { ...asked, return_mm_kwargs: false });
    if (![404, 405, 501].includes(rendered.status)) return rendered.json && renderedPrompt(rendered.json);
    const known = TOKENIZE_MEMBERS.filter((member) => asked[member] !== undefined);
    const question = Object.fromEntries(known.map((member) => [member, asked[member]]));
    const { json } = await this.#ask(url, request, "/tokenize", question);
    return isTokens(json?.["tokens"]) ? { promptTokenIds: json["tokens"] } : undefined;
  }

  async #ask(
    url: string,
    { headers: { authorization }, signal }: PromptRequest,
    path: string,
    question: Json,
  ): Promise<{ readonly status: number; readonly json: Json | undefined }> {
    const reply = await send(url, {
      method: "POST",
      path,
      headers: { "content-type": "application/json", ...(authorization !== undefined && { authorization }) },
      body: Buffer.from(JSON.stringify(question)),
      signal: AbortSignal.any([signal, AbortSignal.timeout(this.#timeoutMs)]),
    });
    const body = await bodyOf(reply);
    const { statusCode: status = 500 } = reply;
    return { status, json: status === 200 && body ? parsed(body) : undefined };
  }

  #keep(key: string, prompt: ReadPrompt): ReadPrompt {
    if (this.#kept.has(key)) return prompt;
    this.#kept.set(key, prompt);
    this.#keptBytes += sizeOf(prompt);
    for (const [oldest, its] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= sizeOf(its);
    }
    return prompt;
  }
}

const sizeOf = ({ hashes }: ReadPrompt): number => 256 + 32 * hashes.length;

function isTokens(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((token) => Number.isInteger(token) && token >= 0 && token < 2 ** 32)
  );
}

/** A JSON object, or the first of a list; undefined for everything else. */
function parsed(body: Buffer): Json | undefined {
  try {
    const json: unknown = JSON.parse(body.toString());
    const first: unknown = Array.isArray(json) ? json[0] : json;
    return typeof first === "object" && first !== null ? (first as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** Tokens, and images and the like of all modalities in the order of the prompt. */
function renderedPrompt({ token_ids: tokens, features }: Json): Prompt | undefined {
  if (!isTokens(tokens)) return undefined;
  if (features == null) return { promptTokenIds: tokens };
  const { mm_hashes: hashes, mm_placeholders: places } = features as Rendered;
  const items = Object.entries(hashes).flatMap(([modality, identifiers]) =>
    identifiers.map((identifier, at) => ({ identifier, ...places[modality]![at]! })),
  );
  return { promptTokenIds: tokens, mmFeatures: items.sort((a, b) => a.offset - b.offset) };
}
