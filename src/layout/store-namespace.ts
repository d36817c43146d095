import { describe } from "../errors.js";
import { checkWhole, layoutError } from "./checks.js";

/**
 * The physical order of a KV cache, outermost axis first: L layer, B block, H head, N token, C content. Mirrors
 * vLLM's `KVCacheLayout`; `LBNHC` is its default.
 */
export type KvCacheLayout = (typeof KV_CACHE_LAYOUTS)[number];

/** Every name of `KvCacheLayout`. */
export const KV_CACHE_LAYOUTS: readonly ["LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"] = [
  "LBHNC",
  "LBNHC",
  "LHBNC",
  "BLHNC",
  "BLNHC",
  "BHLNC",
];

/**
 * The key namespace of a layout that several TP sizes share: `@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc`.
 * Mirrors vLLM's `TPShardedStoreLayout.shared_namespace`.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when a size is not a whole number.
 */
export function tpSharedNamespace(storeTpSize: number, ppSize: number, storeFormat: string): string {
  checkWhole("storeTpSize", storeTpSize);
  checkWhole("ppSize", ppSize);
  return `@store_tp:${storeTpSize}@store_pp:${ppSize}@store_format:${storeFormat}`;
}

/**
 * The key namespace of a model with one KV head, which every TP rank holds a copy of: its rank-local keys, all of TP
 * rank 0, are the same for every TP size. Mirrors what vLLM's worker selects for multi-query attention.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when `ppSize` is not a whole number of 1 or more.
 */
export function tpSharedMqaNamespace(ppSize: number): string {
  checkWhole("ppSize", ppSize, 1);
  return `@store_pp:${ppSize}@store_format:tp_shared_mqa`;
}

/**
 * The key namespace of an engine that asked for sharing between TP sizes but can't have it: only engines with the
 * same TP size, PP size and cache layout meet in it. Without any such wish the namespace is empty. Mirrors what
 * vLLM's worker falls back to.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when a size is not a whole number of 1 or more, or the layout is unknown.
 */
export function rankLocalNamespace(options: {
  readonly tpSize: number;
  readonly ppSize: number;
  readonly cacheLayout: KvCacheLayout;
}): string {
  const { tpSize, ppSize, cacheLayout } = options;
  checkWhole("tpSize", tpSize, 1);
  checkWhole("ppSize", ppSize, 1);
  if (!KV_CACHE_LAYOUTS.includes(cacheLayout))
    throw layoutError(
      `cache layout ${describe(cacheLayout)} is unknown; it is one of ${KV_CACHE_LAYOUTS.join(", ")}`,
      { cacheLayout },
    );
  return `@store_pp:${ppSize}@store_format:rank_local_tp${tpSize}_layout_${cacheLayout}`;
}
