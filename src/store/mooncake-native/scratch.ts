import type { FlatKeys } from "../../key/key-table.js";
import { SegmentTable } from "../../layout/segment-table.js";
import type { Arena } from "../arena.js";
import type { KeyList } from "../keys.js";

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

/** One row a value, of its bytes in the arena. */
export function scratchRows({ offsets, sizes }: Scratch, arena: Arena): SegmentTable {
  return new SegmentTable(
    BigUint64Array.from(offsets, (offset) => arena.baseAddress + BigInt(offset)),
    BigUint64Array.from(sizes, BigInt),
    Uint32Array.from({ length: sizes.length + 1 }, (_, row) => row),
    new Int32Array(sizes.length).fill(-1),
  );
}

/** The keys at `indexes`. */
export function keysAt(keys: KeyList, indexes: readonly number[]): FlatKeys {
  const { bytes, offsets } = keys.flat;
  const picked = indexes.map((index) => bytes.subarray(offsets[index], offsets[index + 1]));
  const ends = new Uint32Array(picked.length + 1);
  for (const [position, key] of picked.entries()) ends[position + 1] = ends[position]! + key.length;
  return { bytes: Buffer.concat(picked), offsets: ends };
}
