import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import { type BlockFormat, type HashAlgorithm, hashLength } from "../../hash/algorithm.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { BlockEncoder, encodeExtraKeys } from "../../hash/block-encoder.js";
import { BlockHasher, type BlockHasherOptions } from "../../hash/block-hasher.js";
import { cborDumps } from "../../hash/cbor.js";
import type { BlockHashKernel } from "../../hash/kernel.js";
import { pickleDumps } from "../../hash/pickle.js";
import type { HashRequest } from "../../hash/request.js";
import {
  buildHashable,
  type HashableSpec,
  hashableSpec,
  hashRequest,
  tokenId,
  tokenIds,
} from "../arbitraries/hash-arbitraries.js";
import fc from "../fast-check.js";

// Laws of block hashing. Each function takes what it is about and returns a fast-check property.

/** A prompt's beginning has the beginning of the prompt's hashes, one a full block. */
export function hashesOfAPrefixAreAPrefix(hasher: BlockHasher): FastCheck.IProperty<[Uint32Array, number]> {
  return fc.property(tokenIds(), fc.nat(80), (tokens, cut) => {
    const all = hasher.hash(tokens).toHex();
    const some = hasher.hash(tokens.subarray(0, cut)).toHex();
    assert.equal(all.length, Math.floor(tokens.length / hasher.blockSize));
    assert.deepEqual(some, all.slice(0, Math.floor(Math.min(cut, tokens.length) / hasher.blockSize)));
  });
}

/** A changed token changes the hash of its block and of every later one, and none before. */
export function aTokenReachesAllLaterHashes(
  hasher: BlockHasher,
): FastCheck.IProperty<[Uint32Array, number, number]> {
  return fc.property(tokenIds(), fc.nat(79), tokenId(), (tokens, position, token) => {
    fc.pre(position < tokens.length && tokens[position] !== token);
    const changed = tokens.slice();
    changed[position] = token;
    const [before, after] = [hasher.hash(tokens).toHex(), hasher.hash(changed).toHex()];
    const block = Math.floor(position / hasher.blockSize);
    for (const [index, hash] of before.entries()) assert.equal(hash === after[index], index < block);
  });
}

/** Appending tokens piece by piece gives the hashes of the whole, for requests of tokens alone. */
export function splitsDoNotMatter(hasher: BlockHasher): FastCheck.IProperty<[Uint32Array, number[]]> {
  return fc.property(tokenIds(), fc.array(fc.nat(30), { maxLength: 8 }), (tokens, sizes) => {
    const session = hasher.session();
    let at = 0;
    for (const size of [...sizes, tokens.length]) {
      const before = session.hashes.length;
      const added = session.append(tokens.subarray(at, at + size));
      assert.equal(session.hashes.length, before + added);
      at = Math.min(at + size, tokens.length);
      assert.equal(session.numTokens, at);
    }
    assert.deepEqual(session.hashes.toHex(), hasher.hash(tokens).toHex());
  });
}

/** The encoder of the hot loop writes what the general encoders write. */
export function blockEncoderAgrees(
  format: BlockFormat,
): FastCheck.IProperty<[Uint8Array, Uint32Array, number, HashableSpec]> {
  const encoder = new BlockEncoder(format);
  const dumps = format === "cbor" ? cborDumps : pickleDumps;
  const bytes = fc.uint8Array({ minLength: 0, maxLength: 40 });
  return fc.property(bytes, tokenIds(), fc.nat(80), hashableSpec(), (parent, tokens, cut, spec) => {
    const start = Math.min(cut, tokens.length);
    const expected = attempt(() => dumps([parent, [...tokens.subarray(start)], buildHashable(spec)]));
    const actual = attempt(() => encoder.encode(parent, tokens, start, tokens.length, buildHashable(spec)));
    assert.equal(actual, expected);
  });
}

/** A kernel hashes every chain as the general encoders and SHA-256 do. */
export function kernelAgrees(
  kernel: BlockHashKernel,
  format: BlockFormat,
): FastCheck.IProperty<[Uint8Array, number, Uint32Array, (HashableSpec | undefined)[]]> {
  const hasher = new BlockHasher({ blockSize: 1, algorithm: format === "cbor" ? "sha256_cbor" : "sha256" });
  return fc.property(
    fc.uint8Array({ minLength: 32, maxLength: 32 }),
    fc.integer({ min: 1, max: 40 }),
    tokenIds(200),
    fc.array(fc.option(hashableSpec(), { nil: undefined }), { minLength: 1, maxLength: 8 }),
    (parent, blockSize, prompt, specs) => {
      const blocks = Math.floor(prompt.length / blockSize);
      const tokens = prompt.subarray(0, blocks * blockSize);
      const extras = Array.from({ length: blocks }, (_, block) => specs[block % specs.length]);
      const pieces = attemptAll(() => extras.map((spec) => encodedExtra(format, spec)));
      fc.pre(pieces !== undefined);
      const withExtras = extras.some((spec) => spec !== undefined);
      const ends = Uint32Array.from(pieces, (_, block) => lengthOf(pieces.slice(0, block + 1)));
      const hashes = kernel.hashChain({
        format,
        parent,
        tokens,
        blockSize,
        ...(withExtras && { extras: Buffer.concat(pieces), extraEnds: ends }),
      });
      let previous: Uint8Array = parent;
      const expected = extras.map((spec, block) => {
        const own = tokens.subarray(block * blockSize, (block + 1) * blockSize);
        previous = hasher.hashBlock(previous, own, spec === undefined ? null : buildHashable(spec));
        return previous;
      });
      assert.deepEqual(new BlobBlockHashes(hashes, 32).toHex(), BlobBlockHashes.from(expected).toHex());
    },
  );
}

/** A hasher with a kernel gives the hashes that it gives without, for any request and any look-ahead. */
export function kernelChangesNothing(
  kernel: BlockHashKernel,
  options: Omit<BlockHasherOptions, "kernel" | "blockSize">,
): FastCheck.IProperty<[HashRequest, number, Uint32Array]> {
  return fc.property(
    hashRequest(),
    fc.integer({ min: 1, max: 20 }),
    tokenIds(),
    (request, blockSize, more) => {
      const [withKernel, without] = [kernel, undefined].map((used) => {
        const session = new BlockHasher({ ...options, blockSize, kernel: used }).session(request);
        session.advance();
        session.append(more);
        return session.hashes.toHex();
      });
      assert.deepEqual(withKernel, without);
    },
  );
}

/** Python's meaning of a list of hashes: `at` and `slice` with negative positions and steps. */
export function blobBehavesLikeAList(
  algorithm: HashAlgorithm,
): FastCheck.IProperty<[Uint8Array, (number | undefined)[], number]> {
  const size = hashLength(algorithm);
  const bound = fc.option(fc.integer({ min: -12, max: 12 }), { nil: undefined });
  return fc.property(
    fc.uint8Array({ maxLength: size * 8 }),
    fc.tuple(bound, bound),
    fc.integer({ min: -4, max: 4 }).filter((step) => step !== 0),
    (data, [start, end], step) => {
      const blob = new BlobBlockHashes(data, size);
      const rows: string[] = [];
      for (let at = 0; at + size <= data.length; at += size)
        rows.push(Buffer.from(data.subarray(at, at + size)).toString("hex"));
      assert.deepEqual(blob.toHex(), rows);
      assert.deepEqual(blob.slice(start, end, step).toHex(), pythonSlice(rows, start, end, step));
      for (let index = -12; index <= 12; index++) {
        const hash = blob.at(index);
        assert.equal(hash && Buffer.from(hash).toString("hex"), rows.at(index));
      }
    },
  );
}

/** `rows[start:end:step]`, by trying every position that could be meant. */
export function pythonSlice<T>(
  rows: readonly T[],
  start: number | undefined,
  end: number | undefined,
  step: number,
): T[] {
  const count = rows.length;
  const shifted = (bound: number) => (bound < 0 ? bound + count : bound);
  const from = start === undefined ? (step > 0 ? 0 : count - 1) : shifted(start);
  const first = step > 0 ? Math.max(from, 0) : Math.min(from, count - 1);
  return Array.from({ length: count }, (_, i) => first + i * step)
    .filter((at) => at >= 0 && at < count)
    .filter((at) => end === undefined || (step > 0 ? at < shifted(end) : at > shifted(end)))
    .map((at) => rows[at]!);
}

function encodedExtra(format: BlockFormat, spec: HashableSpec | undefined): Uint8Array {
  return spec === undefined ? new Uint8Array(0) : encodeExtraKeys(format, buildHashable(spec));
}

function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}

/** CBOR refuses lone surrogates; such values have no encoding to compare. */
function attemptAll<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

function attempt(run: () => Uint8Array): string {
  try {
    return Buffer.from(run()).toString("hex");
  } catch (error) {
    return String((error as Error).message);
  }
}
