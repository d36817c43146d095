export {
  type BlockFormat,
  blockFormat,
  DEFAULT_HASH_ALGORITHM,
  HASH_ALGORITHMS,
  type HashAlgorithm,
  hashLength,
  isCryptographic,
  parseHashAlgorithm,
} from "./algorithm.js";
export { BlobBlockHashes, type BlockHash, type BlockHashSequence } from "./blob-block-hashes.js";
export type { BlockHashSession } from "./block-hash-session.js";
export {
  type BlockHashWithGroupId,
  getBlockHash,
  getGroupId,
  makeBlockHashWithGroupId,
} from "./block-hash-with-group-id.js";
export { BlockHasher, type BlockHasherOptions, type HashAsyncOptions } from "./block-hasher.js";
export { cborDumps } from "./cbor.js";
export { type ExternalBlockHash, toExternalBlockHash } from "./external-block-hash.js";
export { type BlockExtraKeys, ExtraKeySource, type ExtraKeys, toEventExtraKeys } from "./extra-keys.js";
export { type Hashable, SharedText } from "./hashable.js";
export type { BlockHashKernel, HashChainInput } from "./kernel.js";
export { DEFAULT_NONE_HASH_SEED, type NoneHashSource, resolveNoneHash } from "./none-hash.js";
export { pickleDumps } from "./pickle.js";
export type { HashRequest, LoraRequest, MmFeature, PromptEmbeds, TokenIds } from "./request.js";
