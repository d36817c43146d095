import type { ArenaMemory } from "./arena-memory.js";
import { ADDRESS_END } from "./integers.js";
import type { Region } from "./region.js";
import { planRows, startsUpTo } from "./row-plan.js";
import { CheckedRows, type RowColumns } from "./rows.js";

/**
 * The registered memory of a store, and the one owner of "this memory is in use": what a call touches is held before its
 * first byte moves, and given back when its last copy has ended. Sorted by address; no two regions overlap.
 */
export class Regions {
  #sorted: readonly Region[] = [];
  #addresses: BigUint64Array = new BigUint64Array(0);
  #sizes: BigUint64Array = new BigUint64Array(0);
  #nextId = 0;
  readonly #users = new Map<Region, number>();
  readonly #leaving = new Map<Region, { readonly left: Promise<void>; readonly leave: () => void }>();

  get all(): readonly Region[] {
    return this.#sorted;
  }

  /**
   * Adds memory; undefined, and nothing happens, when it is empty, NULL, wraps around or overlaps a region, also one that
   * a running call still uses.
   */
  add(address: bigint, size: bigint, arena?: ArenaMemory): Region | undefined {
    const end = address + size;
    if (address <= 0n || size <= 0n || end > ADDRESS_END) return undefined;
    const at = startsUpTo(this.#addresses, address);
    const before = this.#sorted[at - 1];
    const after = this.#sorted[at];
    if (before && before.address + before.size > address) return undefined;
    if (after && end > after.address) return undefined;
    for (const region of this.#leaving.keys())
      if (region.address < end && address < region.address + region.size) return undefined;
    const added: Region = { id: this.#nextId++, address, size, arena };
    this.#set(this.#sorted.toSpliced(at, 0, added));
    return added;
  }

  /** The region that starts at an address. */
  find(address: bigint): Region | undefined {
    const region = this.#sorted[startsUpTo(this.#addresses, address) - 1];
    return region?.address === address ? region : undefined;
  }

  /** Takes a region out: later calls can't use it. Resolves when no running call does; asked again, too. */
  remove(region: Region): Promise<void> {
    if (this.#sorted.includes(region)) this.#set(this.#sorted.filter((other) => other !== region));
    const leaving = this.#leaving.get(region);
    if (leaving) return leaving.left;
    if (!this.#users.has(region)) return Promise.resolve();
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => {
      leave = () => {
        this.#leaving.delete(region);
        resolve();
      };
    });
    this.#leaving.set(region, { left, leave });
    return left;
  }

  /** Takes all regions out, whoever uses them: for a store that has ended. */
  clear(): void {
    this.#set([]);
  }

  /** The rows of a call, judged by the regions of this moment. Nobody else changes the columns. */
  check(columns: RowColumns): CheckedRows {
    const { addresses, sizes, rowOffsets } = columns;
    const plan = planRows(this.#addresses, this.#sizes, addresses, sizes, rowOffsets);
    return new CheckedRows(columns, plan, this.#sorted);
  }

  /**
   * Holds the memory of rows that were just checked while `work` runs: nobody gives it back before `work` has settled.
   * So `work` settles when nobody copies from it or to it any more, whichever way it ends.
   */
  async withRegions<T>(rows: CheckedRows, work: () => Promise<T>): Promise<T> {
    const held = rows.usedRegions;
    for (const region of held) this.#users.set(region, (this.#users.get(region) ?? 0) + 1);
    try {
      return await work();
    } finally {
      for (const region of held) this.#release(region);
    }
  }

  #release(region: Region): void {
    const left = this.#users.get(region)! - 1;
    if (left > 0) {
      this.#users.set(region, left);
      return;
    }
    this.#users.delete(region);
    this.#leaving.get(region)?.leave();
  }

  #set(sorted: readonly Region[]): void {
    this.#sorted = sorted;
    this.#addresses = BigUint64Array.from(sorted, (region) => region.address);
    this.#sizes = BigUint64Array.from(sorted, (region) => region.size);
  }
}
