import type { BlockRows } from "./block-rows.js";
import { layoutError } from "./checks.js";
import { type BlockIdColumn, SegmentTable } from "./segment-table.js";
import { fillAddresses, fillSizes, highestAddress, type SegmentTemplates } from "./segment-templates.js";

/**
 * One row a chunk and shard, shards innermost. `templates` has the shards' templates one after the other, `shards`
 * lists of one length; `highest` is the highest address.
 */
export function segmentsOfAllShards(
  rows: BlockRows,
  templates: SegmentTemplates,
  shards: number,
  highest: bigint,
): SegmentTable {
  const chunks = rows.ids.length;
  const segments = templates.bases.length;
  const addresses = new BigUint64Array(chunks * segments);
  const sizes = new BigUint64Array(chunks * segments);
  fillAddresses(addresses, rows.ids, templates, highest);
  fillSizes(sizes, templates.sizes);
  const blockIds = columnFor(rows.maxBlockId, chunks * shards);
  if (shards === 1) blockIds.set(rows.blockIds);
  else
    for (let row = 0; row < blockIds.length; row++) blockIds[row] = rows.blockIds[Math.floor(row / shards)]!;
  return new SegmentTable(addresses, sizes, evenRows(blockIds.length, segments / shards), blockIds);
}

/** One row a chunk: that of shard `localShards[i]`, counted among the shards of `templates`, each `width` long. */
export function segmentsOfOneShard(
  rows: BlockRows,
  templates: SegmentTemplates,
  width: number,
  localShards: Uint32Array,
): SegmentTable {
  const addresses = new BigUint64Array(localShards.length * width);
  const sizes = new BigUint64Array(localShards.length * width);
  const { bases, strides } = templates;
  for (let row = 0; row < localShards.length; row++) {
    const id = rows.ids[row]!;
    const first = localShards[row]! * width;
    sizes.set(templates.sizes.subarray(first, first + width), row * width);
    for (let j = 0; j < width; j++) {
      const offset = BigInt.asUintN(64, id * strides[first + j]!);
      addresses[row * width + j] = BigInt.asUintN(64, bases[first + j]! + offset);
    }
  }
  const blockIds = columnFor(rows.maxBlockId, localShards.length);
  blockIds.set(rows.blockIds);
  return new SegmentTable(addresses, sizes, evenRows(localShards.length, width), blockIds);
}

/** A table without rows. */
export function noSegments(): SegmentTable {
  return SegmentTable.fromRows([]);
}

/**
 * The highest address of the rows; below `end`, so that the arithmetic of the fast loops can't wrap.
 *
 * @throws MooncakeKvError `ERR_LAYOUT` when an address would reach `end`.
 */
export function checkedHighest(templates: SegmentTemplates, { maxBlockId }: BlockRows, end: bigint): bigint {
  const address = highestAddress(templates, maxBlockId);
  if (address >= end)
    throw layoutError(
      `block ${maxBlockId} would lie at address ${address}, which is not below ${end}; the block id or a base address is wrong`,
      { blockId: maxBlockId, address, end },
    );
  return address;
}

function columnFor(maxBlockId: number, rows: number): BlockIdColumn {
  return maxBlockId < 2 ** 31 ? new Int32Array(rows) : new Float64Array(rows);
}

function evenRows(rows: number, width: number): Uint32Array {
  const offsets = new Uint32Array(rows + 1);
  for (let row = 0; row <= rows; row++) offsets[row] = row * width;
  return offsets;
}
