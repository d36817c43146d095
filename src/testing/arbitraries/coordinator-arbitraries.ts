import type * as FastCheck from "fast-check";
import {
  ExistenceTable,
  type KvCacheGroupSpec,
  type LayerSpec,
  type LookupResult,
  LookupSession,
  type LookupWindows,
  lookupCandidates,
  MooncakeStoreCoordinator,
  type MooncakeStoreCoordinatorOptions,
  PRESENT,
  type PrefixSearch,
} from "../../coordinator/index.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import fc from "../fast-check.js";

/** A prompt and what a store holds of it. */
export interface StoredPrompt {
  readonly options: MooncakeStoreCoordinatorOptions;
  readonly numTokens: number;
  readonly numHashes: number;
  /** `stored[group][hash]`: whether the store has that block, or whatever lies under such a key. */
  readonly stored: readonly (readonly boolean[])[];
}

/** Which prompts an arbitrary makes. */
export interface StoredPromptLimits {
  /** Whether speculative decoding may drop blocks. Default: true. */
  readonly eagle?: boolean | undefined;
  /** Whether hits may end inside a block. Default: true. */
  readonly partialHits?: boolean | undefined;
  /** Whether chunked local attention occurs. Default: true. */
  readonly chunkedLocal?: boolean | undefined;
}

/** The spec of one layer with blocks of `blockSize` tokens. */
export function layerSpec(blockSize: number, chunkedLocal: boolean = true): FastCheck.Arbitrary<LayerSpec> {
  const window = fc.integer({ min: 1, max: 5 * blockSize + 1 });
  const local = fc.integer({ min: 1, max: 4 * blockSize });
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant<LayerSpec>({ kind: "full", blockSize }) },
    fc.constant<LayerSpec>({ kind: "mla", blockSize }),
    fc.constant<LayerSpec>({ kind: "rswa", blockSize, rswaWindow: 64 }),
    {
      weight: 3,
      arbitrary: fc.tuple(fc.constantFrom("swa" as const, "swa_mla" as const), window, fc.nat(blockSize)).map(
        ([kind, slidingWindow, extraRetainedTokens]): LayerSpec => ({
          kind,
          blockSize,
          slidingWindow,
          extraRetainedTokens,
        }),
      ),
    },
    { weight: 2, arbitrary: fc.constant<LayerSpec>({ kind: "mamba", blockSize, mambaCacheMode: "align" }) },
    fc.constant<LayerSpec>({ kind: "circular", blockSize }),
    ...(chunkedLocal
      ? [
          local.map(
            (attentionChunkSize): LayerSpec => ({ kind: "chunked_local", blockSize, attentionChunkSize }),
          ),
        ]
      : []),
  );
}

/** Options of coordinators that exist: one to four groups whose sizes fit together. */
export function coordinatorOptions(
  limits: StoredPromptLimits = {},
): FastCheck.Arbitrary<MooncakeStoreCoordinatorOptions> {
  const { eagle = true, partialHits = true, chunkedLocal = true } = limits;
  const flag = (allowed: boolean) => (allowed ? fc.boolean() : fc.constant(false));
  return fc.constantFrom(1, 2, 3, 4).chain((hashBlockSize) => {
    const group = fc
      .constantFrom(1, 1, 2, 3, 4)
      .chain((factor) => layerSpec(hashBlockSize * factor, chunkedLocal))
      .chain((kvCacheSpec) =>
        flag(eagle).map((isEagleGroup): KvCacheGroupSpec => ({ kvCacheSpec, isEagleGroup })),
      );
    return fc
      .record({
        kvCacheGroups: fc.array(group, { minLength: 1, maxLength: 4 }),
        useEagle: flag(eagle),
        enablePartialHashHits: flag(partialHits),
        retention: fc.constantFrom(null, 0, 1, 2, 3),
      })
      .map(({ retention, ...options }) => {
        const schedulerBlockSize = leastCommonMultiple(
          options.kvCacheGroups.map(({ kvCacheSpec }) => kvCacheSpec.blockSize),
        );
        const retentionInterval = retention === null ? null : retention * schedulerBlockSize;
        return { ...options, hashBlockSize, schedulerBlockSize, retentionInterval };
      });
  });
}

/** Prompts of up to 48 hashes over stores that hold any blocks: none, all, a prefix, or with holes. */
export function storedPrompt(limits: StoredPromptLimits = {}): FastCheck.Arbitrary<StoredPrompt> {
  return fc.tuple(coordinatorOptions(limits), fc.nat(48), fc.nat(6)).chain(([options, numHashes, more]) => {
    const row = fc.oneof(
      fc.array(fc.boolean(), { minLength: numHashes, maxLength: numHashes }),
      fc
        .tuple(fc.nat(numHashes), fc.array(fc.nat(9), { minLength: numHashes, maxLength: numHashes }))
        .map(([prefix, draws]) => draws.map((draw, index) => index < prefix || draw > 8)),
      fc
        .array(fc.nat(9), { minLength: numHashes, maxLength: numHashes })
        .map((draws) => draws.map((draw) => draw > 0)),
      fc.constant(new Array<boolean>(numHashes).fill(true)),
    );
    const groups = options.kvCacheGroups.length;
    return fc.array(row, { minLength: groups, maxLength: groups }).map((stored) => ({
      options,
      numHashes,
      numTokens: numHashes * options.hashBlockSize + more,
      stored,
    }));
  });
}

/** What is stored as the table that a search reads. */
export function existenceOf({ options, numHashes, stored }: StoredPrompt): ExistenceTable {
  const table = ExistenceTable.filled(options.kvCacheGroups.length, numHashes);
  for (const [group, row] of stored.entries())
    for (const [index, there] of row.entries()) if (there) table.set(group, index, PRESENT);
  return table;
}

/** The table when only candidates are asked about, as a lookup does. */
export function askedExistence(prompt: StoredPrompt, coordinator: PrefixSearch): ExistenceTable {
  const table = ExistenceTable.filled(prompt.options.kvCacheGroups.length, prompt.numHashes);
  for (const { groupId, hashIndexes } of lookupCandidates(coordinator, prompt.numTokens, prompt.numHashes))
    for (const index of hashIndexes) if (prompt.stored[groupId]![index]) table.set(groupId, index, PRESENT);
  return table;
}

/** A lookup of a stored prompt in which every group is spread over `ranks` namespaces. */
export function lookupPrompt(
  prompt: StoredPrompt,
  windows: Partial<LookupWindows> = {},
  ranks: number = 1,
  coordinator: PrefixSearch = new MooncakeStoreCoordinator(prompt.options),
): { readonly result: LookupResult; readonly asked: readonly string[] } {
  const session = new LookupSession(coordinator, {
    numTokens: prompt.numTokens,
    blockHashes: promptHashes(prompt.numHashes),
    keyPrefixes: prompt.options.kvCacheGroups.map((_, group) =>
      Array.from({ length: ranks }, (_, rank) => `${rank}/${group}`),
    ),
    windows,
  });
  const asked: string[] = [];
  for (;;) {
    const step = session.next();
    if (step.result !== undefined) return { result: step.result, asked };
    const keys = step.ask.toArray();
    asked.push(...keys);
    session.answer(keys.map((key) => (isStored(prompt, key) ? 1 : 0)));
  }
}

/** Hashes of one byte; hash i is the byte i. */
export function promptHashes(count: number): BlobBlockHashes {
  return new BlobBlockHashes(
    Uint8Array.from({ length: count }, (_, index) => index),
    1,
  );
}

function isStored({ stored }: StoredPrompt, key: string): boolean {
  const [, group, hash] = /^\d+\/(\d+)@([0-9a-f]{2})$/.exec(key)!;
  return stored[Number(group)]![Number.parseInt(hash!, 16)]!;
}

function leastCommonMultiple(sizes: readonly number[]): number {
  const largest = Math.max(...sizes);
  let multiple = largest;
  while (sizes.some((size) => multiple % size !== 0)) multiple += largest;
  return multiple;
}
