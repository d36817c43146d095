import type { CacheTensor } from "../../../src/layout/cache-tensor.js";
import { hashOf } from "../../../src/testing/connector/scheduler-harness.js";

// What the model computes: the bytes of a block follow from the tokens in it and before it, which its hash names.

/** Tokens of a block. */
export const BLOCK_TOKENS = 16;
/** Bytes of a block on one rank. */
export const BLOCK_BYTES = 32;
/** Blocks of a pool, the null block among them. */
export const NUM_BLOCKS = 96;

/** Hashes of the first blocks of a family of prompts, which all begin with the same tokens. */
export function familyHashes(family: number, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => hashOf(family, index));
}

/** The right bytes of block `index` of a family. */
export function rightBytes(family: number, index: number, group: number, rank: number): Uint8Array {
  return Uint8Array.from(
    { length: BLOCK_BYTES },
    (_, at) => [family, index + 1, group + 1, rank + 1][at % 4]!,
  );
}

/** The right bytes of an object. */
export function rightObject(key: string): Uint8Array {
  const [, rank, group, hash] = /tp_rank:(\d+)@.*@group:(\d+)@([0-9a-f]+)$/.exec(key)!;
  const [family, high, low] = Buffer.from(hash!, "hex");
  return rightBytes(family!, high! * 256 + low!, Number(group), Number(rank));
}

/** The KV cache of one rank, in addresses of its own: one layer, whose blocks the cache groups share. */
export class RankMemory {
  readonly bytes: Uint8Array = new Uint8Array(NUM_BLOCKS * BLOCK_BYTES);
  readonly baseAddress: bigint;

  constructor(rank: number) {
    this.baseAddress = 0x7f00_0000_0000n + BigInt(rank) * 0x100_0000n;
  }

  block(blockId: number): Uint8Array {
    return this.bytes.subarray(blockId * BLOCK_BYTES, (blockId + 1) * BLOCK_BYTES);
  }

  tensors(): CacheTensor[] {
    return [
      {
        address: this.baseAddress,
        storageAddress: this.baseAddress,
        storageBytes: BigInt(this.bytes.length),
        shape: [NUM_BLOCKS, 1, 1, BLOCK_BYTES],
        strides: [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 1],
        elementSize: 1,
      },
    ];
  }
}
