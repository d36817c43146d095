import fc from "fast-check";
import {
  type AllBlocksCleared,
  type BlockRemoved,
  type BlockStored,
  EventHashes,
  type ExtraKey,
  type KVCacheEvent,
  type KVEventBatch,
} from "../../src/events/index.js";
import type { ExternalBlockHash } from "../../src/hash/index.js";
import type { Release } from "../../src/release.js";

const bytes = fc.uint8Array({ maxLength: 40 });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const count = fc.oneof(fc.nat(300), fc.nat(70_000), fc.maxSafeNat());
const text = fc.string({ unit: "grapheme", maxLength: 40 });
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

/** A hash in one of its forms. */
export const externalHash: fc.Arbitrary<ExternalBlockHash> = fc.oneof(
  uint64,
  fc.bigInt({ min: 0n, max: 300n }),
  bytes,
);

const hashes = fc.array(externalHash, { maxLength: 20 }).map((list) => EventHashes.from(list));

const extraKey: fc.Arbitrary<ExtraKey> = fc.letrec<{ key: ExtraKey }>((tie) => ({
  key: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(
      fc.constant(null),
      fc.boolean(),
      fc.integer(),
      uint64.filter((value) => value > 2n ** 53n),
      text,
      bytes,
    ),
    fc.array(tie("key"), { maxLength: 3 }),
  ),
})).key;

const since = <T>(release: Release, first: Release, arbitrary: fc.Arbitrary<T>) =>
  release < first ? fc.constant(null) : orNull(arbitrary);

/** A stored event that a release can have. */
export function storedOf(release: Release): fc.Arbitrary<BlockStored> {
  return fc.record({
    type: fc.constant("BlockStored" as const),
    blockHashes: hashes,
    parentBlockHash: orNull(externalHash),
    tokenIds: fc.array(fc.nat(2 ** 32 - 1), { maxLength: 40 }).map((list) => Uint32Array.from(list)),
    blockSize: fc.nat(100_000),
    loraId: orNull(count),
    medium: orNull(fc.oneof(fc.constantFrom("GPU", "cpu", "STORAGE"), text)),
    loraName: orNull(text),
    extraKeys: orNull(fc.array(orNull(fc.array(extraKey, { maxLength: 3 })), { maxLength: 3 })),
    groupIdx: orNull(count),
    kvCacheSpecKind: orNull(fc.constantFrom("full_attention", "sliding_window", "mamba")),
    kvCacheSpecSlidingWindow: orNull(count),
    locality: orNull(text),
    ownership: since(release, "vllm-0.31", text),
    sessionId: since(release, "vllm-0.31", text),
    lookaheadTokenIds: since(
      release,
      "vllm-0.33",
      fc.array(fc.array(count, { maxLength: 3 }), { maxLength: 3 }),
    ),
  });
}

/** A removed event that a release can have. */
export function removedOf(release: Release): fc.Arbitrary<BlockRemoved> {
  return fc.record({
    type: fc.constant("BlockRemoved" as const),
    blockHashes: hashes,
    medium: orNull(text),
    groupIdx: orNull(count),
    locality: orNull(text),
    ownership: since(release, "vllm-0.31", text),
  });
}

/** Any event that a release can have. */
export function eventOf(release: Release): fc.Arbitrary<KVCacheEvent> {
  const cleared = fc.constant<AllBlocksCleared>({ type: "AllBlocksCleared" });
  return fc.oneof(storedOf(release), removedOf(release), cleared);
}

/** Any batch that a release can have. */
export function batchOf(release: Release): fc.Arbitrary<KVEventBatch> {
  return fc.record({
    ts: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.nat()),
    events: fc.array(eventOf(release), { maxLength: 4 }),
    dataParallelRank: orNull(fc.nat(300)),
  });
}

/** An event in a form that `assert.equal` compares: hashes as a list. */
export function plain(event: KVCacheEvent): unknown {
  return "blockHashes" in event ? { ...event, blockHashes: [...event.blockHashes] } : event;
}
