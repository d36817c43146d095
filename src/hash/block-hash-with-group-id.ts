import { describe } from "../errors.js";
import type { BlockHash } from "./blob-block-hashes.js";
import { hashError } from "./hash-error.js";

/**
 * A block hash and a 4-byte big-endian group id in one. vLLM's `BlockHashWithGroupId`: the key of its own GPU prefix
 * cache, never part of a Mooncake key.
 */
export type BlockHashWithGroupId = Uint8Array;

/** Joins the two. @throws MooncakeKvError `ERR_HASH` for a group id outside [0, 2^32). */
export function makeBlockHashWithGroupId(blockHash: BlockHash, groupId: number): BlockHashWithGroupId {
  if (!Number.isInteger(groupId) || groupId < 0 || groupId > 0xffff_ffff)
    throw hashError(`group id ${describe(groupId)} is not a whole number of 0 to 2^32 - 1`, {
      groupId,
    });
  const key = new Uint8Array(blockHash.length + 4);
  key.set(blockHash);
  new DataView(key.buffer).setUint32(blockHash.length, groupId, false);
  return key;
}

/** The block hash of a joined key. @throws MooncakeKvError `ERR_HASH` when the key is shorter than a group id. */
export function getBlockHash(key: BlockHashWithGroupId): BlockHash {
  return checked(key).subarray(0, key.length - 4);
}

/** The group id of a joined key. @throws MooncakeKvError `ERR_HASH` when the key is shorter than a group id. */
export function getGroupId(key: BlockHashWithGroupId): number {
  return new DataView(checked(key).buffer, key.byteOffset, key.length).getUint32(key.length - 4, false);
}

function checked(key: BlockHashWithGroupId): BlockHashWithGroupId {
  if (key.length < 4) throw hashError(`${key.length} bytes are too few for a block hash with its group id`);
  return key;
}
