import type { NativeArena } from "../../native/addon.js";
import { CODE } from "./codes.js";
import type { Region } from "./region.js";
import type { RowPlan } from "./row-plan.js";

/** The columns of a `SegmentTable`, owned by the call: addresses and sizes a segment, one row offset a row plus the end. */
export interface RowColumns {
  readonly addresses: BigUint64Array;
  readonly sizes: BigUint64Array;
  readonly rowOffsets: Uint32Array;
}

/** Bytes that lie together in one region. */
export interface Piece {
  readonly region: Region;
  readonly address: bigint;
  readonly size: bigint;
}

/**
 * The segments of a call, checked against the registered regions: which rows may be touched, how many bytes they have, and
 * where they lie. Nobody else changes them.
 */
export class CheckedRows implements RowColumns {
  readonly addresses: BigUint64Array;
  readonly sizes: BigUint64Array;
  readonly rowOffsets: Uint32Array;
  /** `codes` are 0, or -600 for a row with a segment outside the regions. */
  readonly plan: RowPlan;
  readonly #regions: readonly Region[];

  /** `regions` are those by which `plan` was made. */
  constructor({ addresses, sizes, rowOffsets }: RowColumns, plan: RowPlan, regions: readonly Region[]) {
    this.addresses = addresses;
    this.sizes = sizes;
    this.rowOffsets = rowOffsets;
    this.plan = plan;
    this.#regions = regions;
  }

  get length(): number {
    return this.rowOffsets.length - 1;
  }

  /** The regions that rows with code 0 use. */
  get usedRegions(): Region[] {
    return this.#regions.filter((_, index) => this.plan.used[index] === 1);
  }

  /** The addon's arenas among them: a native copy holds them until it is done. */
  get arenas(): NativeArena[] {
    return this.usedRegions.flatMap(({ arena }) => (arena?.handle === undefined ? [] : [arena.handle]));
  }

  /** Whether calls may touch all of a row. */
  isUsable(row: number): boolean {
    return this.plan.codes[row] === CODE.OK;
  }

  /** Bytes of a usable row. */
  bytes(row: number): bigint {
    return this.plan.bytes[row]!;
  }

  /** Whether the bytes of a usable row are one run. */
  isOneRun(row: number): boolean {
    return this.plan.starts[row] !== 0n;
  }

  /** Where a usable row lies: one piece when its bytes are one run, else its segments. */
  pieces(row: number): Piece[] {
    const pieces: Piece[] = [];
    const start = this.plan.starts[row]!;
    const end = this.rowOffsets[row + 1]!;
    for (let i = this.rowOffsets[row]!; i < end; i++) {
      if (this.sizes[i] === 0n) continue;
      const region = this.#regions[this.plan.segmentRanges[i]!]!;
      if (start !== 0n) return [{ region, address: start, size: this.plan.bytes[row]! }];
      pieces.push({ region, address: this.addresses[i]!, size: this.sizes[i]! });
    }
    return pieces;
  }

  /** The columns for a native call that knows the regions, too: rows that are not usable point to NULL there. */
  forNative(): RowColumns {
    const { codes } = this.plan;
    if (codes.every((code) => code === CODE.OK)) return this;
    const addresses = this.addresses.slice();
    for (const [row, code] of codes.entries())
      if (code !== CODE.OK) addresses.fill(0n, this.rowOffsets[row], this.rowOffsets[row + 1]);
    return { addresses, sizes: this.sizes, rowOffsets: this.rowOffsets };
  }
}
