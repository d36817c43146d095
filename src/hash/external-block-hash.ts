import type { BlockHash } from "./blob-block-hashes.js";

/** A block hash as KV events carry it: the whole hash, or its last 64 bits as an unsigned integer. */
export type ExternalBlockHash = Uint8Array | bigint;

/**
 * A block hash in the form that an engine publishes. Mirrors vLLM's `maybe_convert_block_hash`.
 *
 * @param useIntBlockHashes the engine's VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES; it is on unless switched off.
 */
export function toExternalBlockHash(
  blockHash: BlockHash,
  useIntBlockHashes: boolean = true,
): ExternalBlockHash {
  if (!useIntBlockHashes) return blockHash;
  let value = 0n;
  for (const byte of blockHash.subarray(Math.max(0, blockHash.length - 8)))
    value = (value << 8n) | BigInt(byte);
  return value;
}
