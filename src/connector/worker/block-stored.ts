import { EventHashes } from "../../events/event-hashes.js";
import { type BlockStored, blockStored } from "../../events/kv-events.js";
import { toExternalBlockHash } from "../../hash/external-block-hash.js";
import type { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import type { ReqMeta } from "../../request/req-meta.js";
import type { TokenRange } from "./save-ledger.js";
import type { StoreRow } from "./store-rows.js";

/**
 * The blocks that a put has completed: one event a block, after all shards of it that were missing are stored. Blocks
 * that existed before are nobody's news.
 *
 * @param rows the objects that were put.
 * @param failed the positions among them that failed.
 */
export function storedBlocks(
  rows: readonly StoreRow[],
  failed: ReadonlySet<number>,
  databases: readonly ChunkedTokenDatabase[],
  job: ReqMeta,
  tokens: TokenRange | undefined,
  useIntBlockHashes: boolean,
): BlockStored[] {
  const complete = new Map<string, { readonly row: StoreRow; stored: boolean }>();
  for (const [index, row] of rows.entries()) {
    const identity = `${row.groupId}:${row.start}`;
    const block = complete.get(identity) ?? { row, stored: true };
    block.stored &&= !failed.has(index);
    complete.set(identity, block);
  }
  const external = (hash: Uint8Array) => toExternalBlockHash(hash, useIntBlockHashes);
  const events: BlockStored[] = [];
  for (const { row, stored } of complete.values()) {
    if (!stored) continue;
    const { start, end, groupId } = row;
    const { blockSize, hashBlockSize } = databases[groupId]!;
    events.push(
      blockStored({
        blockHashes: EventHashes.from([external(row.hash)]),
        parentBlockHash: start > 0 ? external(job.blockHashes[Math.floor(start / hashBlockSize) - 1]!) : null,
        tokenIds: Uint32Array.from(tokensOf(tokens, start, end)),
        blockSize,
        // Unlike the core's events, which say CPU.
        medium: "cpu",
        groupIdx: groupId,
      }),
    );
  }
  return events;
}

function tokensOf(tokens: TokenRange | undefined, start: number, end: number): readonly number[] {
  if (tokens === undefined || tokens.start > start || end > tokens.start + tokens.tokenIds.length) return [];
  return tokens.tokenIds.slice(start - tokens.start, end - tokens.start);
}
