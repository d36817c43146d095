import { checkTokens, configChecks, lookupError } from "./checks.js";
import { type LookupOptions, lookup } from "./lookup/lookup.js";
import type { LookupResult } from "./lookup/lookup-session.js";
import type { PrefixSearch } from "./lookup/prefix-search.js";
import { ExistenceTable, UNKNOWN, Wanted } from "./search/existence-table.js";
import type { GroupHit, Search } from "./search/group-search.js";
import { findLongestHit, type LongestHit } from "./search/longest-hit.js";
import { type BlockMask, reachableBlockMask } from "./search/reachable-block-mask.js";
import { resolveDcpKvCacheSpec } from "./spec/block-sizes.js";
import {
  checkOptions,
  KV_CACHE_CONFIG,
  type KvCacheConfig,
  type MooncakeStoreCoordinatorOptions,
} from "./spec/coordinator-options.js";
import {
  checkKvCacheGroups,
  coverageSpec,
  type KvCacheGroupSpec,
  type LayerSpec,
} from "./spec/kv-cache-spec.js";
import { replayBoundaries } from "./spec/retention.js";
import { proofMargin, type StoreSpecGroup, splitSpecGroups } from "./spec/spec-groups.js";
import { prefixCacheableGroupIds } from "./spec/store-groups.js";

/** A hit and which blocks of each group it consists of. */
export interface LongestCacheHit {
  /** Tokens. */
  readonly hitLength: number;
  /** One mask a group: 1 for a block to load, 0 for one that the group does not need. */
  readonly masks: readonly Uint8Array[];
  /** The groups that last made the hit shorter; empty when nothing is missing. */
  readonly limitedBy: readonly number[];
}

/**
 * Decides which blocks of a prompt are worth storing, asking for and loading, where an engine has several kinds of
 * cache at once. Pure and immutable. Mirrors `MooncakeStoreCoordinator` of vllm-0.33.
 *
 * @example
 * ```ts
 * import { BlockHasher, MooncakeStoreCoordinator, PoolKey } from "mooncake-kv";
 * import { openStore } from "mooncake-kv/store";
 *
 * const coordinator = MooncakeStoreCoordinator.fromKvCacheConfig({
 *   kvCacheGroups: [{ kvCacheSpec: { kind: "full", blockSize: 16 } }],
 *   schedulerBlockSize: 16,
 *   hashBlockSize: 16,
 * });
 * const store = await openStore("mooncake-admin:http://127.0.0.1:9003");
 * const tokens = Uint32Array.from({ length: 64 }, (_, token) => token);
 * const { hitLength, failure } = await coordinator.lookup({
 *   numTokens: tokens.length,
 *   blockHashes: new BlockHasher({ blockSize: 16 }).hash(tokens),
 *   keyPrefixes: [[PoolKey.buildPrefix({ modelName: "Qwen3-8B" })]],
 *   exists: (keys) => store.exists(keys, { deadlineMs: 1_000 }),
 * });
 * console.log(failure ? `unknown: ${failure.error.message}` : `${hitLength} of ${tokens.length} tokens`);
 * ```
 */
export class MooncakeStoreCoordinator implements PrefixSearch {
  /** The store's groups; their positions are the group ids. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  /** Tokens: a common multiple of the block sizes. */
  readonly schedulerBlockSize: number;
  /** Tokens that one block hash covers. */
  readonly hashBlockSize: number;
  /** Whether speculative decoding drops the last matched block. */
  readonly useEagle: boolean;
  /** Tokens between the states that sparse groups keep; null keeps what any hit needs. */
  readonly retentionInterval: number | null;
  /** Whether hits may end inside a block, at a hash. */
  readonly enablePartialHashHits: boolean;
  /** Groups that are searched together, in the order of the search. */
  readonly specGroups: readonly StoreSpecGroup[];
  /** Groups whose last matched block is dropped for speculative decoding. */
  readonly eagleGroupIds: ReadonlySet<number>;
  /** Groups of states, of which a hit needs one instead of all blocks. */
  readonly mambaGroupIds: ReadonlySet<number>;
  /** Tokens past a hit that a speculative group must match; none for Mamba. */
  readonly eagleProofMarginByGroup: ReadonlyMap<number, number>;

  /**
   * @throws MooncakeKvError `ERR_CONFIG` for a spec that makes no sense, for cross attention, and for sizes of which one
   * does not divide the other.
   */
  constructor(options: MooncakeStoreCoordinatorOptions) {
    checkOptions(options);
    this.kvCacheGroups = [...options.kvCacheGroups];
    this.schedulerBlockSize = options.schedulerBlockSize;
    this.hashBlockSize = options.hashBlockSize;
    this.useEagle = options.useEagle ?? false;
    this.retentionInterval = options.retentionInterval ?? null;
    this.enablePartialHashHits = options.enablePartialHashHits ?? false;
    this.specGroups = splitSpecGroups(this.kvCacheGroups, this.useEagle);
    const eagle = this.specGroups.filter((group) => group.useEagle);
    this.eagleGroupIds = new Set(eagle.flatMap(({ groupIds }) => groupIds));
    this.mambaGroupIds = new Set(
      [...this.kvCacheGroups.keys()].filter((id) => this.coverageSpec(id).kind === "mamba"),
    );
    this.eagleProofMarginByGroup = new Map(
      eagle
        .filter(({ spec }) => spec.kind !== "mamba")
        .flatMap((group) => {
          const margin = proofMargin(group, this.hashBlockSize, this.enablePartialHashHits);
          return group.groupIds.map((id): [number, number] => [id, margin]);
        }),
    );
  }

  /**
   * The coordinator that scheduler and workers of one engine share. Mirrors `from_kv_cache_config`.
   *
   * @throws MooncakeKvError `ERR_CONFIG` as the constructor.
   */
  static fromKvCacheConfig(config: KvCacheConfig): MooncakeStoreCoordinator {
    configChecks.names("a KV cache configuration", config, KV_CACHE_CONFIG);
    const { kvCacheGroups, schedulerBlockSize, dcpWorldSize = 1, cacheHitAlignmentTokens = null } = config;
    configChecks.whole("dcpWorldSize", dcpWorldSize, 1);
    checkKvCacheGroups(kvCacheGroups);
    return new MooncakeStoreCoordinator({
      kvCacheGroups: prefixCacheableGroupIds(kvCacheGroups).map((id) => {
        const group = kvCacheGroups[id]!;
        return { ...group, kvCacheSpec: resolveDcpKvCacheSpec(group.kvCacheSpec, dcpWorldSize) };
      }),
      schedulerBlockSize,
      hashBlockSize: config.hashBlockSize,
      useEagle: config.useEagle,
      retentionInterval: config.retentionInterval,
      enablePartialHashHits: cacheHitAlignmentTokens !== null && cacheHitAlignmentTokens < schedulerBlockSize,
    });
  }

  /** What the length of every hit is a multiple of, in tokens. */
  get alignmentTokens(): number {
    return this.enablePartialHashHits ? this.hashBlockSize : this.schedulerBlockSize;
  }

  /** The longest length up to `length` at which a hit may end. @throws MooncakeKvError `ERR_LOOKUP`. */
  alignLookupLength(length: number): number {
    checkTokens("length", length);
    return length - (length % this.alignmentTokens);
  }

  /**
   * The longest prefix that every group has, by what `existence` says, and the blocks to load for it.
   *
   * @param maxLength tokens that the hit may have at most.
   * @param applyEagle whether speculative groups drop their last matched block. Default: true.
   * @throws MooncakeKvError `ERR_LOOKUP` where vLLM raises, and for a state that is not known.
   */
  findLongestCacheHit(
    maxLength: number,
    existence: ExistenceTable,
    applyEagle: boolean = true,
  ): LongestCacheHit {
    checkTokens("maxLength", maxLength);
    const hit = this.search(maxLength, existence, { applyEagle, lengthOnly: false });
    if (hit instanceof Wanted)
      throw lookupError(
        `whether group ${hit.groupIds[0]} has the block of hash ${hit.first} is not known; ask the store first`,
        { groupIds: hit.groupIds, hashIndex: hit.first, state: UNKNOWN },
      );
    const masks: Uint8Array[] = this.kvCacheGroups.map(() => new Uint8Array(0));
    for (const [index, { groupIds }] of this.specGroups.entries())
      for (const id of groupIds) masks[id] = hitMask(hit.groupHits[index]);
    return { hitLength: hit.hitLength, masks, limitedBy: hit.limitedBy };
  }

  /**
   * The search of `findLongestCacheHit` by itself: where a state is unknown it says which blocks it has to know.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` where vLLM raises.
   */
  search(
    maxLength: number,
    existence: ExistenceTable,
    { applyEagle, lengthOnly }: { readonly applyEagle: boolean; readonly lengthOnly: boolean },
  ): Search<LongestHit> {
    const { specGroups, hashBlockSize, enablePartialHashHits, alignmentTokens } = this;
    return findLongestHit({
      specGroups,
      hashBlockSize,
      enablePartialHashHits,
      alignmentTokens,
      existence,
      maxLength,
      applyEagle,
      lengthOnly,
    });
  }

  /**
   * Which blocks of each group a hit of `tokenLen` tokens has to load. Mirrors `load_mask`.
   *
   * @param numHashes block hashes of the prompt.
   * @throws MooncakeKvError `ERR_LOOKUP` where vLLM raises.
   */
  loadMask(numHashes: number, tokenLen: number): readonly Uint8Array[] {
    // The length is already that after the speculative drop; a second one would leave the last block out.
    return this.findLongestCacheHit(tokenLen, ExistenceTable.everything(numHashes), false).masks;
  }

  /**
   * Which blocks of each group from `startToken` on are worth storing. Mamba groups store none here: their states are
   * handed over one by one. Mirrors `store_mask`.
   *
   * @param alignedTokenLen tokens in all, a multiple of the alignment.
   * @param numPromptTokens tokens of the prompt; null, the default, while it is not known.
   * @throws MooncakeKvError `ERR_LOOKUP` for a length that is no such multiple.
   */
  storeMask(
    alignedTokenLen: number,
    startToken: number = 0,
    numPromptTokens: number | null = null,
  ): readonly BlockMask[] {
    checkTokens("startToken", startToken);
    const boundaries =
      numPromptTokens === null
        ? []
        : replayBoundaries(numPromptTokens, this.schedulerBlockSize, this.eagleGroupIds.size > 0);
    return this.kvCacheGroups.map((_, id) => {
      const { blockSize } = this.coverageSpec(id);
      const end = this.#endBlock(id, alignedTokenLen);
      const start = Math.min(end, Math.ceil(startToken / blockSize));
      if (this.mambaGroupIds.has(id)) return new Uint8Array(end - start);
      return this.#reachable(id, start, end, this.retentionInterval, boundaries);
    });
  }

  /**
   * Which blocks of each group can end a hit or be needed by one, so that asking for others is useless. Mirrors
   * `lookup_mask`.
   *
   * @param alignedTokenLen tokens in all, a multiple of the alignment.
   * @throws MooncakeKvError `ERR_LOOKUP` for a length that is no such multiple.
   */
  lookupMask(alignedTokenLen: number): readonly BlockMask[] {
    return this.kvCacheGroups.map((_, id) => this.lookupMaskOf(id, this.#endBlock(id, alignedTokenLen)));
  }

  /** The lookup mask of the first `endBlock` blocks of one group. */
  lookupMaskOf(groupId: number, endBlock: number): BlockMask {
    return this.#reachable(groupId, 0, endBlock, null, []);
  }

  /**
   * Asks a store how much of a prompt it holds. Never rejects because of what the store says or fails to say: that is a
   * `failure` of the result, whose hit of 0 then says nothing about the store.
   *
   * @throws MooncakeKvError `ERR_LOOKUP`, `ERR_KEY` or `ERR_HASH` for options that make no sense, before anything is asked.
   */
  lookup(options: LookupOptions): Promise<LookupResult> {
    return lookup(this, options);
  }

  /** The spec with which a group is searched. @throws MooncakeKvError `ERR_LOOKUP` when there is no such group. */
  coverageSpec(groupId: number): LayerSpec {
    const group = this.kvCacheGroups[groupId];
    if (group === undefined)
      throw lookupError(`there is no group ${groupId} among ${this.kvCacheGroups.length}`, { groupId });
    return coverageSpec(group.kvCacheSpec);
  }

  #endBlock(groupId: number, alignedTokenLen: number): number {
    checkTokens("alignedTokenLen", alignedTokenLen);
    if (alignedTokenLen % this.alignmentTokens !== 0)
      throw lookupError(
        `${alignedTokenLen} tokens are no multiple of ${this.alignmentTokens}; round down to ` +
          `${this.alignLookupLength(alignedTokenLen)}`,
        { alignedTokenLen, alignmentTokens: this.alignmentTokens },
      );
    return Math.floor(alignedTokenLen / this.coverageSpec(groupId).blockSize);
  }

  #reachable(
    groupId: number,
    startBlock: number,
    endBlock: number,
    retentionInterval: number | null,
    reachableBoundaries: readonly number[],
  ): BlockMask {
    return reachableBlockMask({
      spec: this.coverageSpec(groupId),
      startBlock,
      endBlock,
      alignmentTokens: this.schedulerBlockSize,
      useEagle: this.eagleGroupIds.has(groupId),
      retentionInterval,
      reachableBoundaries,
    });
  }
}

function hitMask(hit: GroupHit | undefined): Uint8Array {
  return hit === undefined ? new Uint8Array(0) : new Uint8Array(hit.numBlocks).fill(1, hit.nulls);
}
