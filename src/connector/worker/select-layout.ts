import type { KvCacheGroupSpec } from "../../coordinator/spec/kv-cache-spec.js";
import { leastCommonMultiple } from "../../coordinator/spec/multiples.js";
import {
  type KvCacheLayout,
  rankLocalNamespace,
  tpSharedMqaNamespace,
  tpSharedNamespace,
} from "../../layout/store-namespace.js";
import { pythonText } from "../../python-text.js";

/** How blocks become objects. */
export interface SelectedLayout {
  /** What the keys carry, so that only engines with the same format meet. */
  readonly namespace: string;
  /** Set where several TP sizes share objects. */
  readonly shared: { readonly storeTpSize: number; readonly cacheLayout: "LBHNC" | "LBNHC" } | undefined;
}

/** What the choice depends on. */
export interface LayoutChoice {
  /** vLLM's `kv_connector_extra_config`. */
  readonly extraConfig: Readonly<Record<string, unknown>>;
  /** The store's groups. */
  readonly groups: readonly KvCacheGroupSpec[];
  readonly cacheLayout: KvCacheLayout;
  /** KV heads of the whole model. */
  readonly numKvHeads: number;
  readonly tpSize: number;
  readonly ppSize: number;
  readonly pcpSize: number;
  readonly dcpSize: number;
}

/**
 * The number of shards that engines of different TP sizes agree on: `store_tp_size`, or with `enable_store_tp_lcm` the
 * least common multiple of `prefill_tp_sizes`. Undefined where none is asked for, and for a value that is no positive
 * whole number: engines with such a value do not share. Mirrors `resolve_store_tp_size`.
 *
 * vLLM's Python tells 4 from 4.0, and refuses the latter; in JavaScript they are one number, and accepted.
 */
export function resolveStoreTpSize(extraConfig: Readonly<Record<string, unknown>>): number | undefined {
  if (extraConfig["enable_store_tp_lcm"] !== true)
    return isPositive(extraConfig["store_tp_size"]) ? extraConfig["store_tp_size"] : undefined;
  const sizes: unknown = extraConfig["prefill_tp_sizes"];
  if (!Array.isArray(sizes) || sizes.length === 0 || !sizes.every(isPositive)) return undefined;
  return sizes.reduce(leastCommonMultiple);
}

/**
 * How an engine stores its groups. One format for several TP sizes needs one full-attention group without context
 * parallelism, a cache layout that keeps heads together, and numbers that divide. An engine that asked for sharing and
 * can't have it gets a namespace of its own kind, so that nobody reads its objects as something else. Mirrors
 * `_select_store_layout`.
 */
export function selectStoreLayout(choice: LayoutChoice): SelectedLayout {
  const { extraConfig, cacheLayout, tpSize, ppSize, numKvHeads } = choice;
  const asked = extraConfig["enable_store_tp_lcm"] === true || extraConfig["store_tp_size"] != null;
  if (!asked) return { namespace: "", shared: undefined };
  const storeTpSize = resolveStoreTpSize(extraConfig);
  if (
    storeTpSize !== undefined &&
    storeTpSize % tpSize === 0 &&
    (cacheLayout === "LBHNC" || cacheLayout === "LBNHC") &&
    canShard(choice)
  ) {
    if (numKvHeads % storeTpSize === 0) {
      const format = cacheLayout === "LBHNC" ? "tp_shared_lbhnc" : "tp_shared_lbnhc";
      return {
        namespace: tpSharedNamespace(storeTpSize, ppSize, format),
        shared: { storeTpSize, cacheLayout },
      };
    }
    if (numKvHeads === 1) return { namespace: tpSharedMqaNamespace(ppSize), shared: undefined };
  }
  return { namespace: rankLocalNamespace({ tpSize, ppSize, cacheLayout }), shared: undefined };
}

function canShard({ extraConfig, groups, pcpSize, dcpSize }: LayoutChoice): boolean {
  const crossLayers = pythonText(extraConfig["enable_cross_layers_blocks"] ?? false).toLowerCase() === "true";
  return (
    pcpSize === 1 &&
    dcpSize === 1 &&
    groups.length === 1 &&
    groups[0]!.kvCacheSpec.kind === "full" &&
    !crossLayers
  );
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
