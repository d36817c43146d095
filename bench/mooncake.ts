import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MooncakeCluster } from "../src/conformance/contract/mooncake/cluster.js";
import type { MooncakeInstallation } from "../src/conformance/contract/mooncake/installation.js";
import { KeyTable } from "../src/key/key-table.js";
import { SegmentTable } from "../src/layout/segment-table.js";
import { type MooncakeStore, openStore } from "../src/store/open-store.js";
import type { StoreKeys } from "../src/store/shared/keys.js";
import { findMooncake } from "../test/helpers/mooncake-wheel.js";

const MIB = 1 << 20;
const PRESENT = Array.from(
  { length: 10_000 },
  (_, i) => `bench-model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${i.toString(16).padStart(64, "0")}`,
);
const LARGE = Array.from({ length: 64 }, (_, i) => `node-large-${i}`);
const SCATTERED = Array.from({ length: 256 }, (_, i) => `node-scattered-${i}`);

/** A call that both sides measure: rounds of one turn, and turns. */
interface Measure {
  /** Calls before the first that counts: compilers and caches are warm then, on both sides. */
  readonly warmUp: number;
  readonly rounds: number;
  readonly turns: number;
  /** One call; gives the seconds that count. */
  readonly once: () => Promise<number>;
}

/**
 * The sidecar against the same call of Mooncake's own Python client, on one cluster and in turns, so that both meet the
 * same machine. Prints one JSON line a figure; needs Mooncake's wheel (`MOONCAKE_KV_PYTHON`).
 */
export async function run(): Promise<void> {
  const installation = findMooncake();
  if (!installation) return;
  await using cluster = await MooncakeCluster.start(installation, {
    segmentBytes: 512 * MIB,
  });
  await using store = await openStore({
    backend: "mooncake",
    master: cluster.masterAddress,
    python: installation.python,
  });
  const python = new Baseline(installation, cluster.masterAddress);
  try {
    for (const [name, measure] of Object.entries(await measures(store))) {
      for (let round = 0; round < measure.warmUp; round++) await measure.once();
      await python.measure(name, measure.warmUp);
      const ours: number[] = [];
      const theirs: number[] = [];
      for (let turn = 0; turn < measure.turns; turn++) {
        theirs.push(...(await python.measure(name, measure.rounds)));
        for (let round = 0; round < measure.rounds; round++) ours.push(await measure.once());
      }
      compare(name, ours, theirs);
    }
  } finally {
    python.end();
  }
}

async function measures(store: MooncakeStore): Promise<Record<string, Measure>> {
  const arena = await store.createArena(128 * MIB);
  arena.bytes.fill(1);
  const base = arena.baseAddress;
  const table = (rows: number, segments: number, size: number): SegmentTable =>
    SegmentTable.fromRows(
      Array.from({ length: rows }, (_, row) =>
        Array.from({ length: segments }, (_, segment) => ({
          address: base + BigInt((segment * rows + row) * size),
          size: BigInt(size),
        })),
      ),
    );
  const small = table(PRESENT.length, 1, 64);
  (await store.putFrom(PRESENT, small)).throwIfFailed();
  // Prepared before, as Python's list of texts is.
  const prepared = KeyTable.fromTexts(PRESENT);
  prepared.flat();
  const all = async (keys: StoreKeys): Promise<void> => {
    if ((await store.exists(keys)).ok !== PRESENT.length) throw new Error("keys are missing");
  };
  const large = table(64, 1, MIB);
  const scattered = table(256, 64, 4096);
  const put = async (keys: string[], rows: SegmentTable): Promise<number> => {
    await store.remove(keys, { force: true });
    return timed(async () => (await store.putFrom(keys, rows)).throwIfFailed());
  };
  const get = (keys: string[], rows: SegmentTable): Promise<number> =>
    timed(async () => (await store.getInto(keys, rows)).throwIfFailed());
  return {
    "exists 1": {
      warmUp: 3_000,
      rounds: 200,
      turns: 10,
      once: () => timed(() => store.exists(PRESENT.slice(0, 1))),
    },
    "exists 10000": { warmUp: 10, rounds: 5, turns: 8, once: () => timed(() => all(prepared)) },
    "exists 10000, as texts": { warmUp: 10, rounds: 5, turns: 8, once: () => timed(() => all(PRESENT)) },
    "put 64 x 1 MiB": { warmUp: 4, rounds: 3, turns: 14, once: () => put(LARGE, large) },
    "get 64 x 1 MiB": { warmUp: 4, rounds: 3, turns: 14, once: () => get(LARGE, large) },
    "put 256 x 64 x 4 KiB": { warmUp: 1, rounds: 2, turns: 3, once: () => put(SCATTERED, scattered) },
    "get 256 x 64 x 4 KiB": { warmUp: 1, rounds: 2, turns: 3, once: () => get(SCATTERED, scattered) },
  };
}

async function timed(call: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await call();
  return (performance.now() - started) / 1000;
}

/** Mooncake's own client in a process of its own, which measures itself. */
class Baseline {
  readonly #child;
  readonly #lines: AsyncIterator<string>;

  constructor({ python }: MooncakeInstallation, master: string) {
    const script = fileURLToPath(new URL("mooncake_baseline.py", import.meta.url));
    this.#child = spawn(python, ["-B", script, master], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, GLOG_minloglevel: "3" },
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** The seconds of each round. */
  async measure(name: string, rounds: number): Promise<number[]> {
    this.#child.stdin.write(`${JSON.stringify([name, rounds])}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the Python client ended at "${name}"`);
    return JSON.parse(value) as number[];
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

function compare(name: string, ours: readonly number[], theirs: readonly number[]): void {
  const [a, b] = [median(ours), median(theirs)];
  report(`mooncake/${name}/sidecar`, a * 1000, "ms");
  report(`mooncake/${name}/python`, b * 1000, "ms");
  report(`mooncake/${name}/added`, (a - b) * 1e6, "us");
  report(`mooncake/${name}/ratio`, a / b, "x");
}

function median(values: readonly number[]): number {
  return [...values].sort((x, y) => x - y)[values.length >> 1]!;
}

function report(name: string, value: number, unit: string): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit }));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await run();
