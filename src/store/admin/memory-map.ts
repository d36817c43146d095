/** Memory that a store may write. */
export interface WritableMemory {
  /** Writes `bytes` at `offset`; the caller has checked that they lie inside. */
  write(offset: number, bytes: Uint8Array): void;
}

/** A registered region of memory. */
interface Region {
  readonly first: bigint;
  readonly size: bigint;
  readonly memory: WritableMemory;
  users: number;
  /** Called when the last user leaves a region that is to go. */
  idle: (() => void) | undefined;
}

/** A place in registered memory. */
export interface Place {
  readonly region: Region;
  readonly offset: number;
  readonly size: number;
}

const NONE = 0n;
const END = 1n << 64n;
const OK = 0;
const INVALID_PARAMS = -600;

/** The memory that calls may write: regions by address. The rules are those of the addon's stores. */
export class MemoryMap {
  /** By first address, ascending. */
  readonly #regions: Region[] = [];

  /** 0, or -600 for NULL, no bytes, a wrap-around or an overlap. */
  add(address: bigint, size: bigint, memory: WritableMemory): number {
    if (address <= NONE || size <= NONE || address + size > END) return INVALID_PARAMS;
    const at = this.#firstAfter(address);
    const before = this.#regions[at - 1];
    const after = this.#regions[at];
    if (before && before.first + before.size > address) return INVALID_PARAMS;
    if (after && address + size > after.first) return INVALID_PARAMS;
    this.#regions.splice(at, 0, { first: address, size, memory, users: 0, idle: undefined });
    return OK;
  }

  /** 0, or -600 for anything but the start of a region. Resolves when no call uses the region any more. */
  async remove(address: bigint): Promise<number> {
    const at = this.#regions.findIndex((region) => region.first === address);
    const region = this.#regions[at];
    if (region === undefined) return INVALID_PARAMS;
    this.#regions.splice(at, 1);
    if (region.users > 0)
      await new Promise<void>((resolve) => {
        region.idle = resolve;
      });
    return OK;
  }

  /** Where [address, address + size) lies; undefined unless it lies in one region. An empty range may sit at its end. */
  find(address: bigint, size: bigint): Place | undefined {
    const region = this.#regions[this.#firstAfter(address) - 1];
    if (region === undefined || address + size > region.first + region.size) return undefined;
    return { region, offset: Number(address - region.first), size: Number(size) };
  }

  /** How many regions start at or before `address`. */
  #firstAfter(address: bigint): number {
    let low = 0;
    let high = this.#regions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#regions[middle]!.first <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The memory of places can't go away before `releasePlaces`. */
export function holdPlaces(places: readonly Place[]): void {
  for (const { region } of places) region.users++;
}

/** Ends `holdPlaces`. */
export function releasePlaces(places: readonly Place[]): void {
  for (const { region } of places) {
    region.users--;
    if (region.users === 0) region.idle?.();
  }
}
