import type { Command } from "commander";
import {
  LBHNCStoreLayout,
  LBNHCStoreLayout,
  RankLocalStoreLayout,
  type SegmentTable,
  type StoreLayout,
} from "../../layout/index.js";
import type { CommandContext } from "../command.js";
import { type LayoutDescription, readLayoutDescription } from "../input/layout-description.js";
import { parseJson, readFileOrStdin } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { TensorFinder, type TensorOffset } from "../tensor-offset.js";
import { count, printable } from "../text.js";

/** One stored object: a chunk in one shard. */
interface StoredObject {
  readonly chunk: number;
  readonly start: number;
  readonly end: number;
  readonly shardId: number;
  readonly blockId: number;
  readonly key: string | undefined;
  readonly bytes: bigint;
  readonly segments: readonly PlacedSegment[];
}

interface PlacedSegment {
  readonly address: bigint;
  readonly size: bigint;
  readonly place: TensorOffset | undefined;
}

const HELP = `
The description is a JSON object. Only geometry is read; no memory is touched. Shape and strides are in elements,
addresses and bytes are decimal texts, hex texts (0x...) or numbers below 2^53:
  {
    "layout": "tp_shared_lbhnc",                  or rank_local, tp_shared_lbnhc
    "metadata": {"model_name": "m", "store_namespace": "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc"},
    "block_size": 16, "hash_block_size": 16,      the latter optional
    "local_tp_size": 2, "tp_rank": 0,             this line and the next for shared layouts only
    "store_tp_size": 4, "num_kv_heads": 8,
    "tensors": [{"address": "0x7f0000000000", "storage_address": "0x7f0000000000", "storage_bytes": 1048576,
                 "shape": [32, 4, 16, 128], "strides": [8192, 2048, 128, 1], "element_size": 2}],
    "num_blocks": 32,
    "chunks": [[0, 16], [16, 32]],                token ranges
    "block_ids": [5, 9],                          the request's block table
    "shard_ids": [0, 1],                          optional: the shard of each chunk; else all of this rank
    "hashes": ["<hex>", "<hex>"]                  optional: one a chunk, for the keys
  }

Prints, for each object, its key and its segments: address, bytes, and where that is in which tensor.`;

/** `mooncake-kv layout` */
export function define(command: Command, context: CommandContext): void {
  command.argument("<file>", "layout description (JSON); - is stdin");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((file: string, options: JsonOption) => run(file, options, context));
}

async function run(file: string, options: JsonOption, context: CommandContext): Promise<void> {
  const input = await readFileOrStdin(context, file);
  const description = readLayoutDescription(parseJson(input), input.source);
  const layout = createLayout(description);
  layout.registerKvCaches(description.tensors, description.numBlocks);
  const ranges = { length: description.starts.length, starts: description.starts, ends: description.ends };
  const { hashes, shardIds, blockIds } = description;
  const table = layout.prepareValues(ranges, blockIds, shardIds);
  const keys =
    hashes && layout.keys({ ...ranges, hash: (i) => hashes.at(i)!, hashes: () => hashes }, shardIds);
  const objects = storedObjects(description, layout, table, (row) => keys?.at(row));
  const totals = { objects: table.length, segments: table.addresses.length, bytes: table.totalBytes() };
  if (description.config.layout !== "RankLocal" && layout.metadata.storeNamespace === "")
    await context.stderr.line(
      "mooncake-kv: warning: metadata.store_namespace is empty, but an engine with a shared layout puts one into its keys",
    );
  if (options.json) {
    const { layout: name } = description.config;
    const { localShardIds } = layout;
    const shown = Array.from(objects, objectJson);
    await context.stdout.line(
      jsonText({ layout: name, local_shard_ids: localShardIds, objects: shown, totals }),
    );
    return;
  }
  for (const object of objects) await context.stdout.lines(objectLines(object));
  await context.stdout.line(
    `${count(totals.objects, "object")}, ${count(totals.segments, "segment")}, ${totals.bytes} bytes`,
  );
}

function createLayout({ config }: LayoutDescription): StoreLayout {
  const { metadata, blockSize, hashBlockSize } = config;
  // A segment beyond every tensor is shown as such instead of refused.
  const options = { metadata, blockSize, hashBlockSize, checkBlockIds: false };
  if (config.layout === "RankLocal") return new RankLocalStoreLayout(options);
  const shared = {
    ...options,
    tpSize: config.localTpSize!,
    tpRank: config.tpRank!,
    storeTpSize: config.storeTpSize!,
    numKvHeads: config.numKvHeads!,
  };
  return config.layout === "LBHNC" ? new LBHNCStoreLayout(shared) : new LBNHCStoreLayout(shared);
}

/** The rows of a segment table with what they stand for: shards innermost unless each chunk names its own. */
function* storedObjects(
  { starts, ends, shardIds, tensors }: LayoutDescription,
  layout: StoreLayout,
  table: SegmentTable,
  keyOf: (row: number) => string | undefined,
): Generator<StoredObject> {
  const finder = new TensorFinder(tensors);
  const shards = layout.localShardIds;
  for (let row = 0; row < table.length; row++) {
    const chunk = shardIds ? row : Math.floor(row / shards.length);
    let hint = 0;
    const segments = table.row(row).map(({ address, size }) => {
      const place = finder.find(address, hint);
      // The next segment of an object is mostly in the same tensor or the next one.
      hint = place ? place.tensor + 1 : 0;
      return { address, size, place };
    });
    yield {
      chunk,
      start: starts[chunk]!,
      end: ends[chunk]!,
      shardId: shardIds ? shardIds[row]! : shards[row % shards.length]!,
      blockId: table.blockIds[row]!,
      key: keyOf(row),
      bytes: table.rowBytes(row),
      segments,
    };
  }
}

function* objectLines(object: StoredObject): Iterable<string> {
  const { chunk, start, end, shardId, blockId, key, bytes, segments } = object;
  yield `chunk ${chunk} [${start}, ${end})  shard ${shardId}  block ${blockId}  ${count(segments.length, "segment")}  ${bytes} bytes`;
  if (key !== undefined) yield `  key ${printable(key)}`;
  const width = Math.max(...segments.map(({ size }) => String(size).length));
  for (const { address, size, place } of segments)
    yield `  0x${address.toString(16).padStart(12, "0")}  ${String(size).padStart(width)}  ${
      place ? `tensor ${place.tensor} + ${place.offset}` : "in no tensor: is the block id too large?"
    }`;
}

function objectJson(object: StoredObject): Record<string, unknown> {
  const { chunk, start, end, shardId, blockId, key, bytes, segments } = object;
  return {
    chunk,
    start,
    end,
    shard_id: shardId,
    block_id: blockId,
    key: key ?? null,
    bytes,
    segments: segments.map(({ address, size, place }) => ({
      address,
      size,
      tensor: place?.tensor ?? null,
      offset: place?.offset ?? null,
    })),
  };
}
