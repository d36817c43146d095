import { checkNames, type OptionNames } from "../checks/checks-for.js";
import { describe, MooncakeKvError } from "../errors.js";
import type { BlockHashSequence } from "../hash/blob-block-hashes.js";
import { ChunkSpans } from "./chunk-spans.js";

/** Which chunks of a request are wanted. */
export interface ChunkOptions {
  /** Tokens to leave out at the beginning; rounded up to whole chunks. Default: 0. */
  readonly maskNum?: number | undefined;
  /** Which chunks are wanted, counted from the first one after `maskNum`; chunks past its end are left out. */
  readonly chunkMask?: ArrayLike<boolean | number> | undefined;
  /** Only chunks whose id modulo `putStep` is `putStepRank`. Default: 1, that is all. */
  readonly putStep?: number | undefined;
  readonly putStepRank?: number | undefined;
}

const OPTIONS: OptionNames<ChunkOptions> = { maskNum: 1, chunkMask: 1, putStep: 1, putStepRank: 1 };

function chunkError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_CHUNK", message, details);
}

/** The sizes of one database, in tokens. */
export interface ChunkSizes {
  readonly blockSize: number;
  readonly hashBlockSize: number;
}

/**
 * The sizes of a database: the hash block size is the block size unless given (0 counts as not given, as in vLLM).
 *
 * @throws MooncakeKvError `ERR_CHUNK` when the block size is no positive multiple of the hash block size.
 */
export function chunkSizes(blockSize: number, hashBlockSize?: number): ChunkSizes {
  return checkedSizes(blockSize, hashBlockSize || blockSize);
}

/** Two sizes of which the first is a positive multiple of the second. @throws MooncakeKvError `ERR_CHUNK`. */
export function checkedSizes(blockSize: number, hashBlockSize: number): ChunkSizes {
  const whole = [blockSize, hashBlockSize].every((size) => Number.isSafeInteger(size) && size > 0);
  if (!whole || blockSize % hashBlockSize !== 0)
    throw new MooncakeKvError(
      "ERR_CHUNK",
      `block size ${describe(blockSize)} must be a multiple of hash block size ${describe(hashBlockSize)}, both positive`,
      { blockSize, hashBlockSize },
    );
  return { blockSize, hashBlockSize };
}

/**
 * The chunks of the first `tokenLen` tokens, flat. Mirrors `ChunkedTokenDatabase.process_tokens`. The last chunk may
 * be shorter than a block; it is then named by the hash that ends with it.
 *
 * @throws MooncakeKvError `ERR_CHUNK` when `tokenLen` is no multiple of the hash block size, or has more blocks than
 * there are hashes, or `putStep` is not positive.
 */
export function chunkTokens(
  sizes: ChunkSizes,
  tokenLen: number,
  blockHashes: BlockHashSequence,
  options: ChunkOptions = {},
): ChunkSpans {
  const { blockSize, hashBlockSize } = sizes;
  checkNames(chunkError, "chunks", options, OPTIONS);
  const { maskNum = 0, chunkMask, putStep = 1, putStepRank = 0 } = options;
  for (const [name, value] of Object.entries({ tokenLen, maskNum, putStep, putStepRank }))
    if (!Number.isSafeInteger(value))
      throw new MooncakeKvError("ERR_CHUNK", `${name} ${describe(value)} is not a whole number below 2^53`, {
        [name]: value,
      });
  if (putStep <= 0)
    throw new MooncakeKvError("ERR_CHUNK", `putStep ${putStep} must be 1 or more`, { putStep });
  if (blockHashes.length === 0) return collect(0, 0);
  // Tokens are counted in 32 bits; the other numbers only choose among chunks.
  if (tokenLen > 0xffff_ffff)
    throw new MooncakeKvError("ERR_CHUNK", `tokenLen ${tokenLen} is not below 2^32`, { tokenLen });
  if (tokenLen % hashBlockSize !== 0)
    throw new MooncakeKvError(
      "ERR_CHUNK",
      `${tokenLen} tokens are not a multiple of the hash block size ${hashBlockSize}; round down to ` +
        `${Math.floor(tokenLen / hashBlockSize) * hashBlockSize}`,
      { tokenLen, hashBlockSize },
    );
  if (tokenLen / hashBlockSize > blockHashes.length)
    throw new MooncakeKvError(
      "ERR_CHUNK",
      `${tokenLen} tokens need ${tokenLen / hashBlockSize} block hashes of ${hashBlockSize} tokens, but there are ${blockHashes.length}`,
      { tokenLen, hashBlockSize, blockHashes: blockHashes.length },
    );
  const first = Math.max(0, Math.ceil(maskNum / blockSize));
  let end = Math.ceil(tokenLen / blockSize);
  if (chunkMask !== undefined) end = Math.min(end, first + chunkMask.length);
  return collect(first, end);

  function collect(from: number, to: number): ChunkSpans {
    const room = Math.max(0, to - from);
    const starts = new Uint32Array(room);
    const ends = new Uint32Array(room);
    const positions = new Uint32Array(room);
    let count = 0;
    for (let chunkId = from; chunkId < to; chunkId++) {
      if (chunkMask !== undefined && !chunkMask[chunkId - from]) continue;
      if (putStep !== 1 || putStepRank !== 0) if (chunkId % putStep !== putStepRank) continue;
      const start = chunkId * blockSize;
      const stop = Math.min(start + blockSize, tokenLen);
      starts[count] = start;
      ends[count] = stop;
      positions[count] = Math.floor(stop / hashBlockSize) - 1;
      count++;
    }
    return new ChunkSpans(
      starts.subarray(0, count),
      ends.subarray(0, count),
      positions.subarray(0, count),
      blockHashes,
    );
  }
}
