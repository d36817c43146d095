import { describe, MooncakeKvError } from "../../errors.js";

/** Bytes of the buffer through which an owner reads from disk. Mirrors Mooncake's `FileStorageConfig`. */
export const DEFAULT_DISK_STAGING_BUFFER_BYTES: number = 1280 * 1024 * 1024;

/** The share of that buffer that loads may fill: vLLM's default. */
export const DEFAULT_DISK_STAGING_USABLE_RATIO: number = 0.9;

const DIRECT_IO_ALIGNMENT = 4096;

/**
 * Bytes of the staging buffer that reading one object takes: its size rounded up to whole pages, and two pages more.
 * Mirrors `_estimate_disk_offload_staging_bytes`.
 */
export function estimateDiskOffloadStagingBytes(dataBytes: number): number {
  return Math.ceil(dataBytes / DIRECT_IO_ALIGNMENT) * DIRECT_IO_ALIGNMENT + 2 * DIRECT_IO_ALIGNMENT;
}

/**
 * What loads may use of a staging buffer, at least 1. Mirrors `_get_usable_disk_offload_buffer_budget_bytes`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a budget or a ratio that is no number of 0 or more.
 */
export function usableDiskOffloadBufferBudgetBytes(
  rawBudgetBytes: number,
  ratio: number = DEFAULT_DISK_STAGING_USABLE_RATIO,
): number {
  for (const [name, value] of Object.entries({ rawBudgetBytes, ratio }))
    if (!Number.isFinite(value) || value < 0)
      throw new MooncakeKvError(
        "ERR_CONFIG",
        `${name} is ${describe(value)}; it must be a number of 0 or more`,
        {
          [name]: value,
        },
      );
  return Math.max(1, Math.trunc(rawBudgetBytes * ratio));
}

/** Objects `[start, end)` of a load that fit the staging buffer together. */
export interface LoadBatch {
  readonly start: number;
  readonly end: number;
}

/** How a load is split, or the object that no split can help. */
export type DiskBatches =
  | { readonly batches: readonly LoadBatch[]; readonly oversize?: undefined }
  | { readonly oversize: number; readonly batches?: undefined };

/**
 * Splits a load, in order, into batches that fit the usable part of the staging buffer. An object above that, but within
 * the whole buffer, travels alone; one above the whole buffer makes the load impossible. Mirrors
 * `_split_disk_offload_load_batches`.
 *
 * @param dataBytes the size of each object.
 */
export function splitDiskOffloadLoadBatches(
  dataBytes: readonly number[],
  usableBudgetBytes: number,
  rawBudgetBytes: number,
): DiskBatches {
  const batches: LoadBatch[] = [];
  let start = 0;
  let bytes = 0;
  const close = (end: number) => {
    if (end > start) batches.push({ start, end });
    start = end;
    bytes = 0;
  };
  for (const [index, size] of dataBytes.entries()) {
    const needed = estimateDiskOffloadStagingBytes(size);
    if (needed > rawBudgetBytes) return { oversize: index };
    if (bytes + needed > usableBudgetBytes) close(index);
    bytes += needed;
    if (needed > usableBudgetBytes) close(index + 1);
  }
  close(dataBytes.length);
  return { batches };
}
