import { describe } from "../errors.js";
import { Holders } from "./block-holders.js";
import { BlockTable } from "./block-table.js";
import { configError } from "./errors.js";
import { idWords, type PromptHashes } from "./event-hashes.js";
import type { SubscribedMessage } from "./event-subscriber.js";
import { type BlockStored, isAmbiguous, type KVCacheEvent } from "./kv-events.js";
import { type EngineMatch, type GroupRule, type MatchRequest, matchPrefix } from "./prefix-match.js";

/** How large an index may grow, and what its hashes cover. */
export interface BlockIndexOptions {
  /** Tokens of one block hash of a prompt: the engines' `hash_block_size`. */
  readonly blockSize: number;
  /** Tokens of one block of each KV cache group, where that is another number than `blockSize`; a multiple of it. */
  readonly groupBlockSizes?: Readonly<Record<number, number>> | undefined;
  /** Blocks at most, counted once a group and medium. Each takes some 25 bytes. Default: 1,048,576. */
  readonly capacity?: number | undefined;
  /** Engines at most. Default: 24. */
  readonly maxEngines?: number | undefined;
}

/** Which blocks count in a match. */
export interface MatchOptions {
  /** Only these media (`GPU`, `CPU`, `STORAGE`, in any case). Default: all. */
  readonly media?: readonly string[] | undefined;
}

/** How many events there were, by what became of them; those of blocks count blocks. */
export interface BlockIndexCounters {
  stored: number;
  removed: number;
  /** Removed, but not known to be there: evicted from the index, or stored before it listened. */
  removedUnknown: number;
  cleared: number;
  /** Stored events whose tokens do not fit their hashes; they are left out. */
  ambiguous: number;
}

/** Kinds of cache of which the end of a prefix is enough. */
const WINDOW_KINDS: ReadonlySet<string> = new Set(["sliding_window", "sliding_window_mla"]);
const STATE_KINDS: ReadonlySet<string> = new Set(["mamba"]);

/** Combinations of group and medium that an index tells apart. */
const MAX_TAGS = 255;

/**
 * Which engines hold how much of a prompt. It follows the events of several engines, in bounded memory, and answers for a
 * list of block hashes how long a prefix of it each engine has. It may know of fewer blocks than there are (when it is
 * full, or events were lost), never of more than the events said.
 */
export class BlockIndex {
  readonly blockSize: number;
  readonly #groupBlockSizes: Readonly<Record<number, number>>;
  readonly #table: BlockTable;
  readonly #holders: Holders;
  /** Tag of each group and medium. */
  readonly #tags = new Map<number, Map<string, number>>();
  readonly #rules = new Map<number, GroupRule>();
  #tagCount = 0;
  readonly counters: BlockIndexCounters = {
    stored: 0,
    removed: 0,
    removedUnknown: 0,
    cleared: 0,
    ambiguous: 0,
  };

  /** @throws MooncakeKvError `ERR_CONFIG` for sizes that are no whole numbers, or do not fit together. */
  constructor(options: BlockIndexOptions) {
    const { blockSize, groupBlockSizes = {}, capacity = 2 ** 20, maxEngines = 24 } = options;
    for (const [name, value, most] of [
      ["blockSize", blockSize, Number.MAX_SAFE_INTEGER],
      ["capacity", capacity, 2 ** 28],
      ["maxEngines", maxEngines, 4096],
    ] as const)
      if (!Number.isSafeInteger(value) || value < 1 || value > most)
        throw configError(`${name} is ${describe(value)}; it must be a whole number of 1 to ${most}`, {
          name,
          value,
        });
    for (const [group, size] of Object.entries(groupBlockSizes))
      if (!Number.isSafeInteger(size) || size < 1 || size % blockSize !== 0)
        throw configError(
          `group ${group} has blocks of ${describe(size)} tokens; they must be a multiple of ${blockSize}`,
          { group, size, blockSize },
        );
    this.blockSize = blockSize;
    this.#groupBlockSizes = groupBlockSizes;
    // A quarter more numbers than engines, so that a cleared engine seldom waits for a sweep.
    const words = Math.ceil((maxEngines * 1.25 + 2) / 32);
    this.#holders = new Holders(maxEngines, 32 * words);
    this.#table = new BlockTable(capacity, words, (mask) => this.#holders.reuse(mask));
  }

  /** Blocks in the index, counted once a group and medium, however many engines hold them. */
  get size(): number {
    return this.#table.size;
  }

  /** Blocks that gave way to others because the index was full. */
  get evicted(): number {
    return this.#table.evicted;
  }

  /** Memory of the index, which does not grow. */
  get byteLength(): number {
    return this.#table.byteLength;
  }

  /** Names of the engines. */
  get engines(): string[] {
    return Array.from(this.#holders, ({ engine }) => engine);
  }

  /** Blocks that an engine holds, counted once a group and medium; 0 for one that nobody knows. */
  blocksOf(engine: string): number {
    const slot = this.#holders.get(engine)?.slot ?? -1;
    return slot < 0 ? 0 : this.#table.held[slot]!;
  }

  /**
   * Takes note of an event of an engine. With data parallelism each rank is an engine of its own.
   *
   * @throws MooncakeKvError `ERR_CONFIG` when the blocks of an engine are not of the size that the index was made for, or
   * when it has no room for another engine; then nothing has changed.
   */
  apply(engine: string, event: KVCacheEvent): void {
    switch (event.type) {
      case "BlockStored":
        this.#stored(engine, event);
        return;
      case "BlockRemoved": {
        const holder = this.#holders.get(engine);
        const tag = this.#tags.get(event.groupIdx ?? 0)?.get(mediumName(event.medium));
        const { words, length } = event.blockHashes;
        const known = holder !== undefined && holder.slot >= 0 && tag !== undefined;
        const removed = known ? this.#table.remove(words, tag, holder.slot) : 0;
        this.counters.removed += removed;
        this.counters.removedUnknown += length - removed;
        return;
      }
      case "AllBlocksCleared":
        this.clear(engine);
        return;
    }
  }

  /**
   * Takes note of a message of a subscription: the events of a batch, or that some are lost, after which nothing is known
   * of the engine.
   *
   * @throws MooncakeKvError `ERR_CONFIG` as `apply`.
   */
  applyMessage(engine: string, message: SubscribedMessage): void {
    if (message.kind === "lost") this.clear(engine);
    else for (const event of message.batch.events) this.apply(engine, event);
  }

  /** An engine holds nothing. Takes constant time, however much it held. */
  clear(engine: string): void {
    const holder = this.#holders.get(engine);
    if (holder === undefined) return;
    this.counters.cleared++;
    const slot = this.#holders.unassign(holder);
    if (slot >= 0) this.#table.retire(slot);
  }

  /** An engine is gone. Takes constant time. */
  removeEngine(engine: string): void {
    const holder = this.#holders.get(engine);
    if (holder === undefined) return;
    this.clear(engine);
    this.#holders.forget(holder);
  }

  /**
   * How long a prefix of a prompt each engine holds, longest first; engines without a block of it are left out. A prefix
   * counts only where every KV cache group of the engine has what it needs of it: all blocks, or those of its sliding
   * window, or the last state.
   */
  match(hashes: PromptHashes, options: MatchOptions = {}): EngineMatch[] {
    const media = options.media && new Set(options.media.map(mediumName));
    const request: MatchRequest = {
      words: idWords(hashes),
      blockSize: this.blockSize,
      groups: Array.from(this.#tags, ([groupIdx, tags]) => ({
        groupIdx,
        rule: this.#rules.get(groupIdx)!,
        tags: Array.from(tags)
          .filter(([medium]) => media === undefined || media.has(medium))
          .map(([, tag]) => tag),
      })),
    };
    return matchPrefix(this.#table, this.#holders, request);
  }

  #stored(engine: string, event: BlockStored): void {
    const { blockHashes, blockSize, groupIdx } = event;
    const group = groupIdx ?? 0;
    const expected = this.#groupBlockSizes[group] ?? this.blockSize;
    if (blockSize !== expected)
      throw configError(
        `${describe(engine)} has blocks of ${blockSize} tokens in KV cache group ${group}, but the index was made for ${expected}; its hashes would never match (blockSize, groupBlockSizes)`,
        { engine, group, blockSize, expected },
      );
    if (isAmbiguous(event)) {
      this.counters.ambiguous++;
      return;
    }
    const tag = this.#tag(group, mediumName(event.medium));
    const holder = this.#holders.ensure(engine);
    if (holder.slot < 0) {
      this.#holders.assign(holder, () => this.#table.sweepAll());
      this.#table.enlist(holder.slot);
    }
    holder.groups.add(group);
    this.#learn(group, event);
    this.#table.add(blockHashes.words, tag, holder.slot);
    this.counters.stored += blockHashes.length;
  }

  #tag(group: number, medium: string): number {
    let tags = this.#tags.get(group);
    const known = tags?.get(medium);
    if (known !== undefined) return known;
    if (this.#tagCount >= MAX_TAGS)
      throw configError(
        `the index tells ${MAX_TAGS} combinations of KV cache group and medium apart, no more`,
        {
          group,
          medium,
        },
      );
    if (tags === undefined) {
      tags = new Map();
      this.#tags.set(group, tags);
      this.#rules.set(group, { blockSize: this.#groupBlockSizes[group] ?? this.blockSize, tail: undefined });
    }
    tags.set(medium, this.#tagCount);
    return this.#tagCount++;
  }

  /** What a group needs of a prefix, as its events tell. */
  #learn(
    group: number,
    { kvCacheSpecKind: kind, kvCacheSpecSlidingWindow: window, blockSize }: BlockStored,
  ): void {
    if (kind === null) return;
    const tail = STATE_KINDS.has(kind)
      ? 1
      : WINDOW_KINDS.has(kind) && window !== null
        ? Math.ceil((window - 1) / blockSize)
        : undefined;
    const rule = this.#rules.get(group)!;
    if (rule.tail !== tail) this.#rules.set(group, { ...rule, tail });
  }
}

function mediumName(medium: string | null): string {
  return medium?.toUpperCase() ?? "GPU";
}
