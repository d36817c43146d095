import { BlobBlockHashes, type BlockHash, type BlockHashSequence } from "../hash/blob-block-hashes.js";

/**
 * Chunks of one request, flat: chunk i covers the tokens `[starts[i], ends[i])` and is named by the block hash at
 * position `hashPositions[i]` of `blockHashes`. No hash is read before it is asked for.
 */
export class ChunkSpans {
  /** First token of each chunk. */
  readonly starts: Uint32Array;
  /** Token after each chunk. */
  readonly ends: Uint32Array;
  /** Where each chunk's hash stands in `blockHashes`. */
  readonly hashPositions: Uint32Array;
  /** The hashes of the prompt's blocks, of which each chunk has the one that it ends with. */
  readonly blockHashes: BlockHashSequence;

  constructor(
    starts: Uint32Array,
    ends: Uint32Array,
    hashPositions: Uint32Array,
    blockHashes: BlockHashSequence,
  ) {
    this.starts = starts;
    this.ends = ends;
    this.hashPositions = hashPositions;
    this.blockHashes = blockHashes;
  }

  /** Number of chunks. */
  get length(): number {
    return this.starts.length;
  }

  /** The hash that names chunk `index`. */
  hash(index: number): BlockHash {
    return this.blockHashes.at(this.hashPositions[index]!)!;
  }

  /** The hashes of all chunks as one blob. */
  hashes(): BlobBlockHashes {
    return BlobBlockHashes.from(Array.from(this.hashPositions, (position) => this.blockHashes.at(position)!));
  }

  /** Chunks `[start, end)` as views on the same arrays. */
  slice(start?: number, end?: number): ChunkSpans {
    return new ChunkSpans(
      this.starts.subarray(start, end),
      this.ends.subarray(start, end),
      this.hashPositions.subarray(start, end),
      this.blockHashes,
    );
  }
}
