import type { MooncakeKvError } from "../errors.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { sha256 } from "./digest.js";
import { hashError } from "./hash-error.js";
import { type Hashable, SharedText } from "./hashable.js";
import type { HashRequest, MmFeature } from "./request.js";

/** The third element of a hashed block: null, or a tuple of keys. */
export type ExtraKeys = readonly Hashable[] | null;

/** Extra keys of one token range, and where the walk over the multimodal items goes on. */
export interface BlockExtraKeys {
  readonly extraKeys: ExtraKeys;
  readonly nextMmIndex: number;
}

// In Python these are constants of the code, one object each, which pickle turns into back-references.
const TAG_LORA = new SharedText("lora");
const TAG_MM = new SharedText("mm");
const TAG_CACHE_SALT = new SharedText("cache_salt");
const TAG_PROMPT_EMBEDS = new SharedText("prompt_embeds");

/**
 * The texts of a request with their Python identities, made once a request so that every block sees the same
 * objects.
 */
export class ExtraKeySource {
  readonly request: HashRequest;
  readonly tagged: boolean;
  readonly #lora: readonly Hashable[];
  readonly #identifiers: readonly Hashable[];
  readonly #salt: readonly Hashable[];

  /** @throws MooncakeKvError `ERR_HASH` for a LoRA request without a path, which vllm-0.31 and later hash. */
  constructor(request: HashRequest, release: Release = DEFAULT_RELEASE) {
    this.request = request;
    this.tagged = release !== "vllm-0.27";
    const texts = new Map<string, SharedText>();
    const text = (value: string): Hashable => {
      if (!request.sharedTexts) return new SharedText(value);
      const known = texts.get(value) ?? new SharedText(value);
      texts.set(value, known);
      return known;
    };
    const { loraRequest, cacheSalt, mmFeatures = [] } = request;
    if (loraRequest !== undefined && this.tagged && typeof loraRequest.loraPath !== "string")
      throw hashError(
        `LoRA ${JSON.stringify(loraRequest.loraName)} has no loraPath, which ${release} hashes together with the name`,
        { loraName: loraRequest.loraName, release },
      );
    const loraName = loraRequest && text(loraRequest.loraName);
    if (loraName === undefined) this.#lora = [];
    else this.#lora = this.tagged ? [[TAG_LORA, loraName, text(loraRequest!.loraPath!)]] : [loraName];
    this.#identifiers = mmFeatures.map((feature) => text(feature.identifier));
    const salt = cacheSalt ? text(cacheSalt) : undefined;
    if (salt === undefined) this.#salt = [];
    else this.#salt = this.tagged ? [[TAG_CACHE_SALT, salt]] : [salt];
  }

  /** Whether no block of the request can have extra keys. */
  get empty(): boolean {
    const { promptEmbeds } = this.request;
    return (
      !this.#lora.length && !this.#identifiers.length && !this.#salt.length && promptEmbeds === undefined
    );
  }

  /**
   * Extra keys of the tokens `[start, end)`: LoRA, then multimodal items, then the salt, then embeddings. Mirrors
   * vLLM's `generate_block_hash_extra_keys`.
   *
   * @param mmIndex where the walk over the items stands; negative counts from the last item.
   * @throws MooncakeKvError `ERR_HASH` when a negative index lies before the first item.
   */
  blockExtraKeys(start: number, end: number, mmIndex: number): BlockExtraKeys {
    const mm = this.#mmKeys(start, end, mmIndex);
    const keys = [
      ...this.#lora,
      ...mm.keys,
      ...(start === 0 ? this.#salt : []),
      ...this.#embedKeys(start, end),
    ];
    return { extraKeys: keys.length ? keys : null, nextMmIndex: mm.nextMmIndex };
  }

  /**
   * Extra keys of a block together with its look-ahead tokens `[end, hashEnd)`; the walk is set back so that the next
   * block still sees the items it overlaps. Mirrors vLLM's `generate_lookahead_block_hash_extra_keys`.
   */
  lookaheadExtraKeys(start: number, end: number, hashEnd: number, mmIndex: number): BlockExtraKeys {
    const { extraKeys, nextMmIndex } = this.blockExtraKeys(start, hashEnd, mmIndex);
    const features = this.request.mmFeatures ?? [];
    let index = nextMmIndex;
    while (index > 0) {
      const feature = features[index - 1];
      if (feature === undefined) throw mmIndexError(index - 1, features.length);
      if (feature.offset + feature.length <= end) break;
      index--;
    }
    return { extraKeys, nextMmIndex: index };
  }

  #mmKeys(start: number, end: number, mmIndex: number): { keys: Hashable[]; nextMmIndex: number } {
    const features = this.request.mmFeatures ?? [];
    const last = features.at(-1);
    if (last === undefined || last.offset + last.length <= start) return { keys: [], nextMmIndex: mmIndex };
    if (mmIndex < -features.length) throw mmIndexError(mmIndex, features.length);
    let index = mmIndex < 0 ? features.length + mmIndex : mmIndex;
    const keys: Hashable[] = [];
    for (; index < features.length; index++) {
      const { offset, length } = features[index]!;
      if (end <= offset) break;
      if (start >= offset + length) continue;
      const identifier = this.#identifiers[index]!;
      // A negative offset says that the item began in an earlier block.
      keys.push(this.tagged ? [TAG_MM, identifier, offset - start] : [identifier, offset - start]);
      if (end < offset + length) break;
    }
    return { keys, nextMmIndex: index };
  }

  #embedKeys(start: number, end: number): Hashable[] {
    const { promptEmbeds } = this.request;
    if (promptEmbeds === undefined) return [];
    const { data, rows } = promptEmbeds;
    const rowBytes = rows === 0 ? 0 : data.length / rows;
    const digest = sha256(data.subarray(Math.min(start, rows) * rowBytes, Math.min(end, rows) * rowBytes));
    return [this.tagged ? [TAG_PROMPT_EMBEDS, digest] : digest];
  }
}

/**
 * The first item that reaches past `start`, found as vLLM's `get_mm_features_in_window` does: by bisection, which
 * decides what happens when items overlap.
 */
export function firstMmIndex(features: readonly MmFeature[], start: number): number {
  let low = 0;
  let high = features.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { offset, length } = features[middle]!;
    if (offset + length < start + 1) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Extra keys in the untagged shape that KV events publish: bare LoRA names, salts and digests, and pairs of item and
 * offset. Mirrors vLLM's `to_event_extra_keys`.
 */
export function toEventExtraKeys(blocks: readonly ExtraKeys[]): readonly ExtraKeys[] | null {
  if (blocks.length === 0) return null;
  return blocks.map((keys) => keys?.map((key) => untagged(key as readonly Hashable[])) ?? null);
}

function untagged(key: readonly Hashable[]): Hashable {
  const [tag, ...rest] = key;
  const text = tag instanceof SharedText ? tag.text : tag;
  return text === "mm" ? rest : rest[0]!;
}

function mmIndexError(index: number, count: number): MooncakeKvError {
  return hashError(`multimodal item ${index} does not exist; the request has ${count}`, {
    index,
    count,
  });
}
