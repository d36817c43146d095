import { configError } from "./errors.js";

/** An engine of a block index. */
export interface Holder {
  readonly engine: string;
  /** Its number in the table; another one after each clear. -1 while it holds nothing. */
  slot: number;
  /** KV cache groups that it has published blocks of. */
  readonly groups: Set<number>;
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

  /**
   * The holder of that name, a new one if there is none.
   *
   * @throws MooncakeKvError `ERR_CONFIG` when there are as many engines as there may be.
   */
  ensure(engine: string): Holder {
    const known = this.#byName.get(engine);
    if (known !== undefined) return known;
    if (this.#byName.size >= this.#maxEngines)
      throw configError(
        `the index has room for ${this.#maxEngines} engines; remove one that is gone, or raise maxEngines`,
        { engine, maxEngines: this.#maxEngines },
      );
    const holder: Holder = { engine, slot: -1, groups: new Set() };
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
