import { pathToFileURL } from "node:url";
import { BlockIndex, type BlockIndexEngineInit, blockStored, EventHashes } from "../src/events/index.js";
import { random, report } from "./figure.js";

// What a router asks its index for each prompt, over engines of several shapes; and how it stands hashes made to collide.

const BLOCK_SIZE = 16;
const ENGINES = 16;
const PROMPTS = 256;
const BLOCKS = 1024;

/** Microseconds of one of `count` calls: best of some rounds. */
function best(count: number, call: (index: number) => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const started = performance.now();
    for (let index = 0; index < count; index++) call(index);
    least = Math.min(least, ((performance.now() - started) * 1000) / count);
  }
  return least;
}

const SHAPES: Readonly<Record<string, BlockIndexEngineInit>> = {
  full: { groups: [{ kind: "full", blockSize: BLOCK_SIZE }] },
  "full and window": {
    groups: [
      { kind: "full", blockSize: BLOCK_SIZE },
      { kind: "swa", blockSize: BLOCK_SIZE, slidingWindow: 1024 },
    ],
  },
  "full and window, eagle": {
    eagle: true,
    groups: [
      { kind: "full", blockSize: BLOCK_SIZE },
      { kind: "swa", blockSize: BLOCK_SIZE, slidingWindow: 1024 },
    ],
  },
  "full and states": {
    groups: [
      { kind: "full", blockSize: BLOCK_SIZE },
      { kind: "mamba", blockSize: BLOCK_SIZE },
    ],
  },
};

function matching(): void {
  for (const [shape, init] of Object.entries(SHAPES)) {
    const next = random(1);
    const index = new BlockIndex({ blockSize: BLOCK_SIZE });
    const prompts = Array.from(
      { length: PROMPTS },
      () => new EventHashes(Uint32Array.from({ length: 2 * BLOCKS }, next)),
    );
    for (let engine = 0; engine < ENGINES; engine++) index.engine(`engine ${engine}`, init);
    for (const [at, blockHashes] of prompts.entries())
      for (const engine of [at, at + 1])
        for (const groupIdx of init.groups!.keys())
          index.apply(
            `engine ${engine % ENGINES}`,
            blockStored({ blockHashes, blockSize: BLOCK_SIZE, groupIdx }),
          );
    const size = { engines: ENGINES, blocks: index.size, bytesABlock: index.byteLength / 2 ** 20 };
    report(
      `event-index.match.${BLOCKS} blocks, ${shape}`,
      best(PROMPTS, (at) => void index.match(prompts[at]!)),
      "us/prompt",
      size,
    );
    report(
      `event-index.explain.${BLOCKS} blocks, ${shape}`,
      best(PROMPTS, (at) => void index.explain(prompts[at]!, `engine ${at % ENGINES}`)),
      "us/prompt",
    );
  }
}

/** Hashes that would all fall into one bucket of a table whose hash function is known, against others. */
function colliding(): void {
  const next = random(2);
  const count = 20_000;
  const highs = Uint32Array.from({ length: count }, next);
  const made = Uint32Array.from({ length: 2 * count }, (_, at) =>
    at % 2 === 1 ? highs[at >> 1]! : Math.imul(highs[at >> 1]!, 0x9e37_79b1),
  );
  const others = Uint32Array.from({ length: 2 * count }, next);
  let [worst, usual] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 8; round++)
    for (const words of [made, others]) {
      const index = new BlockIndex({ blockSize: BLOCK_SIZE, capacity: 2 ** 16 });
      const event = blockStored({ blockHashes: new EventHashes(words), blockSize: BLOCK_SIZE });
      const started = performance.now();
      index.apply("engine", event);
      const took = performance.now() - started;
      if (words === made) worst = Math.min(worst, took);
      else usual = Math.min(usual, took);
    }
  report("event-index.stored.20,000 hashes made to collide", worst, "ms");
  report("event-index.stored.hashes made to collide / others", worst / usual, "ratio");
}

/** Matches and explanations for engines of several shapes, and a hostile event. */
export async function run(): Promise<void> {
  matching();
  colliding();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await run();
