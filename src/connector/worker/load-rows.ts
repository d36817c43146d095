import type { MooncakeStoreCoordinator } from "../../coordinator/mooncake-store-coordinator.js";
import type { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { requestError } from "../../request/checks.js";
import type { LoadSpec } from "../../request/load-spec.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { concatSegments, rotated, sliceSegments } from "./segment-rows.js";
import { pushChunk, type StoreRow, segmentsOfRows } from "./store-rows.js";

/** How a rank loads. */
export interface LoadGroups {
  readonly coordinator: MooncakeStoreCoordinator;
  readonly databases: readonly ChunkedTokenDatabase[];
  readonly tpRank: number;
}

/** What a load reads, in the order in which it is asked for. */
export interface LoadPlan {
  readonly keys: readonly string[];
  /** Row i is the memory of key i, and says its block. */
  readonly segments: SegmentTable;
}

/**
 * The objects that fill the blocks of a hit: those that each group needs, from the end of what the engine has itself. A
 * hit may end inside a block that was stored under another hash; the lookup says which. Each rank begins at another
 * object, so that not all of them read the same one at once.
 *
 * @throws MooncakeKvError `ERR_LOOKUP`, `ERR_CHUNK`, `ERR_REQUEST` or `ERR_LAYOUT` when hashes or blocks of the request do not reach as
 * far as the hit.
 */
export function loadPlan(
  { coordinator, databases, tpRank }: LoadGroups,
  job: ReqMeta,
  spec: LoadSpec,
): LoadPlan {
  const tokenLen = spec.kvpoolCachedTokens;
  const { schedulerBlockSize } = coordinator;
  const maskNum = spec.vllmCachedTokens - (spec.vllmCachedTokens % schedulerBlockSize);
  const masks = coordinator.loadMask(job.blockHashes.length, tokenLen);
  const tails = new Map(spec.tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]));
  const rows: StoreRow[] = [];
  for (const [groupId, database] of databases.entries()) {
    const { blockSize, hashBlockSize } = database;
    const chunks = database.chunks(tokenLen, job.blockHashes, { maskNum });
    for (let i = 0; i < chunks.length; i++) {
      const start = chunks.starts[i]!;
      const end = chunks.ends[i]!;
      if (masks[groupId]![start / blockSize] !== 1) continue;
      const tail = end === tokenLen ? tails.get(groupId) : undefined;
      const hash =
        tail === undefined ? chunks.hash(i) : job.blockHashes[Math.floor(tail / hashBlockSize) - 1];
      if (hash === undefined)
        throw requestError(
          `request ${job.reqId} has no hash for its tail at ${tail} tokens; it has ${job.blockHashes.length}`,
          { reqId: job.reqId, groupId, numTokens: tail },
        );
      pushChunk(rows, database, groupId, start, end, hash);
    }
  }
  const segments = segmentsOfRows(rows, databases, job.blockIds);
  const offset = rows.length === 0 ? 0 : tpRank % rows.length;
  return {
    keys: rotated(
      rows.map(({ key }) => key),
      offset,
    ),
    segments: rotatedSegments(segments, offset),
  };
}

function rotatedSegments(table: SegmentTable, offset: number): SegmentTable {
  return offset === 0
    ? table
    : concatSegments([sliceSegments(table, offset, table.length), sliceSegments(table, 0, offset)]);
}
