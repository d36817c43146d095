import { pathToFileURL } from "node:url";
import { type CacheTensor, LBHNCStoreLayout } from "../src/layout/index.js";

const CHUNKS = 2258;
const LAYERS = 96;
const BLOCK_SIZE = 16;
const NUM_BLOCKS = 8192;
const BLOCK_BYTES = 16384;

/** Times the best of `rounds` calls of each function, taking turns so that all meet the same machine. In ms. */
function best(rounds: number, functions: readonly (() => unknown)[]): number[] {
  const times = functions.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < rounds; round++)
    for (const [i, call] of functions.entries()) {
      const start = performance.now();
      call();
      times[i] = Math.min(times[i]!, performance.now() - start);
    }
  return times;
}

function layerTensors(): CacheTensor[] {
  return Array.from({ length: LAYERS }, (_, layer) => {
    const address = 0x7f00_0000_0000n + BigInt(layer) * BigInt(NUM_BLOCKS * BLOCK_BYTES);
    return {
      address,
      storageAddress: address,
      storageBytes: BigInt(NUM_BLOCKS * BLOCK_BYTES),
      shape: [NUM_BLOCKS, 2, BLOCK_SIZE, BLOCK_BYTES / (2 * BLOCK_SIZE * 2)],
      strides: [BLOCK_BYTES / 2, BLOCK_BYTES / 4, BLOCK_BYTES / (2 * BLOCK_SIZE * 2), 1],
      elementSize: 2,
    };
  });
}

/**
 * How fast descriptors are made: `prepareValues` of 2,258 chunks x 96 segments, against writing as many bytes once with
 * `TypedArray.fill`: into new arrays, as `prepareValues` returns new ones, and into arrays that are there already.
 */
export async function run(): Promise<void> {
  const layout = new LBHNCStoreLayout({
    metadata: { modelName: "bench" },
    blockSize: BLOCK_SIZE,
    tpSize: 4,
    tpRank: 1,
    storeTpSize: 4,
    numKvHeads: 8,
  });
  layout.registerKvCaches(layerTensors(), NUM_BLOCKS);
  const starts = Uint32Array.from({ length: CHUNKS }, (_, chunk) => chunk * BLOCK_SIZE);
  const chunks = { length: CHUNKS, starts, ends: starts.map((start) => start + BLOCK_SIZE) };
  const blockIds = Int32Array.from({ length: CHUNKS }, (_, chunk) => (chunk * 7919) % NUM_BLOCKS);

  const { addresses, sizes } = layout.prepareValues(chunks, blockIds);
  const [prepare, fillNew, fillOld] = best(500, [
    () => layout.prepareValues(chunks, blockIds),
    () => [new BigUint64Array(addresses.length).fill(1n), new BigUint64Array(sizes.length).fill(1n)],
    () => [addresses.fill(1n), sizes.fill(1n)],
  ]) as [number, number, number];
  const input = { chunks: CHUNKS, segments: CHUNKS * LAYERS, bytes: addresses.byteLength + sizes.byteLength };
  for (const [name, value, unit] of [
    ["layout.prepareValues", prepare, "ms"],
    ["layout.fill, new arrays", fillNew, "ms"],
    ["layout.fill, the same arrays", fillOld, "ms"],
    ["layout.prepareValues / fill, new arrays", prepare / fillNew, "ratio"],
    ["layout.prepareValues / fill, the same arrays", prepare / fillOld, "ratio"],
  ] as const)
    console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit, ...input }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await run();
