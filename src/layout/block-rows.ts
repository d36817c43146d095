import { describe } from "../errors.js";
import { layoutError } from "./checks.js";

/**
 * Token ranges, flat: range i is the tokens `[starts[i], ends[i])`. `ChunkSpans` is one; so are two plain arrays.
 */
export interface ChunkRanges {
  /** Number of chunks. */
  readonly length: number;
  /** First token of each chunk. */
  readonly starts: ArrayLike<number>;
  /** Token after each chunk. */
  readonly ends: ArrayLike<number>;
}

/** The blocks that chunks start in. */
export interface BlockRows {
  /** One block id a chunk, as the 64-bit integers that addresses are computed with. */
  readonly ids: BigUint64Array;
  /** The same ids as numbers. */
  readonly blockIds: Float64Array;
  /** The highest block of the rows; 0 for none. */
  readonly maxBlockId: number;
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/**
 * Looks up the block of each chunk in a block table: `blockIds[floor(start / blockSize)]`. As in Python, a chunk that
 * starts at a negative token counts blocks from the end of the table.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when a chunk starts outside the table, or a block id is not a whole number of
 * 0 or more.
 */
export function blockRows(chunks: ChunkRanges, table: ArrayLike<number>, blockSize: number): BlockRows {
  const count = chunks.length;
  const { starts } = chunks;
  const blockIds = new Float64Array(count);
  const ids = new BigUint64Array(count);
  // The two halves of each 64-bit id are written as numbers: converting to bigint would allocate one a chunk.
  const halves = new Uint32Array(ids.buffer);
  const low = LITTLE_ENDIAN ? 0 : 1;
  let maxBlockId = 0;
  for (let i = 0; i < count; i++) {
    const index = Math.floor(starts[i]! / blockSize);
    const id = table[index < 0 ? index + table.length : index];
    if (id === undefined || !Number.isSafeInteger(id) || id < 0)
      throw noBlock(i, starts[i]!, index, id, table.length);
    if (id > maxBlockId) maxBlockId = id;
    blockIds[i] = id;
    halves[2 * i + low] = id;
    halves[2 * i + 1 - low] = id / 0x1_0000_0000;
  }
  return { ids, blockIds, maxBlockId };
}

function noBlock(chunk: number, start: number, index: number, id: unknown, length: number): Error {
  const details = { chunk, start, index, blockId: id, blocks: length };
  if (id === undefined)
    return layoutError(
      `chunk ${chunk} starts at token ${describe(start)}, in block ${index} of the request, but its block table has ${length} blocks`,
      details,
    );
  return layoutError(
    `block ${index} of the request has the id ${describe(id)}; a block id is a whole number of 0 or more`,
    details,
  );
}
