import type { Addon } from "../../native/addon.js";
import type { NativeCopier } from "../../native/copy-addon.js";
import { loadNative } from "../../native/load.js";
import { ArenaMemory } from "../shared/arena-memory.js";
import type { Region } from "../shared/region.js";
import { Staging } from "./staging.js";

/** An arena that the sidecar can map, under a number. */
export interface SharedMemory {
  /** What the sidecar calls it; no other memory of the store has or had it. */
  readonly number: number;
  readonly memory: ArenaMemory;
  /** Whether the sidecar has it mapped now: then its bytes need no copy. */
  mapped: boolean;
}

/** The memory that this process and the sidecar share: the staging memory of the store, and arenas that are registered. */
export class SharedMemories {
  readonly addon: Addon;
  readonly copier: NativeCopier;
  readonly staging: SharedMemory;
  readonly blocks: Staging;
  readonly #byRegion = new Map<Region, SharedMemory>();
  #nextNumber = 0;

  /** @throws MooncakeKvError `ERR_NATIVE` without the addon, `ERR_STORE` when the system gives no memory. */
  constructor(stagingBytes: number) {
    this.addon = loadNative();
    this.copier = this.addon.copierOpen(0);
    this.staging = this.take("open", stagingBytes);
    this.blocks = new Staging(stagingBytes);
  }

  /** What every sidecar process maps: the staging memory first. */
  get all(): SharedMemory[] {
    return [this.staging, ...this.#byRegion.values()];
  }

  /** New memory that belongs to no region. */
  take(operation: string, bytes: number): SharedMemory {
    return this.#number(ArenaMemory.allocate(operation, bytes));
  }

  /** Memory of a region from now on; undefined for memory that no other process can map. */
  add(region: Region): SharedMemory | undefined {
    const { arena, address, size } = region;
    if (arena?.fileDescriptor === undefined) return undefined;
    if (address !== arena.baseAddress || size !== BigInt(arena.size)) return undefined;
    const shared = this.#number(arena);
    this.#byRegion.set(region, shared);
    return shared;
  }

  /** The memory of a region; undefined when it is not shared. */
  of(region: Region): SharedMemory | undefined {
    return this.#byRegion.get(region);
  }

  /** Forgets a region; its memory. */
  remove(region: Region): SharedMemory | undefined {
    const shared = this.#byRegion.get(region);
    this.#byRegion.delete(region);
    return shared;
  }

  #number(memory: ArenaMemory): SharedMemory {
    return { number: this.#nextNumber++, memory, mapped: false };
  }
}
