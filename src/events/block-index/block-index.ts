import { describe } from "../../errors.js";
import type { ExternalBlockHash } from "../../hash/external-block-hash.js";
import { checkNames } from "../../lookup/options.js";
import { tell } from "../../lookup/tell.js";
import { configError, eventError } from "../errors.js";
import { EventHashes, type PromptHashes } from "../event-hashes.js";
import type { BlockRemoved, BlockStored, KVCacheEvent } from "../kv-events.js";
import type { SubscribedMessage } from "../subscribed-message.js";
import { DEVICE, type Holder, Holders } from "./block-holders.js";
import { BlockTable } from "./block-table.js";
import { type BlockIndexEngineInit, type EngineConfig, engineConfig } from "./engine-config.js";
import { sizeOfStored } from "./event-sizes.js";
import {
  type BlockIndexCounters,
  type BlockIndexProblem,
  type BlockIndexProblemReason,
  newCounters,
} from "./index-counters.js";
import { isLike, laneOf } from "./lane.js";
import { learned } from "./learned-groups.js";
import { explainMatch, type MatchExplanation } from "./match-explanation.js";
import { checkedMatchOptions, type MatchOptions, mediumName } from "./match-options.js";
import { type EngineMatch, PrefixMatch } from "./prefix-match.js";
import { PromptBlocks } from "./prompt-blocks.js";
import { promptWords } from "./prompt-words.js";

/** How large an index may grow, and what its hashes cover. */
export interface BlockIndexOptions {
  /** Tokens of one block hash, of engines that are not configured otherwise: their `hash_block_size`. */
  readonly blockSize: number;
  /** Blocks at most, counted once a group and medium. Each takes some 30 bytes. Default: 1,048,576. */
  readonly capacity?: number | undefined;
  /** Engines at most. Each 25 more take 8 bytes more a block. Default: 24. */
  readonly maxEngines?: number | undefined;
  /** Told of every event that was passed over, and why. What it throws is ignored. */
  readonly onProblem?: ((problem: BlockIndexProblem) => void) | undefined;
}

/** Combinations of group and medium that an index tells apart. */
const MAX_TAGS = 255;

const OPTION_NAMES = ["blockSize", "capacity", "maxEngines", "onProblem"];

/**
 * Which engines would hit how much of a prompt. It follows the events of several engines, of different models and shapes,
 * in bounded memory, and answers for a list of block hashes what each engine itself would answer. It may know of fewer
 * blocks than there are (when it is full, or events were lost), never of more than the events said.
 *
 * @example
 * ```ts
 * import { BlockHasher } from "mooncake-kv";
 * import { BlockIndex, blockStored, EventHashes } from "mooncake-kv/events";
 *
 * const index = new BlockIndex({ blockSize: 16 });
 * const hashes = new BlockHasher({ blockSize: 16, seed: "0" }).hash(Uint32Array.from({ length: 64 }, (_, token) => token));
 * index.apply("engine-1", blockStored({ blockHashes: EventHashes.from([hashes.at(0)!, hashes.at(1)!]), blockSize: 16, medium: "GPU" }));
 * console.log(index.match(hashes)[0]); // engine-1 has 32 tokens
 * ```
 */
export class BlockIndex {
  readonly blockSize: number;
  readonly #table: BlockTable;
  readonly #holders: Holders;
  readonly #defaults: EngineConfig;
  readonly #onProblem: ((problem: BlockIndexProblem) => void) | undefined;
  /** Tag of each group and medium. */
  readonly #tags = new Map<string, number>();
  readonly counters: BlockIndexCounters = newCounters();

  /** @throws MooncakeKvError `ERR_CONFIG` for sizes that are no whole numbers, and options that nobody knows. */
  constructor(options: BlockIndexOptions) {
    checkNames("BlockIndex", options, OPTION_NAMES);
    const { blockSize, capacity = 2 ** 20, maxEngines = 24, onProblem } = options;
    for (const [name, value, most] of [
      ["blockSize", blockSize, Number.MAX_SAFE_INTEGER],
      ["capacity", capacity, 2 ** 26],
      ["maxEngines", maxEngines, 4096],
    ] as const)
      if (!Number.isSafeInteger(value) || value < 1 || value > most)
        throw configError(`${name} is ${describe(value)}; it must be a whole number of 1 to ${most}`, {
          name,
          value,
        });
    if (onProblem !== undefined && typeof onProblem !== "function")
      throw configError(`onProblem is ${describe(onProblem)}; it must be a function`, { onProblem });
    this.blockSize = blockSize;
    this.#defaults = engineConfig("", {}, blockSize);
    this.#onProblem = onProblem;
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
   * Says of an engine what its events don't tell; without, it is taken as one of the newest release without speculative
   * decoding, whose groups are learned. May be said again at any time, also of an engine that has published already.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for what can't be, and when there is no room for another engine.
   */
  engine(name: string, init: BlockIndexEngineInit): void {
    checkEngine(name);
    const config = engineConfig(name, init, this.blockSize);
    const holder = this.#holders.ensure(name, config);
    // What was learned of blocks of another size does not hold any more.
    if (holder.config.hashBlockSize !== config.hashBlockSize) this.clear(name);
    holder.config = config;
  }

  /**
   * Takes note of an event of an engine. With data parallelism each rank is an engine of its own. An event that makes no
   * sense is passed over, counted and reported.
   *
   * @throws MooncakeKvError `ERR_SCHEMA` for what is no event, `ERR_CONFIG` for an engine without a name.
   */
  apply(engine: string, event: KVCacheEvent): void {
    checkEngine(engine);
    switch (event?.type) {
      case "BlockStored":
        checkHashes(event);
        this.#stored(engine, event);
        return;
      case "BlockRemoved":
        checkHashes(event);
        this.#removed(engine, event);
        return;
      case "AllBlocksCleared":
        this.#empty(this.#holders.get(engine));
        return;
      default:
        throw eventError(`${describe(event)} is no KV cache event`, { event });
    }
  }

  /**
   * Takes note of a message of a subscription: the events of a batch, or that batches are lost. After a gap or a restart
   * nothing is known of the engine; a batch that could not be read costs no more than itself.
   *
   * @throws MooncakeKvError as `apply`.
   */
  applyMessage(engine: string, message: SubscribedMessage): void {
    if (message.kind === "lost") {
      if (message.reason === "malformed") this.#problem(engine, "unreadable", message.message);
      else this.clear(engine);
      return;
    }
    for (const event of message.batch.events) this.apply(engine, event);
    const { problems, malformedEvents, unknownEvents } = message.batch;
    for (const { type, message: text } of problems) {
      this.#problem(engine, "unreadable", text);
      // Of this one nothing but its name matters.
      if (type === "AllBlocksCleared") this.#empty(this.#holders.get(engine));
    }
    // The decoder tells the first ones only, and counts all.
    this.counters.problems.unreadable += malformedEvents + unknownEvents - problems.length;
  }

  /**
   * Nothing is known of an engine any more, neither its blocks nor what its events told of its groups: it may be another
   * one by now. What was configured stays. Takes constant time, however much it held.
   */
  clear(engine: string): void {
    const holder = this.#holders.get(engine);
    this.#empty(holder);
    holder?.unlearn();
  }

  /** An engine is gone, and what was configured of it. Takes constant time. */
  removeEngine(engine: string): void {
    const holder = this.#holders.get(engine);
    if (holder === undefined) return;
    this.#empty(holder);
    this.#holders.forget(holder);
  }

  /**
   * How long a prefix of a prompt each engine would hit, longest first; engines that would hit nothing are left out.
   *
   * @param hashes of the prompt, as the engines hash it.
   * @throws MooncakeKvError `ERR_SCHEMA` for what is no list of hashes, `ERR_CONFIG` for options that make no sense.
   */
  match(hashes: PromptHashes | readonly ExternalBlockHash[], options: MatchOptions = {}): EngineMatch[] {
    const match = this.#match(hashes, options);
    const matches: EngineMatch[] = [];
    for (const holder of this.#chosen(options.engines)) {
      const { plan } = holder;
      const tokens = plan === undefined ? 0 : match.tokens(holder, plan);
      if (tokens > 0)
        matches.push({
          engine: holder.engine,
          tokens,
          blocks: Math.floor(tokens / holder.config.hashBlockSize),
        });
    }
    return matches.sort((a, b) => b.tokens - a.tokens || (a.engine < b.engine ? -1 : 1));
  }

  /**
   * Why one engine would hit as much of a prompt as it would: what each of its groups holds, which block ends the match,
   * and which rule made it shorter, by how many tokens.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for an engine that nobody knows, else as `match`.
   */
  explain(
    hashes: PromptHashes | readonly ExternalBlockHash[],
    engine: string,
    options: Omit<MatchOptions, "engines"> = {},
  ): MatchExplanation {
    const match = this.#match(hashes, options);
    const holder = this.#holders.get(engine);
    if (holder === undefined)
      throw configError(
        `the index knows no engine ${describe(engine)}; it knows ${this.engines.map((name) => describe(name)).join(", ") || "none"}`,
        { engine },
      );
    return explainMatch(match, holder);
  }

  #match(hashes: PromptHashes | readonly ExternalBlockHash[], options: MatchOptions): PrefixMatch {
    const { maxTokens, media } = checkedMatchOptions(options);
    const prompt = new PromptBlocks(this.#table, promptWords(hashes));
    return new PrefixMatch(prompt, media, maxTokens);
  }

  #chosen(engines: Iterable<string> | undefined): Iterable<Holder> {
    if (engines === undefined) return this.#holders;
    return [...new Set(engines)].flatMap((engine) => this.#holders.get(engine) ?? []);
  }

  #stored(engine: string, event: BlockStored): void {
    const known = this.#holders.get(engine);
    if (known?.lane !== undefined && known.slot >= 0 && isLike(event, known.lane))
      this.#add(known, event, known.lane.tag);
    else this.#storedAnew(engine, event, known);
  }

  /** The first event of its kind, or one that is not like the one before. */
  #storedAnew(engine: string, event: BlockStored, known: Holder | undefined): void {
    const groupIdx = event.groupIdx ?? 0;
    const medium = mediumName(event.medium);
    if (known === undefined && this.#holders.full) {
      this.#problem(engine, "too-many-engines", "the index has as many engines as maxEngines allows");
      return;
    }
    const size = sizeOfStored(event, known, known?.config ?? this.#defaults, groupIdx, medium === DEVICE);
    if (size.problem !== undefined) {
      this.#problem(engine, size.reason, size.problem);
      return;
    }
    const tag = this.#tag(groupIdx, medium);
    if (tag === undefined) {
      this.#problem(
        engine,
        "too-many-groups",
        `the index tells ${MAX_TAGS} combinations of KV cache group and medium apart, no more`,
      );
      return;
    }
    const holder = known ?? this.#holders.ensure(engine, this.#defaults);
    holder.setTag(groupIdx, medium, tag);
    holder.learn(groupIdx, learned(holder.group(groupIdx), event, size.learned));
    holder.lane = laneOf(event, tag);
    if (event.blockHashes.length === 0) return;
    if (holder.slot < 0) {
      this.#holders.assign(holder, () => this.#table.sweepAll());
      this.#table.enlist(holder.slot);
    }
    this.#add(holder, event, tag);
  }

  #add({ slot }: Holder, { blockHashes }: BlockStored, tag: number): void {
    this.counters.uncountedCopies += this.#table.add(blockHashes.words, tag, slot);
    this.counters.stored += blockHashes.length;
  }

  #removed(engine: string, { groupIdx, medium, blockHashes }: BlockRemoved): void {
    const holder = this.#holders.get(engine);
    let removed = 0;
    if (holder !== undefined && holder.slot >= 0) {
      const { lane } = holder;
      const tag =
        lane !== undefined && lane.groupIdx === groupIdx && lane.medium === medium
          ? lane.tag
          : holder.tagsOn(mediumName(medium))?.get(groupIdx ?? 0);
      if (tag !== undefined) removed = this.#table.remove(blockHashes.words, tag, holder.slot);
    }
    this.counters.removed += removed;
    this.counters.removedUnknown += blockHashes.length - removed;
  }

  /** An engine holds nothing; its groups are what they were. */
  #empty(holder: Holder | undefined): void {
    if (holder === undefined) return;
    this.counters.cleared++;
    const slot = this.#holders.unassign(holder);
    if (slot >= 0) this.#table.retire(slot);
  }

  #tag(groupIdx: number, medium: string): number | undefined {
    const name = `${groupIdx} ${medium}`;
    const known = this.#tags.get(name);
    if (known !== undefined) return known;
    if (this.#tags.size >= MAX_TAGS) return undefined;
    this.#tags.set(name, this.#tags.size);
    return this.#tags.size - 1;
  }

  #problem(engine: string, reason: BlockIndexProblemReason, message: string): void {
    this.counters.problems[reason]++;
    tell(this.#onProblem, { engine, reason, message });
  }
}

function checkEngine(engine: unknown): void {
  if (typeof engine !== "string" || engine === "")
    throw configError(`the engine is ${describe(engine)}; it must be a name`, { engine });
}

function checkHashes({ type, blockHashes }: BlockStored | BlockRemoved): void {
  if (!(blockHashes instanceof EventHashes))
    throw eventError(`blockHashes of a ${type} is ${describe(blockHashes)}; use EventHashes.from`, {
      blockHashes,
    });
}
