import {
  type KvCacheGroupSpec,
  type KvCacheSpec,
  lookupRankNamespaces,
  MooncakeStoreCoordinator,
  resolveCacheHitAlignmentTokens,
  resolveKvCacheBlockSizes,
  tpReplicationFactor,
  validateKvCacheConfig,
} from "../../coordinator/index.js";
import { describe } from "../../errors.js";
import { type KeyMetadataInit, modelBasename } from "../../key/index.js";
import {
  LBHNCStoreLayout,
  LBNHCStoreLayout,
  RankLocalStoreLayout,
  type StoreLayout,
} from "../../layout/index.js";
import { checkKeyTexts } from "../input/key-text.js";
import { UsageError } from "../usage-error.js";

/** What of an engine decides under which keys its blocks are stored. */
export interface EngineOptions {
  readonly model?: string | undefined;
  readonly modelName?: string | undefined;
  readonly cachePrefix: string;
  readonly storeNamespace?: string | undefined;
  readonly group?: readonly string[] | undefined;
  readonly tpSize: number;
  readonly ppSize: number;
  readonly pcpSize: number;
  readonly dcpSize: number;
  /** Whether speculative decoding drops the last matched block of all groups. */
  readonly eagle?: true | undefined;
  readonly numKvHeads?: number | undefined;
  readonly storeTpSize?: number | undefined;
  readonly kvCacheLayout: "LBHNC" | "LBNHC";
}

/** An engine as a lookup needs it. */
export interface LookupEngine {
  readonly coordinator: MooncakeStoreCoordinator;
  /** For each group, the key prefixes that must all hold a block. */
  readonly keyPrefixes: readonly (readonly string[])[];
}

/** The kinds of `--group`, and what its third part is. */
const KINDS: Readonly<Record<string, (blockSize: number, more: number | undefined) => KvCacheSpec>> = {
  full: (blockSize) => ({ kind: "full", blockSize }),
  mla: (blockSize) => ({ kind: "mla", blockSize }),
  rswa: (blockSize, window) => ({ kind: "rswa", blockSize, rswaWindow: needed(window, "rswa", "WINDOW") }),
  swa: (blockSize, window) => ({ kind: "swa", blockSize, slidingWindow: needed(window, "swa", "WINDOW") }),
  swa_mla: (blockSize, window) => ({
    kind: "swa_mla",
    blockSize,
    slidingWindow: needed(window, "swa_mla", "WINDOW"),
  }),
  chunked_local: (blockSize, chunk) => ({
    kind: "chunked_local",
    blockSize,
    attentionChunkSize: needed(chunk, "chunked_local", "CHUNK"),
  }),
  mamba: (blockSize) => ({ kind: "mamba", blockSize, mambaCacheMode: "align" }),
};

/** How `--group` is written. */
export const GROUP_USAGE = "KIND[:BLOCK_SIZE[:WINDOW]][+eagle]";

/**
 * Checks what can be checked before the block size of the hashes is known.
 *
 * @throws UsageError as `lookupEngine`.
 */
export function checkEngineOptions(options: EngineOptions): void {
  checkKeyTexts(options);
  for (const text of options.group ?? []) parseGroup(text, 1);
  if (options.storeTpSize !== undefined && options.storeNamespace !== undefined)
    throw new UsageError("--store-tp-size makes the namespace; leave --store-namespace out");
  if (options.storeTpSize !== undefined && (options.pcpSize > 1 || options.dcpSize > 1))
    throw new UsageError(
      "--store-tp-size is for engines without context parallelism; leave --pcp-size and --dcp-size out",
    );
}

/**
 * The engine that the options describe.
 *
 * @param blockSize tokens of one block hash, and of the blocks of a group that says nothing else.
 * @throws UsageError for options that do not fit together, MooncakeKvError for sizes that do not.
 */
export function lookupEngine(options: EngineOptions, blockSize: number): LookupEngine {
  checkEngineOptions(options);
  const { dcpSize, pcpSize, tpSize, ppSize } = options;
  const kvCacheGroups = (options.group ?? ["full"]).map((text) => parseGroup(text, blockSize));
  validateKvCacheConfig(kvCacheGroups, pcpSize);
  const sizes = {
    kvCacheGroups,
    blockSize,
    dcpWorldSize: dcpSize,
    ...(kvCacheGroups.length > 1 && { prefixMatchUnit: blockSize }),
  };
  const coordinator = MooncakeStoreCoordinator.fromKvCacheConfig({
    kvCacheGroups,
    ...resolveKvCacheBlockSizes(sizes),
    dcpWorldSize: dcpSize,
    cacheHitAlignmentTokens: resolveCacheHitAlignmentTokens(sizes),
    useEagle: options.eagle ?? false,
  });
  const keyPrefixes = coordinator.kvCacheGroups.map(({ kvCacheSpec }, groupId) => {
    const replication = tpReplicationFactor(kvCacheSpec, { tpSize, dcpSize }, options.numKvHeads ?? tpSize);
    const ranks = lookupRankNamespaces({ tpSize, ppSize, pcpSize, dcpSize }, replication);
    return layoutOf(options, groupId, kvCacheSpec.blockSize).lookupKeyPrefixes(ranks);
  });
  return { coordinator, keyPrefixes };
}

function layoutOf(options: EngineOptions, groupId: number, blockSize: number): StoreLayout {
  const { storeTpSize, ppSize, tpSize, kvCacheLayout, cachePrefix } = options;
  const metadata: KeyMetadataInit = { modelName: modelName(options), cachePrefix, groupId };
  if (storeTpSize === undefined)
    return new RankLocalStoreLayout({
      metadata: { ...metadata, storeNamespace: options.storeNamespace ?? "" },
      blockSize,
    });
  const Layout = kvCacheLayout === "LBHNC" ? LBHNCStoreLayout : LBNHCStoreLayout;
  return new Layout({
    metadata: { ...metadata, storeNamespace: Layout.sharedNamespace(storeTpSize, ppSize) },
    blockSize,
    tpSize,
    tpRank: 0,
    storeTpSize,
    numKvHeads: options.numKvHeads ?? storeTpSize,
  });
}

function modelName({ model, modelName: name }: EngineOptions): string {
  return name ?? modelBasename(model!);
}

/** What marks a group with layers of a draft model. */
const EAGLE = "+eagle";

function parseGroup(text: string, blockSize: number): KvCacheGroupSpec {
  const isEagleGroup = text.endsWith(EAGLE);
  const [kind = "", ...numbers] = (isEagleGroup ? text.slice(0, -EAGLE.length) : text).split(":");
  const [size, more] = numbers.map((number) => (/^[1-9]\d*$/.test(number) ? Number(number) : Number.NaN));
  const make = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (make === undefined || numbers.length > 2 || Number.isNaN(size ?? 1) || Number.isNaN(more ?? 1))
    throw new UsageError(
      `--group ${describe(text)}: it is written ${GROUP_USAGE}, with one of ${Object.keys(KINDS).join(", ")}`,
      { group: text },
    );
  return { kvCacheSpec: make(size ?? blockSize, more), isEagleGroup };
}

function needed(value: number | undefined, kind: string, what: string): number {
  if (value === undefined) throw new UsageError(`--group ${kind} needs ${what}: ${kind}:BLOCK_SIZE:${what}`);
  return value;
}
