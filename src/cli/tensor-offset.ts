import type { CacheTensor } from "../layout/index.js";

/** Where an address lies: a tensor by its index, and bytes from the tensor's first element. */
export interface TensorOffset {
  readonly tensor: number;
  readonly offset: bigint;
}

/**
 * Finds the tensor that has an element at an address. Tensors may lie interleaved in one storage, so that a range
 * check is not enough.
 */
export class TensorFinder {
  readonly #tensors: readonly CacheTensor[];

  constructor(tensors: readonly CacheTensor[]) {
    this.#tensors = tensors;
  }

  /** The tensor of an address; undefined where there is none. `hint` is the index that is tried first. */
  find(address: bigint, hint: number = 0): TensorOffset | undefined {
    if (this.#holds(hint, address)) return this.#offset(hint, address);
    const index = this.#tensors.findIndex((_, tensor) => this.#holds(tensor, address));
    return index < 0 ? undefined : this.#offset(index, address);
  }

  #offset(tensor: number, address: bigint): TensorOffset {
    return { tensor, offset: address - this.#tensors[tensor]!.address };
  }

  #holds(index: number, address: bigint): boolean {
    const tensor = this.#tensors[index];
    if (tensor === undefined || address < tensor.address || tensor.shape.includes(0)) return false;
    const size = BigInt(tensor.elementSize);
    let rest = address - tensor.address;
    const axes = tensor.shape.map((length, axis) => ({ length, stride: tensor.strides[axis]! }));
    axes.sort((a, b) => b.stride - a.stride);
    for (const { length, stride } of axes) {
      if (stride === 0) continue;
      const bytes = BigInt(stride) * size;
      const steps = rest / bytes;
      const last = BigInt(length - 1);
      rest -= (steps < last ? steps : last) * bytes;
    }
    return rest < size;
  }
}
