import { nextTurn } from "#platform";
import { describe } from "../errors.js";
import { BlobBlockHashes, type BlockHash } from "./blob-block-hashes.js";
import { BlockEncoder, encodeExtraKeys, MAX_TOKEN_BYTES, SINGLE_FRAME_LIMIT } from "./block-encoder.js";
import { ExtraKeySource, type ExtraKeys, firstMmIndex } from "./extra-keys.js";
import { hashError } from "./hash-error.js";
import type { HashRules } from "./hash-rules.js";
import type { Hashable } from "./hashable.js";
import { checkRequest, type HashRequest, promptTokens, type TokenIds } from "./request.js";

/** Blocks between two looks at the event loop: about a millisecond of work without a native kernel. */
const BLOCKS_PER_SLICE = 512;
/** The native kernel does several times as much in that time. */
const KERNEL_BLOCKS_PER_SLICE = 4096;
const NO_EXTRA_KEYS = new Uint8Array(0);

/**
 * The block hashes of one request that may grow. Appending tokens hashes the blocks that became full; hashes that
 * exist never change. Mirrors the block hasher that vLLM calls on a `Request`.
 *
 * Each hash depends on the one before it, so that one call works at a time: whoever appends or advances before an
 * `appendAsync` or `advanceAsync` has ended gets `MooncakeKvError` `ERR_HASH`, and nothing has changed. `hashes` and
 * `numTokens` may be read at any time.
 */
export class BlockHashSession {
  readonly #hasher: HashRules;
  readonly #source: ExtraKeySource;
  readonly #encoder: BlockEncoder;
  #tokens = new Uint32Array(64);
  #numTokens = 0;
  #blob = new Uint8Array(0);
  #count = 0;
  #mmIndex = 0;
  #hashing = false;

  /** Made by `BlockHasher.session`. Takes the prompt in, but hashes nothing yet. */
  constructor(hasher: HashRules, request: HashRequest) {
    checkRequest(request);
    this.#hasher = hasher;
    this.#source = new ExtraKeySource(request, hasher.release);
    this.#encoder = new BlockEncoder(hasher.format);
    this.#push(promptTokens(request, hasher.release));
  }

  /** Tokens so far. */
  get numTokens(): number {
    return this.#numTokens;
  }

  /** The hashes so far. The list is a snapshot: later appends don't change it. */
  get hashes(): BlobBlockHashes {
    const { hashLength } = this.#hasher;
    return new BlobBlockHashes(this.#blob.subarray(0, this.#count * hashLength), hashLength);
  }

  /**
   * Adds tokens and hashes what became full; returns the number of new hashes.
   *
   * @throws MooncakeKvError `ERR_HASH` for a token that is none, and while an asynchronous call runs.
   */
  append(tokens: TokenIds): number {
    this.#checkIdle("append");
    this.#push(tokens);
    return this.advance();
  }

  /**
   * `append` in slices of a few milliseconds. After an abort on the way the tokens are there, and `advance` goes on.
   *
   * @throws MooncakeKvError `ERR_HASH` as `append`; the signal's reason.
   */
  async appendAsync(tokens: TokenIds, signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    this.#checkIdle("appendAsync");
    this.#push(tokens);
    return this.advanceAsync(signal);
  }

  /**
   * Hashes the full blocks that are not hashed yet; returns their number.
   *
   * @throws MooncakeKvError `ERR_HASH` while an asynchronous call runs.
   */
  advance(): number {
    this.#checkIdle("advance");
    const due = this.#begin();
    this.#hashBlocks(due);
    return due;
  }

  /**
   * `advance` in slices of a few milliseconds; returns the number of new hashes.
   *
   * @throws MooncakeKvError `ERR_HASH` while another asynchronous call runs; the signal's reason.
   */
  async advanceAsync(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    this.#checkIdle("advanceAsync");
    this.#hashing = true;
    try {
      const due = this.#begin();
      const slice = this.#hasher.kernel ? KERNEL_BLOCKS_PER_SLICE : BLOCKS_PER_SLICE;
      for (let done = 0; done < due; done += slice) {
        if (done > 0) {
          await nextTurn();
          signal?.throwIfAborted();
        }
        this.#hashBlocks(Math.min(slice, due - done));
      }
      return due;
    } finally {
      this.#hashing = false;
    }
  }

  #checkIdle(operation: string): void {
    if (this.#hashing)
      throw hashError(
        `${operation}: the session is still hashing; await the appendAsync or advanceAsync before`,
        { operation },
      );
  }

  /** Makes room for the due blocks and puts the multimodal walk where vLLM puts it on each resumption. */
  #begin(): number {
    const { blockSize, hashLength, numHashLookaheadTokens, release } = this.#hasher;
    const full = Math.floor((this.#numTokens - numHashLookaheadTokens) / blockSize);
    const due = Math.max(0, full - this.#count);
    if (due === 0) return 0;
    const needed = (this.#count + due) * hashLength;
    if (needed > this.#blob.length) {
      // A new buffer rather than a grown one: lists handed out earlier keep theirs.
      const blob = new Uint8Array(this.#count === 0 ? needed : Math.max(needed, this.#blob.length * 2));
      blob.set(this.#blob.subarray(0, this.#count * hashLength));
      this.#blob = blob;
    }
    const start = this.#count * blockSize;
    const features = this.#source.request.mmFeatures ?? [];
    this.#mmIndex = 0;
    if (start > 0 && features.length > 0) {
      const last = features.at(-1)!;
      if (release === "vllm-0.27") this.#mmIndex = -1;
      else if (last.offset + last.length > start) this.#mmIndex = firstMmIndex(features, start);
    }
    return due;
  }

  #hashBlocks(blocks: number): void {
    const { kernel, blockSize } = this.#hasher;
    if (kernel !== undefined && MAX_TOKEN_BYTES * blockSize < SINGLE_FRAME_LIMIT / 2)
      this.#hashWithKernel(blocks);
    else for (let i = 0; i < blocks; i++) this.#hashOne(this.#nextExtraKeys(this.#count));
  }

  #hashOne(extraKeys: ExtraKeys): void {
    const { blockSize, digest } = this.#hasher;
    const start = this.#count * blockSize;
    const bytes = this.#encoder.encode(this.#parent(), this.#tokens, start, start + blockSize, extraKeys);
    this.#store(digest(bytes));
  }

  #hashWithKernel(blocks: number): void {
    const { format, numHashLookaheadTokens } = this.#hasher;
    if (this.#source.empty && numHashLookaheadTokens === 0) {
      this.#runKernel(blocks);
      return;
    }
    let pieces: Uint8Array[] = [];
    for (let left = blocks; left > 0; left--) {
      const extraKeys = this.#nextExtraKeys(this.#count + pieces.length);
      const piece = extraKeys === null ? NO_EXTRA_KEYS : encodeExtraKeys(format, extraKeys);
      if (piece.length <= SINGLE_FRAME_LIMIT / 2) {
        pieces.push(piece);
        continue;
      }
      // Too long for one pickle frame: the kernel takes the blocks before it, the general encoder this one.
      this.#runKernel(pieces.length, pieces);
      pieces = [];
      this.#hashOne(extraKeys);
    }
    this.#runKernel(pieces.length, pieces);
  }

  /** @param extras the serialised extra keys of each block; absent when no block has any. */
  #runKernel(blocks: number, extras?: readonly Uint8Array[]): void {
    if (blocks === 0) return;
    const { kernel, blockSize, format, hashLength } = this.#hasher;
    const start = this.#count * blockSize;
    let end = 0;
    const hashes = kernel!.hashChain({
      format,
      parent: this.#parent(),
      tokens: this.#tokens.subarray(start, start + blocks * blockSize),
      blockSize,
      ...(extras && {
        extras: joined(extras),
        extraEnds: Uint32Array.from(extras, (piece) => {
          end += piece.length;
          return end;
        }),
      }),
    });
    this.#blob.set(hashes, this.#count * hashLength);
    this.#count += blocks;
  }

  /** Extra keys of block `index`; blocks must be asked for in order. */
  #nextExtraKeys(index: number): ExtraKeys {
    const { blockSize, numHashLookaheadTokens: lookahead } = this.#hasher;
    const start = index * blockSize;
    const end = start + blockSize;
    if (lookahead === 0) {
      if (this.#source.empty) return null;
      const { extraKeys, nextMmIndex } = this.#source.blockExtraKeys(start, end, this.#mmIndex);
      this.#mmIndex = nextMmIndex;
      return extraKeys;
    }
    const next = this.#source.lookaheadExtraKeys(start, end, end + lookahead, this.#mmIndex);
    this.#mmIndex = next.nextMmIndex;
    const following: Hashable[] = Array.from(this.#tokens.subarray(end, end + lookahead));
    return [next.extraKeys, ...following];
  }

  #parent(): BlockHash {
    const { hashLength, noneHash } = this.#hasher;
    if (this.#count === 0) return noneHash;
    return this.#blob.subarray((this.#count - 1) * hashLength, this.#count * hashLength);
  }

  #store(hash: Uint8Array): void {
    this.#blob.set(hash, this.#count * this.#hasher.hashLength);
    this.#count++;
  }

  #push(tokens: TokenIds): void {
    const needed = this.#numTokens + tokens.length;
    if (needed > this.#tokens.length) {
      const grown = new Uint32Array(
        this.#numTokens === 0 ? needed : Math.max(needed, this.#tokens.length * 2),
      );
      grown.set(this.#tokens.subarray(0, this.#numTokens));
      this.#tokens = grown;
    }
    if (tokens instanceof Uint32Array) this.#tokens.set(tokens, this.#numTokens);
    else
      for (let i = 0; i < tokens.length; i++) {
        const token = tokens[i]!;
        if (!Number.isInteger(token) || token < 0 || token > 0xffff_ffff)
          throw hashError(
            `token ${this.#numTokens + i} is ${describe(token)}; token ids are whole numbers of 0 to 2^32 - 1`,
            { index: this.#numTokens + i, token },
          );
        this.#tokens[this.#numTokens + i] = token;
      }
    this.#numTokens = needed;
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
