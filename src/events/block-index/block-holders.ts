import { configError } from "../errors.js";
import type { EngineConfig } from "./engine-config.js";
import { type EnginePlan, enginePlan } from "./engine-plan.js";
import type { Lane } from "./lane.js";
import type { LearnedGroup } from "./learned-groups.js";

/** The medium of an engine's own cache; all others are tiers below it. */
export const DEVICE = "GPU";

/** An engine of a block index. */
export class Holder {
  readonly engine: string;
  /** Its number in the table; another one after each clear. -1 while it holds nothing. */
  slot = -1;
  /** Tags of the blocks that it has published in its own cache, by KV cache group. */
  readonly deviceTags: Map<number, number> = new Map();
  /** The same on the tiers below, by medium in capitals. */
  readonly tagsBelow: Map<string, Map<number, number>> = new Map();
  /** Of what kind the last stored event was; undefined after any change. */
  lane: Lane | undefined;
  #config: EngineConfig;
  #groups = new Map<number, LearnedGroup>();
  #plan: EnginePlan | undefined;

  constructor(engine: string, config: EngineConfig) {
    this.engine = engine;
    this.#config = config;
  }

  get config(): EngineConfig {
    return this.#config;
  }

  set config(config: EngineConfig) {
    this.#config = config;
    this.lane = undefined;
    this.#plan = undefined;
  }

  /** What its events have told of a group. */
  group(groupIdx: number): LearnedGroup | undefined {
    return this.#groups.get(groupIdx);
  }

  /** Groups that its events have told of. */
  get groups(): ReadonlyMap<number, LearnedGroup> {
    return this.#groups;
  }

  /** The tags of its blocks on a medium, by KV cache group; undefined where it has published none there. */
  tagsOn(medium: string): Map<number, number> | undefined {
    return medium === DEVICE ? this.deviceTags : this.tagsBelow.get(medium);
  }

  /** Notes the tag of blocks that it has published. */
  setTag(groupIdx: number, medium: string, tag: number): void {
    let tags = this.tagsOn(medium);
    if (tags === undefined) {
      tags = new Map();
      this.tagsBelow.set(medium, tags);
    }
    tags.set(groupIdx, tag);
  }

  learn(groupIdx: number, group: LearnedGroup): void {
    if (this.#groups.get(groupIdx) === group) return;
    this.#groups.set(groupIdx, group);
    this.#plan = undefined;
  }

  /** Another engine may run under this name from now on: its groups are learned anew. */
  unlearn(): void {
    this.#groups = new Map();
    this.deviceTags.clear();
    this.tagsBelow.clear();
    this.lane = undefined;
    this.#plan = undefined;
  }

  /** How its hits are found; undefined while none of its groups is known. */
  get plan(): EnginePlan | undefined {
    this.#plan ??= enginePlan(this.#config, this.#groups);
    return this.#plan;
  }
}

/** Engines by name and by number. Numbers are few, and come back once a retired one is swept. */
export class Holders {
  readonly #byName = new Map<string, Holder>();
  readonly #bySlot: (Holder | undefined)[];
  readonly #free: number[];
  readonly #maxEngines: number;

  /** @param slots numbers there are; a multiple of 32, and more than `maxEngines`. */
  constructor(maxEngines: number, slots: number) {
    this.#maxEngines = maxEngines;
    this.#bySlot = new Array(slots);
    this.#free = Array.from({ length: slots }, (_, index) => slots - 1 - index);
  }

  get size(): number {
    return this.#byName.size;
  }

  get(engine: string): Holder | undefined {
    return this.#byName.get(engine);
  }

  at(slot: number): Holder | undefined {
    return this.#bySlot[slot];
  }

  [Symbol.iterator](): Iterator<Holder> {
    return this.#byName.values();
  }

  /** Whether another engine would find no place. */
  get full(): boolean {
    return this.#byName.size >= this.#maxEngines;
  }

  /**
   * The holder of that name, a new one if there is none.
   *
   * @param config of a new one.
   * @throws MooncakeKvError `ERR_CONFIG` when there are as many engines as there may be.
   */
  ensure(engine: string, config: EngineConfig): Holder {
    const known = this.#byName.get(engine);
    if (known !== undefined) return known;
    if (this.full)
      throw configError(
        `the index has room for ${this.#maxEngines} engines; remove one that is gone, or raise maxEngines`,
        { engine, maxEngines: this.#maxEngines },
      );
    const holder = new Holder(engine, config);
    this.#byName.set(engine, holder);
    return holder;
  }

  /** Gives a holder a number. @param sweep frees the numbers of retired holders at once. */
  assign(holder: Holder, sweep: () => void): number {
    if (this.#free.length === 0) sweep();
    const slot = this.#free.pop()!;
    holder.slot = slot;
    this.#bySlot[slot] = holder;
    return slot;
  }

  /** Takes a holder's number away. @returns it; -1 when there was none. */
  unassign(holder: Holder): number {
    const { slot } = holder;
    holder.slot = -1;
    if (slot >= 0) this.#bySlot[slot] = undefined;
    return slot;
  }

  forget(holder: Holder): void {
    this.#byName.delete(holder.engine);
  }

  /** The numbers in a mask can be used again. */
  reuse(mask: Int32Array): void {
    for (const [word, bits] of mask.entries())
      for (let bit = 0; bit < 32; bit++) if ((bits >>> bit) & 1) this.#free.push(32 * word + bit);
  }
}
