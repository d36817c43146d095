import { MooncakeKvError } from "../errors.js";
import { loadNative } from "../native/load.js";
import type { StoreBackend } from "./backend.js";
import { ArenaMemory } from "./shared/arena-memory.js";
import { CODE } from "./shared/codes.js";
import { ADDRESS_END } from "./shared/integers.js";
import type { Region } from "./shared/region.js";
import { Regions } from "./shared/regions.js";

/**
 * The memory that the calls of one store may touch: its arenas, and what callers register. The backend is told of a region
 * before the first call can use it, and after the last one has.
 */
export class StoreMemory {
  readonly regions: Regions = new Regions();
  readonly #backend: StoreBackend;
  readonly #track: (work: Promise<void>) => void;
  /** How each region is let go of. */
  readonly #releases = new Map<Region, () => Promise<void>>();
  #ended: Promise<void> | undefined;

  /** `track`: what the backend is told is work of the store, for which its end waits. */
  constructor(backend: StoreBackend, track: (work: Promise<void>) => void) {
    this.#backend = backend;
    this.#track = track;
  }

  /** As `KvStore.createArena`. */
  async createArena(bytes: number): Promise<ArenaMemory> {
    const memory = ArenaMemory.allocate("createArena", bytes, this.#backend.heapArenas);
    const code = await this.#add(memory.baseAddress, BigInt(memory.size), [memory]);
    if (code === CODE.OK) return memory;
    await memory.free();
    throw new MooncakeKvError(
      "ERR_STORE",
      `createArena: the new memory overlaps a registered region (code ${code}); unregister regions before their memory is freed`,
      { code },
    );
  }

  /** As `KvStore.registerBuffer`. Memory in an arena of this process goes with the arena. */
  async register(address: bigint, size: bigint): Promise<number> {
    if (address === 0n || size === 0n || address + size > ADDRESS_END) return CODE.INVALID_PARAMS;
    const arenas = ArenaMemory.overlapping(address, size);
    if (arenas.some((arena) => arena.closing)) return CODE.INVALID_PARAMS;
    // The memory of an arena is there; whether other memory is, the system has to be asked.
    const known = arenas.some((arena) => arena.holds(address, size));
    if (!known && !(await loadNative().memoryAccessible(address, size))) return CODE.INVALID_PARAMS;
    // An arena may have come to be there, or begun to go, since.
    const now = ArenaMemory.overlapping(address, size);
    return now.some((arena) => arena.closing) ? CODE.INVALID_PARAMS : this.#add(address, size, now);
  }

  /** As `KvStore.unregisterBuffer`. */
  async unregister(address: bigint): Promise<number> {
    const region = this.regions.find(address);
    if (region === undefined) return CODE.INVALID_PARAMS;
    await this.#releases.get(region)!();
    return CODE.OK;
  }

  /** The backend is being closed, until `ended` is settled: it is told of no region any more. */
  end(ended: Promise<void>): void {
    this.#ended = ended;
    const forget = (): void => {
      this.regions.clear();
      this.#releases.clear();
    };
    ended.then(forget, forget);
  }

  async #add(address: bigint, size: bigint, arenas: readonly ArenaMemory[]): Promise<number> {
    const arena = arenas.find((candidate) => candidate.holds(address, size));
    const region = this.regions.add(address, size, arena);
    if (region === undefined) return CODE.INVALID_PARAMS;
    let told: Promise<number> | undefined;
    let releasing: Promise<void> | undefined;
    const release = (): Promise<void> => {
      if (releasing === undefined) {
        releasing = this.#release(region, told, () => {
          for (const forget of notes) forget();
        });
        this.#track(releasing);
      }
      return releasing;
    };
    const notes = arenas.map((memory) => memory.attach(release));
    this.#releases.set(region, release);
    try {
      told = this.#backend.register?.(region) ?? Promise.resolve(CODE.OK);
      const code = await told;
      if (code !== CODE.OK) await release();
      return code;
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #release(region: Region, told: Promise<number> | undefined, forget: () => void): Promise<void> {
    try {
      await this.regions.remove(region);
      const known = await told?.catch(() => CODE.INTERNAL_ERROR);
      if (this.#ended !== undefined) await this.#ended;
      else if (known === CODE.OK) await this.#backend.unregister?.(region);
    } finally {
      this.#releases.delete(region);
      forget();
    }
  }
}
