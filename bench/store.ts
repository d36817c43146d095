import { execFileSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { SegmentTable } from "../src/layout/segment-table.js";
import { type Arena, type KvStore, openStore } from "../src/store/index.js";

const BYTES = 64 << 20;

function figure(name: string, value: number, unit: string, input: Record<string, unknown>): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit, ...input }));
}

/** The fastest of `rounds` calls of each function, in ms; they take turns, so that all meet the same machine. */
async function best(rounds: number, functions: readonly (() => unknown)[]): Promise<number[]> {
  const times = functions.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < rounds; round++)
    for (const [i, call] of functions.entries()) {
      const start = performance.now();
      await call();
      times[i] = Math.min(times[i]!, performance.now() - start);
    }
  return times;
}

/** 64 objects whose segments lie scattered over [start, start + BYTES) of the arena. */
function scattered(arena: Arena, start: number, segment: number): SegmentTable {
  const count = BYTES / segment;
  const addresses = new BigUint64Array(count);
  // An odd stride over a power of two visits every place once.
  for (let i = 0; i < count; i++)
    addresses[i] = arena.baseAddress + BigInt(start + ((i * 7919) % count) * segment);
  const rowOffsets = Uint32Array.from({ length: 65 }, (_, row) => (row * count) / 64);
  return new SegmentTable(
    addresses,
    new BigUint64Array(count).fill(BigInt(segment)),
    rowOffsets,
    new Int32Array(64).fill(-1),
  );
}

/** Gathering and scattering 64 MiB against one memcpy of as many bytes. */
async function benchCopies(store: KvStore, arena: Arena): Promise<void> {
  const keys = Array.from({ length: 64 }, (_, i) => `object-${i}`);
  const source = arena.bytes.subarray(0, BYTES);
  const target = arena.bytes.subarray(BYTES);
  source.fill(1);
  target.fill(2);
  for (const segment of [4 << 10, 16 << 10, 256 << 10, 1 << 20]) {
    const from = scattered(arena, 0, segment);
    const to = scattered(arena, BYTES, segment);
    (await store.putFrom(keys, from)).throwIfFailed();
    // An upsert of the same size overwrites memory that is there, as the memcpy does.
    const [memcpy, gather, scatter] = (await best(12, [
      () => target.set(source),
      async () => (await store.upsertFrom(keys, from)).throwIfFailed(),
      async () => (await store.getInto(keys, to)).throwIfFailed(),
    ])) as [number, number, number];
    const input = { segmentBytes: segment, bytes: BYTES, objects: 64 };
    const gigabytes = (ms: number): number => BYTES / ms / 1e6;
    figure("store.memcpy", gigabytes(memcpy), "GB/s", input);
    figure("store.gather", gigabytes(gather), "GB/s", input);
    figure("store.scatter", gigabytes(scatter), "GB/s", input);
    figure("store.gather / memcpy", memcpy / gather, "ratio", input);
    figure("store.scatter / memcpy", memcpy / scatter, "ratio", input);
    await store.removeAll({ force: true });
  }
}

async function benchLookups(store: KvStore): Promise<void> {
  const keys = Array.from({ length: 10_000 }, (_, i) => `model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${i}`);
  await store.put(
    keys,
    keys.map(() => Uint8Array.of(1)),
  );
  for (const count of [1, 10_000]) {
    const some = keys.slice(0, count);
    const [ms] = await best(count === 1 ? 2000 : 50, [() => store.exists(some)]);
    figure("store.exists", ms! * 1000, "µs", { keys: count });
  }
  await store.removeAll({ force: true });
}

/** What a million keys cost beyond key and value. Runs alone, in a process of its own. */
async function measureKeys(count: number): Promise<void> {
  const store = await openStore({ backend: "embedded", capacity: "256MiB" });
  await using arena = await store.createArena(4096);
  const resident = (): number => process.memoryUsage().rss;
  const batch = 10_000;
  const rows = new SegmentTable(
    new BigUint64Array(batch).fill(arena.baseAddress),
    new BigUint64Array(batch).fill(16n),
    Uint32Array.from({ length: batch + 1 }, (_, i) => i),
    new Int32Array(batch).fill(-1),
  );
  const keyBytes = 100;
  const put = async (start: number): Promise<void> => {
    const keys = Array.from({ length: batch }, (_, i) => String(start + i).padStart(keyBytes, "k"));
    (await store.putFrom(keys, rows)).throwIfFailed();
  };
  await put(0);
  globalThis.gc?.();
  const before = resident();
  for (let start = batch; start < count + batch; start += batch) await put(start);
  globalThis.gc?.();
  const perKey = (resident() - before) / count;
  console.log(JSON.stringify({ perKey, keyBytes, valueBytes: 16 }));
  await store.close();
}

function benchMemory(): void {
  const output = execFileSync(
    process.execPath,
    ["--expose-gc", "--import", "tsx", fileURLToPath(import.meta.url), "keys"],
    { encoding: "utf8" },
  );
  const { perKey, keyBytes, valueBytes } = JSON.parse(output) as Record<string, number>;
  figure("store.bytes per key beyond key and value", perKey! - keyBytes! - valueBytes!, "bytes", {
    keys: 1_000_000,
    keyBytes,
    valueBytes,
  });
}

/** The embedded store: copies against one memcpy, lookups, and memory per key. */
export async function run(): Promise<void> {
  await using store = await openStore({ backend: "embedded", capacity: "512MiB" });
  await using arena = await store.createArena(2 * BYTES);
  await benchCopies(store, arena);
  await benchLookups(store);
  benchMemory();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  await (process.argv[2] === "keys" ? measureKeys(1_000_000) : run());
