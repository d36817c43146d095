import type { CacheTensor as WireCacheTensor } from "../../generated/typescript/index.js";
import { describe } from "../errors.js";
import { checkUint64, checkWhole, layoutError } from "./checks.js";

/**
 * Where the KV cache of one layer lies: the geometry of a torch tensor, without its data. Axis 0 is the block.
 * Addresses are absolute: `address` is torch's `data_ptr()`, `storageAddress` and `storageBytes` are those of its
 * `untyped_storage()`. Shape and strides are in elements. It is the wire type of the same name, but for the `dtype`,
 * which may be left out.
 */
export interface CacheTensor extends Omit<WireCacheTensor, "dtype"> {
  /** Type of the elements, as the engine calls it; for messages. */
  readonly dtype?: string | null | undefined;
}

/**
 * Checks what torch guarantees of a tensor that exists.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when a number is out of its range, shape and strides differ in length, or the
 * elements do not lie in the storage.
 */
export function checkCacheTensor(tensor: CacheTensor, name: string = "tensor"): void {
  const { address, storageAddress, storageBytes, shape, strides, elementSize } = tensor;
  checkUint64(`${name}.address`, address);
  checkUint64(`${name}.storageAddress`, storageAddress);
  checkUint64(`${name}.storageBytes`, storageBytes);
  checkWhole(`${name}.elementSize`, elementSize, 1);
  if (shape.length !== strides.length)
    throw layoutError(
      `${name} has the shape ${describe(shape)} but the strides ${describe(strides)}; an axis needs one of each`,
      { shape, strides },
    );
  for (const [axis, size] of shape.entries()) checkWhole(`${name}.shape[${axis}]`, size, 0);
  for (const [axis, stride] of strides.entries()) checkWhole(`${name}.strides[${axis}]`, stride, 0);
  if (shape.includes(0)) return;
  const end = address + (lastElement(tensor) + 1n) * BigInt(elementSize);
  const storageEnd = storageAddress + storageBytes;
  if (address < storageAddress || end > storageEnd)
    throw layoutError(
      `${name} covers [${address}, ${end}), which leaves its storage [${storageAddress}, ${storageEnd})`,
      { address, end, storageAddress, storageEnd },
    );
}

/**
 * Whether elements of this shape and these strides cover one gapless range without overlap, in any order of axes.
 * Mirrors vLLM's `is_non_overlapping_and_dense`: axes of size 1 do not count, and no axis at all is dense.
 */
export function isNonOverlappingAndDense(shape: readonly number[], strides: readonly number[]): boolean {
  const axes = shape.map((size, axis) => ({ size, stride: strides[axis]! }));
  axes.sort((a, b) => a.stride - b.stride);
  let expected = 1;
  for (const { size, stride } of axes) {
    if (size === 1) continue;
    if (stride !== expected) return false;
    expected *= size;
  }
  return true;
}

/**
 * The tensor with manager blocks as axis 0: where a kernel divides each of the `numBlocks` blocks into several,
 * axis 0 is split into (numBlocks, kernel blocks of one block). A view of the same memory. Mirrors vLLM's
 * `group_kernel_blocks`.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when axis 0 is not a multiple of `numBlocks`.
 */
export function groupKernelBlocks(tensor: CacheTensor, numBlocks: number): CacheTensor {
  checkCacheTensor(tensor);
  checkWhole("numBlocks", numBlocks, 0);
  const [kernelBlocks, ...rest] = tensor.shape;
  if (kernelBlocks === undefined)
    throw layoutError("a tensor without axes has no blocks; axis 0 must be the block");
  if (kernelBlocks === numBlocks) return tensor;
  if (numBlocks === 0 || kernelBlocks % numBlocks !== 0)
    throw layoutError(
      `axis 0 has ${kernelBlocks} kernel blocks, which is not a multiple of the ${numBlocks} blocks`,
      { kernelBlocks, numBlocks },
    );
  const shape = [numBlocks, kernelBlocks / numBlocks, ...rest];
  return { ...tensor, shape, strides: splitStrides(tensor, shape) };
}

/**
 * The strides that torch gives a view which splits axis 0. Axes that lie densely behind one another are renumbered as
 * one run, so that an axis of size 1 gets the stride which it would have in a contiguous tensor.
 */
function splitStrides({ shape, strides }: CacheTensor, newShape: readonly number[]): number[] {
  const result = newShape.map(() => 1);
  let target = newShape.length - 1;
  if (newShape.includes(0)) {
    for (let axis = target - 1; axis >= 0; axis--)
      result[axis] = result[axis + 1]! * Math.max(newShape[axis + 1]!, 1);
    return result;
  }
  let innermost = strides.at(-1)!;
  let elements = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    elements *= shape[axis]!;
    const runGoesOn = axis > 0 && (shape[axis - 1] === 1 || strides[axis - 1] === elements * innermost);
    if (runGoesOn) continue;
    let assigned = 1;
    while (target >= 0 && (assigned < elements || newShape[target] === 1)) {
      result[target] = assigned * innermost;
      assigned *= newShape[target]!;
      target--;
    }
    innermost = strides[axis - 1] ?? innermost;
    elements = 1;
  }
  return result;
}

/** Distance of the last element in memory from the first, in elements. */
function lastElement({ shape, strides }: CacheTensor): bigint {
  let last = 0n;
  for (const [axis, size] of shape.entries()) last += BigInt(size - 1) * BigInt(strides[axis]!);
  return last;
}
