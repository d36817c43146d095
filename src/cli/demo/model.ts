import type { KvCacheGroupSpec } from "../../coordinator/spec/kv-cache-spec.js";
import type { KvCacheShape } from "../../layout/kv-cache-tensors.js";

/** What of a model decides how its KV cache looks. */
export interface DemoModel {
  /** Path as an engine is given it. */
  readonly model: string;
  readonly numLayers: number;
  /** KV heads of the whole model. */
  readonly numKvHeads: number;
  readonly headSize: number;
  readonly dtype: string;
  readonly elementSize: number;
  readonly blockSize: number;
  /** Tokens that every other layer, from the first on, attends to; the layers between them attend to all. */
  readonly slidingWindow: number;
}

/** gpt-oss-20b. */
export const GPT_OSS_20B: DemoModel = {
  model: "openai/gpt-oss-20b",
  numLayers: 24,
  numKvHeads: 8,
  headSize: 64,
  dtype: "bfloat16",
  elementSize: 2,
  blockSize: 16,
  slidingWindow: 128,
};

/**
 * The cache of one rank of an engine with vLLM's hybrid manager off: one group of full attention. Head-major, the order
 * that TP sizes can share without cutting heads.
 */
export function rankCacheShape(model: DemoModel, tpSize: number, numBlocks: number): KvCacheShape {
  return {
    layout: "LBHNC",
    numLayers: model.numLayers,
    numBlocks,
    numHeads: model.numKvHeads / tpSize,
    blockSize: model.blockSize,
    contentSize: 2 * model.headSize,
    elementSize: model.elementSize,
  };
}

/** Position of the sliding layers' group in `hybridCacheGroups`. */
export const SLIDING_GROUP: 0 = 0;
/** Position of the other layers' group there. */
export const FULL_GROUP: 1 = 1;

/** The cache groups with vLLM's hybrid manager on: half of the layers each. */
export function hybridCacheGroups(model: DemoModel): readonly KvCacheGroupSpec[] {
  const { blockSize, slidingWindow } = model;
  return [
    { kvCacheSpec: { kind: "swa", blockSize, slidingWindow } },
    { kvCacheSpec: { kind: "full", blockSize } },
  ];
}

/**
 * The cache of one rank with the hybrid manager on: both groups take their blocks from one pool, so tensor i holds layer
 * 2 i in the blocks of the sliding group, and layer 2 i + 1 in those of the full one.
 */
export function hybridCacheShape(model: DemoModel, tpSize: number, numBlocks: number): KvCacheShape {
  return { ...rankCacheShape(model, tpSize, numBlocks), numLayers: model.numLayers / 2 };
}
