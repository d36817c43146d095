import type { OptionNames } from "../checks/checks-for.js";
import type { CacheTensor } from "./cache-tensor.js";
import { checkUint64, checkWhole, layoutChecks } from "./checks.js";
import { KV_CACHE_LAYOUTS, type KvCacheLayout } from "./store-namespace.js";

/** The KV cache of one rank and one cache group. */
export interface KvCacheShape {
  /** Physical order of the axes. */
  readonly layout: KvCacheLayout;
  readonly numLayers: number;
  readonly numBlocks: number;
  /** KV heads of this rank. */
  readonly numHeads: number;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** Elements of one head and token: key and value together, so twice the head size for usual attention. */
  readonly contentSize: number;
  /** Bytes of one element. */
  readonly elementSize: number;
}

const MEMBERS: OptionNames<KvCacheShape> = {
  layout: 1,
  numLayers: 1,
  numBlocks: 1,
  numHeads: 1,
  blockSize: 1,
  contentSize: 1,
  elementSize: 1,
};

const AXES = ["L", "B", "H", "N", "C"] as const;

/** Bytes of the whole cache. @throws MooncakeKvError `ERR_LAYOUT` as `kvCacheTensors`. */
export function kvCacheBytes(shape: KvCacheShape): number {
  checkShape(shape);
  return checkWhole(
    "bytes of the cache",
    sizes(shape).reduce((product, size) => product * size, shape.elementSize),
    0,
  );
}

/**
 * One tensor a layer over one gapless storage, each seen as (block, head, token, content) whatever the physical
 * order is. Mirrors vLLM's `create_kv_cache_views` for caches without padding.
 *
 * @param address where the storage starts; it must hold `kvCacheBytes(shape)` bytes.
 * @throws MooncakeKvError `ERR_LAYOUT` for a size that is not a whole number of 1 or more, and for an unknown layout.
 */
export function kvCacheTensors(shape: KvCacheShape, address: bigint): CacheTensor[] {
  checkShape(shape);
  const start = checkUint64("address", address);
  const extent = new Map(AXES.map((axis, index) => [axis, sizes(shape)[index]!] as const));
  const stride = new Map<string, number>();
  let elements = 1;
  for (const axis of [...shape.layout].reverse() as (typeof AXES)[number][]) {
    stride.set(axis, elements);
    elements *= extent.get(axis)!;
  }
  const logical = ["B", "H", "N", "C"] as const;
  return Array.from({ length: shape.numLayers }, (_, layer) => ({
    address: start + BigInt(layer * stride.get("L")! * shape.elementSize),
    storageAddress: start,
    storageBytes: BigInt(kvCacheBytes(shape)),
    shape: logical.map((axis) => extent.get(axis)!),
    strides: logical.map((axis) => stride.get(axis)!),
    elementSize: shape.elementSize,
  }));
}

function checkShape(shape: KvCacheShape): void {
  layoutChecks.names("a KV cache", shape, MEMBERS);
  layoutChecks.word("layout", shape.layout, KV_CACHE_LAYOUTS);
  for (const [index, size] of sizes(shape).entries()) checkWhole(`size of axis ${AXES[index]}`, size, 1);
  checkWhole("elementSize", shape.elementSize, 1);
}

function sizes({ numLayers, numBlocks, numHeads, blockSize, contentSize }: KvCacheShape): number[] {
  return [numLayers, numBlocks, numHeads, blockSize, contentSize];
}
