import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { BlobBlockHashes } from "../src/hash/blob-block-hashes.js";
import { KeyTable } from "../src/key/key-table.js";
import { PoolKey } from "../src/key/pool-key.js";

// All keys of a prompt of 1M tokens at block 16 as the one buffer that crosses the native boundary.

const KEYS = 62_500;
const ROUNDS = 20;

/** Writes the keys flat, and one by one as texts; prints one JSON line a figure. */
export async function run(): Promise<void> {
  const prefix = PoolKey.buildPrefix({ modelName: "gpt-oss-20b", tpRank: 3 });
  const blob = Uint8Array.from({ length: KEYS * 32 }, (_, index) => (index * 2_654_435_761) >>> 13);
  const hashes = new BlobBlockHashes(blob, 32);
  const flat = best(() => KeyTable.fromHashes(prefix, hashes).flat().bytes.length);
  report("keys/flat", KEYS / flat.seconds, "keys/s");
  report("keys/flat/time", flat.seconds * 1000, "ms");
  report("keys/flat/bytes", flat.result, "B");
  const texts = best(() => KeyTable.fromHashes(prefix, hashes).toArray().length);
  report("keys/texts", KEYS / texts.seconds, "keys/s");
}

/** The fastest of several rounds, each on a new table. */
function best<T>(work: () => T): { readonly seconds: number; readonly result: T } {
  let seconds = Number.POSITIVE_INFINITY;
  let result = work();
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    result = work();
    seconds = Math.min(seconds, (performance.now() - started) / 1000);
  }
  return { seconds, result };
}

function report(name: string, value: number, unit: string): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit }));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await run();
