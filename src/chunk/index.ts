export { BlockHashListWithBlockSize, chunkHashesForBlockSize } from "./chunk-hashes.js";
export { ChunkSpans } from "./chunk-spans.js";
export { type ChunkOptions, type ChunkSizes, chunkSizes, chunkTokens } from "./chunk-tokens.js";
