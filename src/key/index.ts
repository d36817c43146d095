export { type KeyMetadata, type KeyMetadataInit, keyMetadata } from "./key-metadata.js";
export { type FlatKeys, KeyTable } from "./key-table.js";
export { modelBasename, modelNameWarnings } from "./model-name.js";
export {
  formatParsedKey,
  type KeyHead,
  type ParsedKey,
  type ParseKeyOptions,
  parseKey,
} from "./parse-key.js";
export { PoolKey, type RankOverrides } from "./pool-key.js";
