import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import type { BlobBlockHashes } from "../src/hash/blob-block-hashes.js";
import { BlockHasher } from "../src/hash/block-hasher.js";
import type { BlockHashKernel } from "../src/hash/kernel.js";
import { nativeAvailable, nativeBlockHashKernel } from "../src/native/index.js";

// Block hashes of a prompt of 1M tokens: how fast, and for how long the event loop stands still.

const TOKENS = 1_000_000;
const BLOCK_SIZE = 16;

/** Hashes the prompt with and without the native kernel; prints one JSON line a figure. */
export async function run(): Promise<void> {
  const tokens = Uint32Array.from({ length: TOKENS }, (_, index) => (index * 2_654_435_761) % 201_088);
  const plain = await measure("typescript", tokens, undefined);
  if (!nativeAvailable()) {
    report("hash/native/available", 0, "boolean");
    return;
  }
  const native = await measure("native", tokens, nativeBlockHashKernel());
  if (!Buffer.from(native.blob).equals(plain.blob)) throw new Error("the native hashes differ");
}

async function measure(
  name: string,
  tokens: Uint32Array,
  kernel: BlockHashKernel | undefined,
): Promise<BlobBlockHashes> {
  const hasher = new BlockHasher({ blockSize: BLOCK_SIZE, kernel });
  hasher.hash(tokens.subarray(0, 100_000));
  const started = performance.now();
  const hashes = hasher.hash(tokens);
  const seconds = (performance.now() - started) / 1000;
  report(`hash/${name}/sync`, hashes.length / seconds, "blocks/s");

  const stall = watchEventLoop();
  const asyncStarted = performance.now();
  const later = await hasher.hashAsync(tokens);
  const asyncSeconds = (performance.now() - asyncStarted) / 1000;
  const longest = stall();
  if (!Buffer.from(later.blob).equals(hashes.blob)) throw new Error("the asynchronous hashes differ");
  report(`hash/${name}/async`, later.length / asyncSeconds, "blocks/s");
  report(`hash/${name}/async/longest stall`, longest, "ms");
  return hashes;
}

/** Measures the longest time between two turns of the event loop, in ms, until the result is called. */
function watchEventLoop(): () => number {
  let longest = 0;
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  return () => {
    clearImmediate(next);
    return Math.max(longest, performance.now() - last);
  };
}

function report(name: string, value: number, unit: string): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit }));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await run();
