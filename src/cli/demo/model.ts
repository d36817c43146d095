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
}

/** gpt-oss-20b as vLLM caches it with the hybrid manager off: one group of full attention. */
export const GPT_OSS_20B: DemoModel = {
  model: "openai/gpt-oss-20b",
  numLayers: 24,
  numKvHeads: 8,
  headSize: 64,
  dtype: "bfloat16",
  elementSize: 2,
  blockSize: 16,
};

/** The cache of one rank of an engine, head-major: the order that TP sizes can share without cutting heads. */
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
