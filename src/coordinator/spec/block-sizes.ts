import type { OptionNames } from "../../checks/checks-for.js";
import { configChecks, configError } from "../checks.js";
import {
  checkKvCacheGroups,
  dcpSharded,
  type KvCacheGroupSpec,
  type KvCacheSpec,
  layerSpecs,
  prefixCacheable,
} from "./kv-cache-spec.js";
import { supportsFineGrainedHashLookup } from "./manager.js";
import { greatestCommonDivisor, leastCommonMultiple } from "./multiples.js";

/** What decides the block sizes of an engine. */
export interface BlockSizeOptions {
  /** All cache groups of the engine, with block sizes as one rank sees them. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  /** `cache_config.block_size`; counts only where there are fewer than two groups. */
  readonly blockSize: number;
  /** Decode context parallel size. Default: 1. */
  readonly dcpWorldSize?: number | undefined;
  /** `cache_config.prefix_match_unit`: the block size to hash with. Default: what fits the groups. */
  readonly prefixMatchUnit?: number | undefined;
  /** Default: true. */
  readonly enablePrefixCaching?: boolean | undefined;
  /** Whether a KV connector is configured. Default: true. */
  readonly hasConnector?: boolean | undefined;
}

const OPTIONS: OptionNames<BlockSizeOptions> = {
  kvCacheGroups: 1,
  blockSize: 1,
  dcpWorldSize: 1,
  prefixMatchUnit: 1,
  enablePrefixCaching: 1,
  hasConnector: 1,
};

/** Block sizes of an engine, in tokens. */
export interface KvCacheBlockSizes {
  /** What the number of computed tokens is a multiple of. */
  readonly schedulerBlockSize: number;
  /** What block hashes are made of. */
  readonly hashBlockSize: number;
}

/** Tokens of one block under decode context parallelism. Mirrors `resolve_dcp_kv_block_size`. */
export function resolveDcpKvBlockSize(spec: KvCacheSpec, dcpWorldSize: number): number {
  return spec.blockSize * (dcpSharded(spec) ? dcpWorldSize : 1);
}

/** The spec with its block size scaled for decode context parallelism. Mirrors `resolve_dcp_kv_cache_spec`. */
export function resolveDcpKvCacheSpec<Spec extends KvCacheSpec>(spec: Spec, dcpWorldSize: number): Spec {
  const blockSize = resolveDcpKvBlockSize(spec, dcpWorldSize);
  if (blockSize === spec.blockSize) return spec;
  if (spec.kind !== "uniform") return { ...spec, blockSize };
  return { ...spec, blockSize, inner: spec.inner.map((layer) => ({ ...layer, blockSize })) };
}

/**
 * Whether states of aligned Mamba layers make hits below the block size possible. Mirrors `partial_hash_hits_enabled`.
 *
 * @param checkManagers whether every other cacheable group must be able to end a hit inside a block, as the core asks.
 */
export function partialHashHitsEnabled(
  groups: readonly KvCacheGroupSpec[],
  hashBlockSize: number,
  dcpWorldSize: number = 1,
  checkManagers: boolean = false,
): boolean {
  const finer = groups
    .flatMap((group) => layerSpecs(group.kvCacheSpec))
    .some(
      (spec) =>
        spec.kind === "mamba" &&
        spec.mambaCacheMode === "align" &&
        (dcpWorldSize > 1 ? spec.blockSize >= hashBlockSize : spec.blockSize > hashBlockSize),
    );
  if (!finer || !checkManagers) return finer;
  return groups.every(
    ({ kvCacheSpec }) =>
      !prefixCacheable(kvCacheSpec) ||
      supportsFineGrainedHashLookup(kvCacheSpec) ||
      resolveDcpKvBlockSize(kvCacheSpec, dcpWorldSize) === hashBlockSize,
  );
}

/** Tokens that a speculative group must match past a hit before they are dropped. Mirrors `eagle_proof_margin`. */
export function eagleProofMargin(
  blockSize: number,
  hashBlockSize: number,
  fineGrainedLookup: boolean,
): number {
  return fineGrainedLookup && blockSize > hashBlockSize ? hashBlockSize : blockSize;
}

/**
 * The two block sizes of an engine. Mirrors `resolve_kv_cache_block_sizes` of vllm-0.33.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a `prefixMatchUnit` that does not divide the block sizes or cuts a
 * compressed state, and for sizes whose common multiple is no exact number.
 */
export function resolveKvCacheBlockSizes(options: BlockSizeOptions): KvCacheBlockSizes {
  const { groups, dcp, unit, hashing } = checkedOptions(options);
  if (groups.length <= 1) return singleGroupSizes(options.blockSize, groups[0], dcp, unit, hashing);

  const blockSizes = groups.map((group) => resolveDcpKvBlockSize(group.kvCacheSpec, dcp));
  const schedulerBlockSize = blockSizes.reduce(exactCommonMultiple);
  const layers = groups.flatMap((group) => layerSpecs(group.kvCacheSpec));
  const unaligned = layers.some((spec) => spec.kind === "mamba" && spec.mambaCacheMode !== "align");
  if (!hashing || unaligned) return { schedulerBlockSize, hashBlockSize: schedulerBlockSize };

  const cacheable = blockSizes.filter((_, index) => prefixCacheable(groups[index]!.kvCacheSpec));
  const hashed = cacheable.length > 0 ? cacheable : blockSizes;
  const hashBlockSize = unit ?? hashed.reduce(greatestCommonDivisor);
  if (hashed.some((size) => size % hashBlockSize !== 0))
    throw configError(
      `prefixMatchUnit ${hashBlockSize} must divide the block sizes of all prefix-cacheable groups, ${hashed.join(", ")}`,
      { prefixMatchUnit: hashBlockSize, blockSizes: hashed },
    );
  const alignment = partialHashHitsEnabled(groups, hashBlockSize, dcp) ? hashBlockSize : schedulerBlockSize;
  for (const layer of layers) {
    const tokensPerState = layer.tokensPerState ?? 1;
    const compressed = prefixCacheable(layer) && Number.isInteger(tokensPerState) && tokensPerState > 1;
    if (compressed && alignment % tokensPerState !== 0)
      throw configError(
        `hits end at multiples of ${alignment} tokens, but a state of ${layer.kind} covers ${tokensPerState}; ` +
          "choose a prefixMatchUnit that is a multiple of it",
        { alignment, tokensPerState, kind: layer.kind },
      );
  }
  return { schedulerBlockSize, hashBlockSize };
}

/**
 * What the length of every hit is a multiple of: the hash block size where partial hits are possible, else the
 * scheduler block size. Mirrors `resolve_cache_hit_alignment_tokens` of vllm-0.33.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `resolveKvCacheBlockSizes`.
 */
export function resolveCacheHitAlignmentTokens(options: BlockSizeOptions): number {
  const { schedulerBlockSize, hashBlockSize } = resolveKvCacheBlockSizes(options);
  const { kvCacheGroups, dcpWorldSize = 1, enablePrefixCaching = true } = options;
  if (!enablePrefixCaching || kvCacheGroups.length <= 1) return schedulerBlockSize;
  return partialHashHitsEnabled(kvCacheGroups, hashBlockSize, dcpWorldSize, true)
    ? hashBlockSize
    : schedulerBlockSize;
}

function checkedOptions(options: BlockSizeOptions) {
  configChecks.names("block sizes", options, OPTIONS);
  const { kvCacheGroups: groups, dcpWorldSize: dcp = 1, prefixMatchUnit: unit } = options;
  checkKvCacheGroups(groups);
  configChecks.whole("blockSize", options.blockSize, 1);
  configChecks.whole("dcpWorldSize", dcp, 1);
  if (unit !== undefined) configChecks.whole("prefixMatchUnit", unit, 1);
  const hashing = (options.enablePrefixCaching ?? true) || (options.hasConnector ?? true);
  return { groups, dcp, unit, hashing };
}

function singleGroupSizes(
  blockSize: number,
  group: KvCacheGroupSpec | undefined,
  dcp: number,
  unit: number | undefined,
  hashing: boolean,
): KvCacheBlockSizes {
  const size = blockSize * (group !== undefined && !dcpSharded(group.kvCacheSpec) ? 1 : dcp);
  if (group !== undefined && hashing && unit !== undefined && unit !== size)
    throw configError(
      `prefixMatchUnit is ${unit}, but with one cache group hits end at its block size; leave it out or set it to ${size}`,
      { prefixMatchUnit: unit, blockSize: size },
    );
  return { schedulerBlockSize: size, hashBlockSize: size };
}

function exactCommonMultiple(a: number, b: number): number {
  const multiple = leastCommonMultiple(a, b);
  if (!Number.isSafeInteger(multiple))
    throw configError(`the least common multiple of block sizes ${a} and ${b} is above 2^53`, { a, b });
  return multiple;
}
