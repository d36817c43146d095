import { type BlockHash, type BlockHashSequence, sliceRange } from "../hash/blob-block-hashes.js";
import { checkedSizes } from "./chunk-tokens.js";

/**
 * Block hashes seen at a coarser block size: each coarse block is named by the last fine hash in it, which already
 * covers everything before. Mirrors vLLM's `BlockHashListWithBlockSize`; nothing is copied.
 */
export class BlockHashListWithBlockSize implements BlockHashSequence {
  /** The hashes of the small blocks. */
  readonly blockHashes: BlockHashSequence;
  /** Fine blocks in a coarse one. */
  readonly scaleFactor: number;

  /**
   * @param hashBlockSize tokens of a fine block.
   * @param targetBlockSize tokens of a coarse block: a multiple of the fine size.
   * @throws MooncakeKvError `ERR_CHUNK` when it is not.
   */
  constructor(blockHashes: BlockHashSequence, hashBlockSize: number, targetBlockSize: number) {
    const sizes = checkedSizes(targetBlockSize, hashBlockSize);
    this.blockHashes = blockHashes;
    this.scaleFactor = sizes.blockSize / sizes.hashBlockSize;
  }

  /** Number of whole coarse blocks. */
  get length(): number {
    return Math.floor(this.blockHashes.length / this.scaleFactor);
  }

  /**
   * The hash of coarse block `index`. As in Python, a negative index counts fine blocks from the end: -1 is the last
   * fine hash, even where it lies in an unfinished coarse block.
   */
  at(index: number): BlockHash | undefined {
    return this.blockHashes.at((index + 1) * this.scaleFactor - 1);
  }

  /** The hashes of Python's `[start:end:step]` over the coarse blocks. */
  slice(start?: number, end?: number, step?: number): BlockHash[] {
    return sliceRange(this.length, start, end, step).map((index) => this.at(index)!);
  }

  *[Symbol.iterator](): Iterator<BlockHash> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }
}

/**
 * One hash a chunk of `blockSize` tokens, from hashes of `hashBlockSize` tokens. Mirrors vLLM's
 * `chunk_hashes_for_block_size`: returns the very same list when the sizes are equal.
 *
 * @throws MooncakeKvError `ERR_CHUNK` when `blockSize` is no multiple of `hashBlockSize`.
 */
export function chunkHashesForBlockSize(
  blockHashes: BlockHashSequence,
  hashBlockSize: number,
  blockSize: number,
): BlockHashSequence {
  if (blockSize === hashBlockSize) return blockHashes;
  return new BlockHashListWithBlockSize(blockHashes, hashBlockSize, blockSize);
}
