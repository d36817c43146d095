import { describe } from "../../errors.js";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import type { ExternalBlockHash } from "../../hash/external-block-hash.js";
import { eventError } from "../errors.js";
import { EventHashes, idWords, type PromptHashes } from "../event-hashes.js";

/**
 * The ids of a prompt's hashes as pairs of 32-bit words, low half first.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for what is no list of hashes.
 */
export function promptWords(hashes: PromptHashes | readonly ExternalBlockHash[]): Uint32Array {
  if (Array.isArray(hashes)) return EventHashes.from(hashes).words;
  if (hashes instanceof BlobBlockHashes || hashes instanceof EventHashes || hashes instanceof BigUint64Array)
    return idWords(hashes);
  throw eventError(
    `the hashes are ${describe(hashes)}; a list of block hashes is expected: what BlockHasher.hash gives, EventHashes, a BigUint64Array of ids, or an array of hashes`,
    { hashes },
  );
}
