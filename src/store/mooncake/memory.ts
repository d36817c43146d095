import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { Addon, CreatedArena } from "../../native/addon.js";
import type { NativeCopier } from "../../native/copy-addon.js";
import { loadNative } from "../../native/load.js";
import { sidecarError } from "./failure.js";
import { type Region, RegionTable } from "./regions.js";
import { Staging } from "./staging.js";

/** The most that Node shows as one array of bytes, and the addon maps at once. */
const LARGEST = Math.min(constants.MAX_LENGTH, 2 ** 32 - 1);

/** An arena that the sidecar can map, and its region. */
export interface SharedMemory {
  readonly region: Region;
  readonly arena: CreatedArena;
  readonly bytes: Uint8Array;
}

/** The memory of a store: what callers registered, and the staging memory of the store itself. */
export class StoreMemory {
  readonly addon: Addon;
  readonly copier: NativeCopier;
  readonly table: RegionTable = new RegionTable();
  readonly staging: SharedMemory;
  readonly blocks: Staging;

  /** @throws MooncakeKvError `ERR_NATIVE` without the addon, `ERR_STORE` when the system gives no memory. */
  constructor(stagingBytes: number) {
    this.addon = loadNative();
    this.copier = this.addon.copierOpen(0);
    this.staging = this.makeShared("open", stagingBytes);
    this.blocks = new Staging(stagingBytes);
  }

  /** What every sidecar process maps: the staging memory first, then the arenas. */
  get shareable(): Region[] {
    return [this.staging.region, ...this.table.all.filter((region) => region.arena !== undefined)];
  }

  /** Memory with a descriptor that is in no table yet. */
  makeShared(operation: string, bytes: number): SharedMemory {
    if (!Number.isInteger(bytes) || bytes < 1 || bytes > LARGEST)
      throw new MooncakeKvError(
        "ERR_STORE",
        `${operation}: the size is ${describe(bytes)}; an arena has a whole number of bytes from 1 to ${LARGEST}; make several arenas for more`,
        { bytes, largest: LARGEST },
      );
    const arena = this.#create(operation, bytes);
    const region: Region = {
      id: this.table.newId(),
      address: arena.baseAddress,
      size: BigInt(bytes),
      arena,
      shared: false,
    };
    return { region, arena, bytes: new Uint8Array(arena.buffer) };
  }

  /** Gives memory back. */
  drop(memory: SharedMemory): void {
    this.addon.arenaClose(memory.arena.handle);
  }

  #create(operation: string, bytes: number): CreatedArena {
    try {
      return this.addon.arenaCreate(bytes);
    } catch (error) {
      throw sidecarError(
        `${operation}: the system gives no memory: ${(error as Error).message}`,
        { bytes },
        error,
      );
    }
  }
}
