import type { ChunkedTokenDatabase } from "../../layout/chunked-token-database.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { concatSegments } from "./segment-rows.js";

/** One object that a job stores or loads. */
export interface StoreRow {
  readonly key: string;
  readonly groupId: number;
  /** Shard of the chunk that the object holds. */
  readonly shardId: number;
  /** First token of the chunk, and the one after it. */
  readonly start: number;
  readonly end: number;
  /** The hash that names it. */
  readonly hash: Uint8Array;
}

/** Adds a row for each shard that this rank owns of a chunk. */
export function pushChunk(
  rows: StoreRow[],
  database: ChunkedTokenDatabase,
  groupId: number,
  start: number,
  end: number,
  hash: Uint8Array,
): void {
  const { storeLayout } = database;
  for (const shardId of storeLayout.localShardIds)
    rows.push({ key: storeLayout.keyFor(shardId, hash), groupId, shardId, start, end, hash });
}

/**
 * The memory of rows, which are sorted by group.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when a chunk has no block, or is none that its layout stores.
 */
export function segmentsOfRows(
  rows: readonly StoreRow[],
  databases: readonly ChunkedTokenDatabase[],
  blockIds: readonly (readonly number[])[],
): SegmentTable {
  const tables: SegmentTable[] = [];
  for (const [groupId, database] of databases.entries()) {
    const group = rows.filter((row) => row.groupId === groupId);
    if (group.length === 0) continue;
    const chunks = {
      length: group.length,
      starts: group.map(({ start }) => start),
      ends: group.map(({ end }) => end),
    };
    const shardIds = group.map(({ shardId }) => shardId);
    tables.push(database.storeLayout.prepareValues(chunks, blockIds[groupId] ?? [], shardIds));
  }
  return concatSegments(tables);
}
