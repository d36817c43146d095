import type { NativeMemory } from "../../native/addon.js";
import { loadNative } from "../../native/load.js";
import { CODE } from "../shared/codes.js";
import type { Region } from "../shared/region.js";
import type { Piece } from "../shared/rows.js";

/** Bytes that lie together in memory that may be written. */
export interface Place {
  readonly size: number;
  /** Writes `bytes` at `offset` of the place; the caller has checked that they lie inside. */
  write(offset: number, bytes: Uint8Array): void;
}

/** How the regions of a store are written: arenas are, as they are; onto memory of others a window is opened. */
export class RegionMemory {
  readonly #windows = new Map<Region, NativeMemory>();

  /** Makes ready to write a region: 0, or -600 when its memory can't be written. */
  open(region: Region): number {
    if (region.arena !== undefined) return CODE.OK;
    const window = loadNative().memoryOpen(region.address, region.size);
    if (window === null) return CODE.INVALID_PARAMS;
    this.#windows.set(region, window);
    return CODE.OK;
  }

  /** Forgets a region, which nobody writes any more. */
  close(region: Region): void {
    this.#windows.delete(region);
  }

  /** How a piece of a region is written. Whoever writes holds the region. */
  place({ region, address, size }: Piece): Place {
    const { arena } = region;
    if (arena !== undefined) {
      const start = Number(address - arena.baseAddress);
      const memory = arena.bytes.subarray(start, start + Number(size));
      return { size: memory.length, write: (offset, bytes) => memory.set(bytes, offset) };
    }
    const window = this.#windows.get(region);
    if (window === undefined) throw new Error("a region without a window");
    const start = Number(address - region.address);
    const { memoryWrite } = loadNative();
    return { size: Number(size), write: (offset, bytes) => memoryWrite(window, start + offset, bytes) };
  }
}
