import { describe } from "../../errors.js";
import { configChecks, configError } from "../checks.js";

/** What the spec of every layer says. Fields that only tell specs apart are optional: absent equals absent. */
export interface LayerSpecBase {
  /** Tokens of one block. */
  readonly blockSize: number;
  /** Whether decode context parallelism shards the token positions. Default: true for attention, false for Mamba. */
  readonly dcpSharded?: boolean | undefined;
  /** Tokens that share one stored state. Default: 1. */
  readonly tokensPerState?: number | undefined;
  readonly headSize?: number | undefined;
  readonly numKvHeads?: number | undefined;
  /** Element type of the cache, as the engine spells it. */
  readonly dtype?: string | undefined;
  /** Anything else in which two specs of one kind may differ, as one text. */
  readonly variant?: string | undefined;
}

/** vLLM's `FullAttentionSpec`: every token attends to all before it. */
export interface FullAttentionSpec extends LayerSpecBase {
  readonly kind: "full";
}

/** vLLM's `MLAAttentionSpec`: full attention over one latent vector a token. */
export interface MlaAttentionSpec extends LayerSpecBase {
  readonly kind: "mla";
}

/** vLLM's `RSWASpec`: full attention to the prompt, a window in decode. For a prefix it is full attention. */
export interface RswaSpec extends LayerSpecBase {
  readonly kind: "rswa";
  /** Tokens of the decode window. */
  readonly rswaWindow: number;
}

/** vLLM's `SlidingWindowSpec` and `SlidingWindowMLASpec`: a token attends to the last `slidingWindow` tokens. */
export interface SlidingWindowSpec extends LayerSpecBase {
  readonly kind: "swa" | "swa_mla";
  /** Tokens of the window, the current one included. */
  readonly slidingWindow: number;
  /** Tokens kept below the window for multi-token prediction. Default: 0. */
  readonly extraRetainedTokens?: number | undefined;
  /** Only `swa_mla`: the window is replayed, never cached. Default: false. */
  readonly boundedReplay?: boolean | undefined;
}

/** vLLM's `ChunkedLocalAttentionSpec`: a token attends within its own chunk. */
export interface ChunkedLocalAttentionSpec extends LayerSpecBase {
  readonly kind: "chunked_local";
  /** Tokens of one attention chunk. */
  readonly attentionChunkSize: number;
}

/** vLLM's `MambaSpec`: one recurrent state a block. The store needs mode `align`. */
export interface MambaSpec extends LayerSpecBase {
  readonly kind: "mamba";
  readonly mambaCacheMode: "align" | "all" | "none";
}

/** vLLM's `CircularBufferSpec`: scratch of one request, never cached by hash. */
export interface CircularBufferSpec extends LayerSpecBase {
  readonly kind: "circular";
}

/** vLLM's `CrossAttentionSpec`: encoder states. The connector refuses it. */
export interface CrossAttentionSpec extends LayerSpecBase {
  readonly kind: "cross";
}

/** The KV cache of one layer. */
export type LayerSpec =
  | FullAttentionSpec
  | MlaAttentionSpec
  | RswaSpec
  | SlidingWindowSpec
  | ChunkedLocalAttentionSpec
  | MambaSpec
  | CircularBufferSpec
  | CrossAttentionSpec;

/**
 * vLLM's `UniformTypeKVCacheSpecs`: layers of one kind and block size that share a block table but differ in size. The
 * first layer stands for all of them.
 */
export interface UniformTypeKvCacheSpecs {
  readonly kind: "uniform";
  /** Tokens of one block, the same in every layer. */
  readonly blockSize: number;
  /** The layers, at least one. */
  readonly inner: readonly LayerSpec[];
}

/** The KV cache of one group of layers. */
export type KvCacheSpec = LayerSpec | UniformTypeKvCacheSpecs;

/** A group of layers that share one block table. Mirrors vLLM's `KVCacheGroupSpec`. */
export interface KvCacheGroupSpec {
  readonly kvCacheSpec: KvCacheSpec;
  /** Whether the group holds layers of the draft model, which need the last matched block recomputed. Default: false. */
  readonly isEagleGroup?: boolean | undefined;
  /** Whether the group is stored outside the engine at all. Default: true. */
  readonly enableKvTransfer?: boolean | undefined;
}

/** Every kind of spec. */
export const KV_CACHE_SPEC_KINDS: readonly KvCacheSpec["kind"][] = [
  "full",
  "mla",
  "rswa",
  "swa",
  "swa_mla",
  "chunked_local",
  "mamba",
  "circular",
  "cross",
  "uniform",
];

/**
 * Checks cache groups: known kinds and positive sizes.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the group and the member.
 */
export function checkKvCacheGroups(groups: readonly KvCacheGroupSpec[]): void {
  if (!Array.isArray(groups))
    throw configError(`kvCacheGroups is ${describe(groups)}; it must be a list of groups`);
  for (const [id, group] of (groups as readonly (KvCacheGroupSpec | undefined)[]).entries())
    checkKvCacheSpec(`group ${id}`, group?.kvCacheSpec as KvCacheSpec);
}

function checkKvCacheSpec(name: string, spec: KvCacheSpec): void {
  if (!KV_CACHE_SPEC_KINDS.includes(spec?.kind))
    throw configError(
      `${name} is of kind ${describe(spec?.kind)}; one of ${KV_CACHE_SPEC_KINDS.join(", ")} is expected`,
      { name, kind: spec?.kind },
    );
  const positive = (member: string, value: number) => configChecks.whole(`${member} of ${name}`, value, 1);
  positive("blockSize", spec.blockSize);
  switch (spec.kind) {
    case "uniform":
      checkUniform(name, spec);
      return;
    case "swa":
    case "swa_mla":
      positive("slidingWindow", spec.slidingWindow);
      configChecks.whole(`extraRetainedTokens of ${name}`, spec.extraRetainedTokens ?? 0, 0);
      return;
    case "chunked_local":
      positive("attentionChunkSize", spec.attentionChunkSize);
      return;
    case "rswa":
      positive("rswaWindow", spec.rswaWindow);
  }
}

function checkUniform(name: string, spec: UniformTypeKvCacheSpecs): void {
  if (!Array.isArray(spec.inner) || spec.inner.length === 0)
    throw configError(`inner of ${name} is ${describe(spec.inner)}; it needs at least one layer`, { name });
  for (const [index, inner] of spec.inner.entries()) {
    const layer = `layer ${index} of ${name}`;
    if ((inner as KvCacheSpec)?.kind === "uniform")
      throw configError(`${layer} is uniform itself; only plain layers can be inside`, { name, index });
    checkKvCacheSpec(layer, inner);
    if (inner.blockSize !== spec.blockSize)
      throw configError(
        `${layer} has blocks of ${inner.blockSize} tokens, the group blocks of ${spec.blockSize}; they share a block table`,
        { name, index, blockSize: inner.blockSize, groupBlockSize: spec.blockSize },
      );
  }
}

/** The specs of the layers of a group. Mirrors `iter_layer_specs`. */
export function layerSpecs(spec: KvCacheSpec): readonly LayerSpec[] {
  return spec.kind === "uniform" ? spec.inner : [spec];
}

/** The spec that stands for a group: itself, or the first layer of a uniform one. */
export function unwrapSpec(spec: KvCacheSpec): LayerSpec {
  return layerSpecs(spec)[0]!;
}

/**
 * The spec whose window covers every block that an external hit restores: the tokens retained below a sliding window
 * belong to it, because the engine allocates them with the hit.
 */
export function coverageSpec(spec: KvCacheSpec): LayerSpec {
  const layer = unwrapSpec(spec);
  if (!isSlidingWindow(layer) || !layer.extraRetainedTokens) return layer;
  return { ...layer, slidingWindow: layer.slidingWindow + layer.extraRetainedTokens, extraRetainedTokens: 0 };
}

/** Whether the group takes part in prefix caching. */
export function prefixCacheable(spec: KvCacheSpec): boolean {
  return layerSpecs(spec).every(
    (layer) => layer.kind !== "circular" && !(layer.kind === "swa_mla" && layer.boundedReplay),
  );
}

/** Whether the spec is one of vLLM's `SlidingWindowSpec` family. */
export function isSlidingWindow(spec: LayerSpec): spec is SlidingWindowSpec {
  return spec.kind === "swa" || spec.kind === "swa_mla";
}

/** Whether the spec is one of vLLM's `FullAttentionSpec` family. */
export function isFullAttention(spec: LayerSpec): spec is FullAttentionSpec | MlaAttentionSpec | RswaSpec {
  return spec.kind === "full" || spec.kind === "mla" || spec.kind === "rswa";
}

/** Whether decode context parallelism shards the group. */
export function dcpSharded(spec: KvCacheSpec): boolean {
  const layer = unwrapSpec(spec);
  return layer.dcpSharded ?? layer.kind !== "mamba";
}

/** A text that is equal exactly for equal specs; what has a default may be written out or left out. */
export function specIdentity(spec: LayerSpec): string {
  const members: Record<string, unknown> = {
    ...spec,
    dcpSharded: dcpSharded(spec),
    tokensPerState: spec.tokensPerState ?? (spec.kind === "mamba" ? -1 : 1),
  };
  if (isSlidingWindow(spec)) {
    members["extraRetainedTokens"] = spec.extraRetainedTokens ?? 0;
    members["boundedReplay"] = spec.boundedReplay ?? false;
  }
  return JSON.stringify(
    Object.entries(members)
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
