import type { NativeArena } from "./native-arena.js";

declare const copierHandle: unique symbol;

/** Threads that copy, inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeCopier {
  readonly [copierHandle]: never;
}

/** Where the rows of a call lie among the memory ranges that it may touch. */
export interface NativeRowPlan {
  /** 0 a row, or -600: a segment lies outside the ranges, or the bytes can't be counted. */
  readonly codes: Int32Array;
  /** Bytes of each row. */
  readonly bytes: BigUint64Array;
  /** Address of each row whose bytes are one run inside one range; 0 for the others. */
  readonly starts: BigUint64Array;
  /** Range of each segment; -1 for an empty one and for one outside. */
  readonly segmentRanges: Int32Array;
  /** 1 for each range that a row with code 0 uses. */
  readonly used: Uint8Array;
}

/** What the addon offers to backends that move bytes between scattered memory and memory of their own. */
export interface CopyAddon {
  /** `threads` share one large copy (0 chooses). The threads start with the first large copy. */
  copierOpen(threads: number): NativeCopier;
  /** Checks and measures rows; nothing is read or written. Ranges are sorted by address and don't overlap. */
  planRows(
    rangeAddresses: BigUint64Array,
    rangeSizes: BigUint64Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
  ): NativeRowPlan;
  /** For each key the index of the first key that equals it. */
  firstOfEqual(keyBytes: Uint8Array, keyOffsets: Uint32Array): Uint32Array;
  /**
   * Copies row i's segments into the run of bytes at `runs[i]` (`scatter`: out of it); 0 leaves a row out. The caller
   * has checked every address. `arenas` are kept until the copy is done, also when they are closed meanwhile; one that
   * is closed already throws, as its memory may be gone.
   */
  copyRows(
    copier: NativeCopier,
    arenas: readonly NativeArena[],
    scatter: boolean,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    runs: BigUint64Array,
  ): Promise<void>;
  /** Whether all of [address, address + bytes) is memory that this process may read and write now. */
  memoryAccessible(address: bigint, bytes: bigint): Promise<boolean>;
}
