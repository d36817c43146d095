import { SegmentTable } from "../../layout/segment-table.js";

/** Values start at cache lines. */
const ALIGNMENT = 64;

/** Bytes of one piece of scratch memory, unless one value needs more. */
const PIECE = 64 << 20;

/** Some of the values of a call, side by side in one arena. */
export interface Scratch {
  /** Positions of the values in the call. */
  readonly indexes: readonly number[];
  /** Where each lies in the arena. */
  readonly offsets: readonly number[];
  readonly sizes: readonly number[];
  /** Bytes of the arena that they need. */
  readonly bytes: number;
}

/** Shares values out among pieces of memory: each piece holds as many as go into 64 MiB, and at least one. */
export function* scratchPieces(values: Iterable<readonly [index: number, size: number]>): Generator<Scratch> {
  let indexes: number[] = [];
  let offsets: number[] = [];
  let sizes: number[] = [];
  let end = 0;
  for (const [index, size] of values) {
    if (indexes.length > 0 && end + size > PIECE) {
      yield { indexes, offsets, sizes, bytes: end };
      indexes = [];
      offsets = [];
      sizes = [];
      end = 0;
    }
    indexes.push(index);
    offsets.push(end);
    sizes.push(size);
    end = Math.ceil((end + size) / ALIGNMENT) * ALIGNMENT;
  }
  if (indexes.length > 0) yield { indexes, offsets, sizes, bytes: end };
}

/** One row a value, of its bytes in the arena at `baseAddress`. */
export function scratchRows({ offsets, sizes }: Scratch, baseAddress: bigint): SegmentTable {
  return new SegmentTable(
    BigUint64Array.from(offsets, (offset) => baseAddress + BigInt(offset)),
    BigUint64Array.from(sizes, BigInt),
    Uint32Array.from({ length: sizes.length + 1 }, (_, row) => row),
    new Int32Array(sizes.length).fill(-1),
  );
}
