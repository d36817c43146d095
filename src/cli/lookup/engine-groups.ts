import { selectStoreLayout } from "../../connector/index.js";
import {
  lookupRankNamespaces,
  type MooncakeStoreCoordinator,
  tpReplicationFactor,
} from "../../coordinator/index.js";
import { modelBasename } from "../../key/index.js";
import {
  LBHNCStoreLayout,
  LBNHCStoreLayout,
  RankLocalStoreLayout,
  type StoreLayout,
} from "../../layout/index.js";
import { checkKeyTexts } from "../input/key-text.js";
import { MOST_RANKS } from "../options.js";
import { UsageError } from "../usage-error.js";
import { type EngineShape, engineShape, type ShapeOptions } from "./engine-shape.js";

/** What of an engine decides under which keys its blocks are stored. */
export interface EngineOptions extends ShapeOptions {
  readonly model?: string | undefined;
  readonly modelName?: string | undefined;
  readonly cachePrefix: string;
  readonly storeNamespace?: string | undefined;
  readonly tpSize: number;
  readonly ppSize: number;
  readonly numKvHeads?: number | undefined;
  readonly storeTpSize?: number | undefined;
  readonly kvCacheLayout: "LBHNC" | "LBNHC";
}

/** An engine as a lookup needs it. */
export interface LookupEngine extends EngineShape {
  readonly coordinator: MooncakeStoreCoordinator;
  /** For each group, the key prefixes that must all hold a block. */
  readonly keyPrefixes: readonly (readonly string[])[];
}

/**
 * The engine that the options describe.
 *
 * @param hashed tokens of one hash, where hashes came in that say so.
 * @throws UsageError for options that do not fit together, MooncakeKvError for sizes that do not.
 */
export function lookupEngine(options: EngineOptions, hashed?: number): LookupEngine {
  checkKeyTexts(options);
  checkRanks(options);
  const shape = engineShape(options, hashed);
  const { dcpSize, pcpSize, tpSize, ppSize, storeTpSize } = options;
  const numKvHeads = options.numKvHeads ?? Math.max(tpSize, storeTpSize ?? 1);
  const groups = shape.coordinator.kvCacheGroups;
  // Where an engine can't have the shared format that it was told to have, it has one of its own.
  const { namespace, shared } = selectStoreLayout({
    extraConfig: storeTpSize === undefined ? {} : { store_tp_size: storeTpSize },
    groups,
    cacheLayout: options.kvCacheLayout,
    ...{ numKvHeads, tpSize, ppSize, pcpSize, dcpSize },
  });
  const { model, modelName = modelBasename(model!), cachePrefix, storeNamespace = namespace } = options;
  const layoutOf = (groupId: number, blockSize: number): StoreLayout => {
    const own = { metadata: { modelName, cachePrefix, storeNamespace, groupId }, blockSize };
    if (shared === undefined) return new RankLocalStoreLayout(own);
    const Layout = shared.cacheLayout === "LBHNC" ? LBHNCStoreLayout : LBNHCStoreLayout;
    return new Layout({ ...own, tpSize, tpRank: 0, storeTpSize: shared.storeTpSize, numKvHeads });
  };
  const keyPrefixes = groups.map(({ kvCacheSpec }, groupId) => {
    const replication = tpReplicationFactor(kvCacheSpec, { tpSize, dcpSize }, numKvHeads);
    const ranks = lookupRankNamespaces({ tpSize, ppSize, pcpSize, dcpSize }, replication);
    return layoutOf(groupId, kvCacheSpec.blockSize).lookupKeyPrefixes(ranks);
  });
  return { ...shape, keyPrefixes };
}

function checkRanks(options: EngineOptions): void {
  const { tpSize, ppSize, pcpSize, dcpSize } = options;
  if (options.storeTpSize !== undefined && options.storeNamespace !== undefined)
    throw new UsageError("--store-tp-size makes the namespace; leave --store-namespace out");
  if (tpSize % dcpSize !== 0)
    throw new UsageError(
      `--dcp-size ${dcpSize} does not divide --tp-size ${tpSize}: decode context parallelism divides the tensor-parallel ranks`,
      { tpSize, dcpSize },
    );
  const ranks = tpSize * ppSize * pcpSize;
  if (ranks > MOST_RANKS)
    throw new UsageError(
      `--tp-size ${tpSize}, --pp-size ${ppSize} and --pcp-size ${pcpSize} make ${ranks} ranks; ${MOST_RANKS} is the most`,
      { ranks },
    );
}
