import { BlockIndex } from "../../events/block-index/block-index.js";
import type { BlockIndexEngineInit, BlockIndexGroupInit } from "../../events/block-index/engine-config.js";
import { decodeEventBatch } from "../../events/decode-batch.js";
import { EventHashes } from "../../events/event-hashes.js";
import type { Release } from "../../release.js";
import { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue, VectorContext, VectorHandlers } from "./handler.js";
import { bytes, isObject, list, number, object, optionalNumber, optionalText, text } from "./json.js";

/** What a life says of its engines: with the groups, or only what no event tells. */
export function readIndexedEngine(
  input: JsonObject,
  release: Release,
  withGroups: boolean,
): BlockIndexEngineInit {
  const sizes = object(input, "group_block_sizes");
  const groups = list<JsonObject>(input, "groups");
  const numbered = [...groups.entries()];
  const offload = input["offload"];
  return {
    release,
    eagle: input["use_eagle"] === true,
    offloadChunkBlocks: isObject(offload) ? number(offload, "blocks_per_chunk") : undefined,
    ...(withGroups
      ? { groups: groups.map((group, index) => readGroup(group, number(sizes, String(index)))) }
      : {
          eagleGroups: numbered
            .filter(([, group]) => group["is_eagle_group"] === true)
            .map(([index]) => index),
          chunkSizes: new Map(
            numbered.flatMap(([index, group]) => {
              const size = optionalNumber(group, "attention_chunk_size");
              return size === undefined ? [] : [[index, size] as const];
            }),
          ),
        }),
  };
}

function readGroup(group: JsonObject, blockSize: number): BlockIndexGroupInit {
  return {
    kind: text(group, "kind") as BlockIndexGroupInit["kind"],
    blockSize,
    slidingWindow: optionalNumber(group, "sliding_window"),
    attentionChunkSize: optionalNumber(group, "attention_chunk_size"),
    mambaCacheMode: optionalText(group, "mamba_cache_mode") as "align" | undefined,
    isEagleGroup: group["is_eagle_group"] === true,
  };
}

/** What an index that follows the events of a life answers to its questions: tokens, one number a question. */
export function indexAnswers(input: JsonObject, release: Release, withGroups: boolean): number[] {
  const index = new BlockIndex({ blockSize: number(input, "block_size"), capacity: 2 ** 16 });
  const steps = list<JsonObject>(input, "steps");
  const engines = new Set(steps.map(engineOf));
  for (const engine of engines) index.engine(engine, readIndexedEngine(input, release, withGroups));
  const answers: number[] = [];
  let sequence = 0n;
  for (const step of steps) {
    const engine = engineOf(step);
    if (step["events"] !== undefined) {
      const batch = decodeEventBatch(bytes(text(step, "events")));
      index.applyMessage(engine, { kind: "batch", sequence: sequence++, topic: "", batch, replayed: false });
      continue;
    }
    const hashes = EventHashes.from(list<string>(step, "ask").map(bytes));
    const [match] = index.match(hashes, { media: mediaOf(step), engines: [engine] });
    answers.push(match?.tokens ?? 0);
  }
  return answers;
}

/** A question without a medium is one to the engine's own cache. */
function mediaOf({ media = "GPU" }: JsonObject): string[] {
  return Array.isArray(media) ? (media as string[]) : [media as string];
}

function engineOf({ engine = 0 }: JsonObject): string {
  return `engine ${String(engine)}`;
}

/**
 * Where blocks are announced again and again (`kv_cache_report_mode: "full"`) events don't determine the answers: there
 * an answer of another number is a deviation.
 */
function kvIndex(input: JsonObject, { release, recorded }: VectorContext): JsonValue | Deviation {
  const answers = indexAnswers(input, release, true);
  const same = JSON.stringify(answers) === JSON.stringify(recorded.expected);
  return input["report_mode"] === true && !same && answers.length === (recorded.expected as number[])?.length
    ? new Deviation("report-mode", answers, answers)
    : answers;
}

/** The op of kv_index.jsonl. */
export const eventIndexHandlers: VectorHandlers = { kv_index: kvIndex };
