import { pathToFileURL } from "node:url";
import { Decoder } from "@msgpack/msgpack";
import {
  BlockIndex,
  blockRemoved,
  blockStored,
  decodeEventBatch,
  EventHashes,
  encodeEventBatch,
  type KVCacheEvent,
} from "../src/events/index.js";
import { random, report } from "./figure.js";

// What a router does with each event: decode it, and take note of it in the index. And what it asks for each prompt.
// Beside it, what @msgpack/msgpack needs to read the same bytes to plain objects, unchecked.

const BLOCK_SIZE = 16;
const BATCHES = 2_000;
/** Events of the batches that have many: an engine publishes what a step has done as one batch. */
const MANY = 100;

function randomHashes(count: number, next: () => number): EventHashes {
  return new EventHashes(Uint32Array.from({ length: 2 * count }, next));
}

/** Events with blocks of their own, as vLLM's core publishes them for prompts of many blocks, and the connector for one. */
function storedEvents(blocks: number, next: () => number): KVCacheEvent[] {
  return Array.from({ length: BATCHES }, () =>
    blockStored({
      blockHashes: randomHashes(blocks, next),
      parentBlockHash: BigInt(next()),
      tokenIds: Uint32Array.from({ length: blocks * BLOCK_SIZE }, () => next() % 200_000),
      blockSize: BLOCK_SIZE,
      medium: "GPU",
      extraKeys: new Array(blocks).fill(null),
      groupIdx: 0,
      kvCacheSpecKind: "full_attention",
    }),
  );
}

/** Microseconds of `count` calls in a row, for each. */
function timed(count: number, call: (index: number) => void): number {
  const started = performance.now();
  for (let index = 0; index < count; index++) call(index);
  return ((performance.now() - started) * 1000) / count;
}

/** Microseconds of one of `count` calls: best of some rounds. */
function best(count: number, rounds: number, prepare: () => (index: number) => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) least = Math.min(least, timed(count, prepare()));
  return least;
}

/** What reads the payload of a batch. */
type Read = (payload: Uint8Array) => unknown;

/** What the readers gave last, so that none of their work is left out. */
let read: unknown;

/** Microseconds an event for each of some readers, which take turns: best of some rounds. */
function readers(
  payloads: readonly Uint8Array[],
  rounds: number,
  perPayload: number,
  calls: readonly Read[],
) {
  const least = calls.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < rounds; round++)
    for (const [at, call] of calls.entries()) {
      const time = timed(payloads.length, (index) => {
        read = call(payloads[index]!);
      });
      least[at] = Math.min(least[at]!, time / perPayload);
    }
  return least;
}

/** Decoding events, so many a batch, beside a reader that knows nothing of events. */
function decoding(name: string, events: readonly KVCacheEvent[], perBatch: number): number {
  const payloads = Array.from({ length: Math.floor(events.length / perBatch) }, (_, at) =>
    encodeEventBatch({
      ts: 1,
      events: events.slice(at * perBatch, (at + 1) * perBatch),
      dataParallelRank: 0,
    }),
  );
  const general = new Decoder({ useBigInt64: true });
  const [ours, theirs] = readers(payloads, 40, perBatch, [
    decodeEventBatch,
    (payload) => general.decode(payload),
  ]);
  if (read === undefined) throw new Error("nothing was read");
  const title = perBatch === 1 ? name : `${name}, ${perBatch} a batch`;
  report(`events.decode.${title}`, ours!, "us/event", { bytes: payloads[0]!.length });
  report(`events.decode by @msgpack/msgpack.${title}`, theirs!, "us/event");
  report(`events.decode / @msgpack/msgpack.${title}`, ours! / theirs!, "ratio");
  return ours!;
}

const newIndex = (capacity = 2 ** 18) => new BlockIndex({ blockSize: BLOCK_SIZE, capacity });

function compare(name: string, events: readonly KVCacheEvent[], before: readonly KVCacheEvent[] = []): void {
  const decode = decoding(name, events, 1);
  const update = best(events.length, 8, () => {
    const index = newIndex();
    for (const event of before) index.apply("engine", event);
    return (at) => index.apply("engine", events[at]!);
  });
  report(`events.index.${name}`, update, "us/event");
  report(`events.index / decode.${name}`, update / decode, "ratio");
}

/** Decoding against taking note, event by event; matching prompts against an index of a million blocks. */
export async function run(): Promise<void> {
  const next = random(1);
  for (const blocks of [1, 64]) {
    const stored = storedEvents(blocks, next);
    compare(`stored.${blocks} blocks`, stored);
    const removed = stored.map((event) =>
      blockRemoved({ blockHashes: hashesOf(event), medium: "GPU", groupIdx: 0 }),
    );
    compare(`removed.${blocks} blocks`, removed, stored);
    if (blocks > 1) continue;
    decoding("stored.1 blocks", stored, MANY);
    decoding("removed.1 blocks", removed, MANY);
  }
  compare(
    "cleared",
    Array.from({ length: BATCHES }, () => ({ type: "AllBlocksCleared" })),
    storedEvents(64, next),
  );

  const blocks = 2 ** 20;
  const engines = 16;
  const index = new BlockIndex({ blockSize: BLOCK_SIZE, capacity: blocks });
  const prompts = Array.from({ length: 1024 }, () => randomHashes(1024, next));
  for (const [at, blockHashes] of prompts.entries())
    for (const engine of [at, at + 1])
      index.apply(`engine ${engine % engines}`, blockStored({ blockHashes, blockSize: BLOCK_SIZE }));
  const size = { blocks: index.size, engines, megabytes: Math.round(index.byteLength / 2 ** 20) };
  const match = best(prompts.length, 5, () => (at) => void index.match(prompts[at]!));
  report("events.match.1024 blocks", match, "us/prompt", size);
  const missed = Array.from({ length: 1024 }, () => randomHashes(1024, next));
  const miss = best(missed.length, 5, () => (at) => void index.match(missed[at]!));
  report("events.match.miss", miss, "us/prompt", size);
}

function hashesOf(event: KVCacheEvent): EventHashes {
  return event.type === "AllBlocksCleared" ? new EventHashes(new Uint32Array(0)) : event.blockHashes;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await run();
