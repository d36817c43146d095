import { describe } from "../errors.js";
import { type CacheTensor, isNonOverlappingAndDense } from "./cache-tensor.js";
import { layoutError } from "./checks.js";

/** Memory in which the blocks of a cache lie one after the other: its address, and bytes from block to block. */
export interface CacheRegion {
  /** Where the region begins. */
  readonly address: bigint;
  /** Bytes of one block in it. */
  readonly blockLength: number;
}

/**
 * The regions of one tensor, as vLLM's `RankLocalStoreLayout.register_kv_caches` finds them:
 *
 * - where one block is not dense, a region for each index of axis 1;
 * - else, where the blocks fill the storage exactly, the whole storage;
 * - else the tensor itself.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when there are no blocks, or an index of axis 1 is not dense either.
 */
export function cacheRegions(tensor: CacheTensor, numBlocks: number, name: string): CacheRegion[] {
  const { shape, strides, elementSize } = tensor;
  const [blocks, parts] = shape;
  if (blocks === undefined || blocks === 0)
    throw layoutError(
      `${name} has the shape ${describe(shape)}; axis 0 must be the block, and there must be one`,
      {
        shape,
      },
    );
  const blockLength = strides[0]! * elementSize;
  if (!Number.isSafeInteger(blockLength))
    throw layoutError(`${name} has ${blockLength} bytes from block to block; 2^53 is the limit`, {
      blockLength,
    });
  if (!isNonOverlappingAndDense(shape.slice(1), strides.slice(1))) {
    if (parts! > 0 && !isNonOverlappingAndDense(shape.slice(2), strides.slice(2)))
      throw layoutError(
        `${name} with shape ${describe(shape)} and strides ${describe(strides)}: neither a block nor one index of its axis 1 is dense in memory`,
        { shape, strides },
      );
    const step = shape.includes(0) ? 0n : BigInt(strides[1]!) * BigInt(elementSize);
    return Array.from({ length: parts! }, (_, part) => ({
      address: tensor.address + BigInt(part) * step,
      blockLength,
    }));
  }
  if (BigInt(blockLength) * BigInt(numBlocks) !== tensor.storageBytes)
    return [{ address: tensor.address, blockLength }];
  if (numBlocks === 0) throw layoutError(`${name} has an empty storage and numBlocks is 0`, { numBlocks });
  return [{ address: tensor.storageAddress, blockLength }];
}
