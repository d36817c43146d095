import type { CreatedArena } from "../../native/addon.js";

/** Memory that calls may touch. */
export interface Region {
  /** What the sidecar calls it. */
  readonly id: number;
  readonly address: bigint;
  readonly size: bigint;
  /** The arena whose memory it is; absent for memory of the caller, which only this process has. */
  readonly arena?: CreatedArena;
  /** Whether the sidecar has it mapped now: then its bytes need no copy. */
  shared: boolean;
}

/** The regions that a call uses, until it lets go of them. */
export interface RegionUse extends Disposable {
  readonly regions: readonly Region[];
}

/** The registered memory of a store, sorted by address. No two regions overlap. */
export class RegionTable {
  #sorted: Region[] = [];
  #addresses: BigUint64Array = new BigUint64Array(0);
  #sizes: BigUint64Array = new BigUint64Array(0);
  #nextId = 0;
  readonly #users = new Map<Region, number>();
  readonly #unused = new Map<Region, () => void>();

  /** Starts and sizes of the regions, as the addon takes them. */
  get ranges(): { readonly addresses: BigUint64Array; readonly sizes: BigUint64Array } {
    return { addresses: this.#addresses, sizes: this.#sizes };
  }

  get all(): readonly Region[] {
    return this.#sorted;
  }

  /** A number that no region has had. */
  newId(): number {
    return this.#nextId++;
  }

  /** Adds memory; false, and nothing happens, when it is empty, NULL, wraps around or overlaps a region. */
  add(region: Region): boolean {
    const { address, size } = region;
    if (address <= 0n || size <= 0n || address + size > 1n << 64n) return false;
    if (this.#sorted.some((other) => address < other.address + other.size && other.address < address + size))
      return false;
    this.#set([...this.#sorted, region].sort((a, b) => (a.address < b.address ? -1 : 1)));
    return true;
  }

  /** The region that starts at an address. */
  find(address: bigint): Region | undefined {
    return this.#sorted.find((region) => region.address === address);
  }

  /** Takes a region out: later calls can't use it. Resolves when no running call does. */
  async remove(region: Region): Promise<void> {
    this.#set(this.#sorted.filter((other) => other !== region));
    if (this.#users.has(region)) await new Promise<void>((resolve) => this.#unused.set(region, resolve));
  }

  /** Holds the regions whose flag in `used` is set. They are those of the latest `ranges`. */
  use(used: Uint8Array): RegionUse {
    const regions = this.#sorted.filter((_, index) => used[index] === 1);
    for (const region of regions) this.#users.set(region, (this.#users.get(region) ?? 0) + 1);
    return {
      regions,
      [Symbol.dispose]: () => {
        for (const region of regions) this.#release(region);
      },
    };
  }

  #release(region: Region): void {
    const left = this.#users.get(region)! - 1;
    if (left > 0) {
      this.#users.set(region, left);
      return;
    }
    this.#users.delete(region);
    this.#unused.get(region)?.();
    this.#unused.delete(region);
  }

  #set(sorted: Region[]): void {
    this.#sorted = sorted;
    this.#addresses = BigUint64Array.from(sorted, (region) => region.address);
    this.#sizes = BigUint64Array.from(sorted, (region) => region.size);
  }
}
