import type { NativeRowPlan } from "../../native/copy-addon.js";
import { loadNative, nativeAvailable } from "../../native/load.js";
import { CODE } from "./codes.js";

/** More bytes than this no row can have: sizes of objects are signed 64-bit numbers. */
const MOST_BYTES = (1n << 63n) - 1n;

/** Where the rows of a call lie among the regions that it may touch. */
export type RowPlan = NativeRowPlan;

/**
 * Checks and measures rows by sorted regions that do not overlap; nothing is read or written. In the addon where there is
 * one.
 */
export function planRows(
  regionAddresses: BigUint64Array,
  regionSizes: BigUint64Array,
  addresses: BigUint64Array,
  sizes: BigUint64Array,
  rowOffsets: Uint32Array,
): RowPlan {
  const plan = nativeAvailable() ? loadNative().planRows : planRowsWithoutAddon;
  return plan(regionAddresses, regionSizes, addresses, sizes, rowOffsets);
}

/** `planRows` in JavaScript: the same answers, many times slower. */
export function planRowsWithoutAddon(
  regionAddresses: BigUint64Array,
  regionSizes: BigUint64Array,
  addresses: BigUint64Array,
  sizes: BigUint64Array,
  rowOffsets: Uint32Array,
): RowPlan {
  const rows = rowOffsets.length - 1;
  const plan = {
    codes: new Int32Array(rows),
    bytes: new BigUint64Array(rows),
    starts: new BigUint64Array(rows),
    segmentRanges: new Int32Array(addresses.length).fill(-1),
    used: new Uint8Array(regionAddresses.length),
  };
  for (let row = 0; row < rows; row++) {
    let bytes = 0n;
    /** Where the row's one run began, and where it has to go on; undefined once there are two. */
    let run: { readonly start: bigint; readonly end: bigint; readonly region: number } | undefined;
    let runs = 0;
    let inside = true;
    for (let i = rowOffsets[row]!; i < rowOffsets[row + 1]!; i++) {
      const address = addresses[i]!;
      const size = sizes[i]!;
      bytes += size;
      const region = regionOf(regionAddresses, regionSizes, address, size);
      if (region < 0) inside = false;
      // An empty one must lie in a region, or at its end, but is no part of a run.
      if (size === 0n) continue;
      plan.segmentRanges[i] = region;
      if (run?.end === address && run.region === region)
        run = { start: run.start, end: address + size, region };
      else {
        run = { start: address, end: address + size, region };
        runs++;
      }
    }
    if (!inside || bytes > MOST_BYTES) {
      plan.codes[row] = CODE.INVALID_PARAMS;
      continue;
    }
    plan.bytes[row] = bytes;
    if (runs === 1) plan.starts[row] = run!.start;
    for (let i = rowOffsets[row]!; i < rowOffsets[row + 1]!; i++)
      if (plan.segmentRanges[i]! >= 0) plan.used[plan.segmentRanges[i]!] = 1;
  }
  return plan;
}

/** The region in which [address, address + size) lies, or -1. */
function regionOf(starts: BigUint64Array, lengths: BigUint64Array, address: bigint, size: bigint): number {
  const at = startsUpTo(starts, address) - 1;
  return at >= 0 && address + size <= starts[at]! + lengths[at]! ? at : -1;
}

/** How many of some sorted starts are at or before `address`. */
export function startsUpTo(starts: BigUint64Array, address: bigint): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (starts[middle]! <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}
