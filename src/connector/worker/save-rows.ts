import type { MooncakeStoreCoordinator } from "../../coordinator/mooncake-store-coordinator.js";
import type { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { NULL_BLOCK_ID } from "../null-block.js";
import type { DueChunks } from "./save-ledger.js";
import { pushChunk, type StoreRow } from "./store-rows.js";

/** How a rank stores. */
export interface SaveGroups {
  readonly coordinator: MooncakeStoreCoordinator;
  readonly databases: readonly ChunkedTokenDatabase[];
  /** How many ranks share the work on each group. */
  readonly putSteps: readonly number[];
  readonly tpRank: number;
}

/** What a job has to store on one rank. */
export interface SaveRows {
  /** Sorted by group, then by token. */
  readonly rows: readonly StoreRow[];
  /** Chunks that have no source block in this job. */
  readonly due: DueChunks;
}

/**
 * The objects of the tokens `[start, tokenLen)` that are worth storing and that this rank is to store, and those of the
 * chunks that were due from earlier jobs. Ranks that hold the same bytes take turns, chunk by chunk; the turn begins at
 * another rank in every group.
 *
 * A chunk whose block is missing or null can't be stored now. It stays due: should a later job have its block, that job
 * stores it. vLLM moves on for good, and a hole in the middle of a prompt caps every later hit.
 *
 * @throws MooncakeKvError `ERR_CHUNK` or `ERR_LOOKUP` when the job has fewer hashes than tokens.
 */
export function saveRows(
  { coordinator, databases, putSteps, tpRank }: SaveGroups,
  job: ReqMeta,
  start: number,
  tokenLen: number,
  dueBefore: DueChunks,
): SaveRows {
  const masks = coordinator.storeMask(tokenLen, start, job.prefillEndTokens);
  const rows: StoreRow[] = [];
  const due = databases.map((database, groupId) => {
    const { blockSize, hashBlockSize } = database;
    const putStep = putSteps[groupId]!;
    const chunkMask = masks[groupId];
    const chunks = database.chunks(tokenLen, job.blockHashes, {
      maskNum: start,
      putStep,
      putStepRank: (tpRank + groupId) % putStep,
      ...(chunkMask && { chunkMask }),
    });
    const blockIds = job.blockIds[groupId] ?? [];
    const missing: number[] = [];
    const add = (chunk: number, from: number, to: number, hash: Uint8Array | undefined) => {
      const blockId = blockIds[chunk];
      if (blockId === undefined || blockId === NULL_BLOCK_ID || hash === undefined) missing.push(chunk);
      else pushChunk(rows, database, groupId, from, to, hash);
    };
    for (const chunk of dueBefore[groupId] ?? []) {
      const end = (chunk + 1) * blockSize;
      add(chunk, end - blockSize, end, job.blockHashes[end / hashBlockSize - 1]);
    }
    for (let i = 0; i < chunks.length; i++) {
      const from = chunks.starts[i]!;
      add(from / blockSize, from, chunks.ends[i]!, chunks.hash(i));
    }
    return missing;
  });
  return { rows, due };
}
