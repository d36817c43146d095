import { decodeEventBatch } from "../../events/decode-batch.js";
import { encodeEventBatch } from "../../events/encode-batch.js";
import { isBindEndpoint, offsetEndpointPort } from "../../events/endpoint.js";
import { EventHashes } from "../../events/event-hashes.js";
import { EventLog, sequenceFrame } from "../../events/event-log.js";
import { KvEventQuorum, MooncakeStoreKVEvents } from "../../events/kv-event-aggregator.js";
import {
  type BlockStored,
  blockRemoved,
  blockStored,
  type ExtraKey,
  type KVCacheEvent,
  type KVEventBatch,
} from "../../events/kv-events.js";
import { type ExternalBlockHash, toExternalBlockHash } from "../../hash/external-block-hash.js";
import type { JsonObject, JsonValue, VectorContext, VectorHandlers } from "./handler.js";
import { bytes, hex, isObject, list, number, object, optionalNumber, optionalText, text } from "./json.js";

/** A hash as vectors write it: a decimal text, or `{"bytes": hex}`. */
function readHash(value: JsonValue): ExternalBlockHash {
  return isObject(value) ? bytes(text(value, "bytes")) : BigInt(value as string);
}

function shownHash(hash: ExternalBlockHash): JsonValue {
  return typeof hash === "bigint" ? String(hash) : { bytes: hex(hash) };
}

function readExtraKey(value: JsonValue): ExtraKey {
  if (isObject(value)) return bytes(text(value, "bytes"));
  return Array.isArray(value) ? value.map(readExtraKey) : (value as string | number | null);
}

/** An event of a vector. */
export function readEvent(input: JsonObject): KVCacheEvent {
  const type = optionalText(input, "type") ?? "BlockStored";
  if (type === "AllBlocksCleared") return { type };
  const common = {
    blockHashes: EventHashes.from(list(input, "block_hashes").map(readHash)),
    medium: optionalText(input, "medium") ?? null,
    groupIdx: optionalNumber(input, "group_idx") ?? null,
    locality: optionalText(input, "locality") ?? null,
    ownership: optionalText(input, "ownership") ?? null,
  };
  if (type === "BlockRemoved") return blockRemoved(common);
  const { parent_block_hash: parent = null, extra_keys: extraKeys, lookahead_token_ids: lookahead } = input;
  return blockStored({
    ...common,
    parentBlockHash: parent === null ? null : readHash(parent),
    tokenIds: Uint32Array.from(list<number>(input, "token_ids")),
    blockSize: number(input, "block_size"),
    loraId: optionalNumber(input, "lora_id") ?? null,
    loraName: optionalText(input, "lora_name") ?? null,
    extraKeys: (extraKeys as readonly JsonValue[] | undefined)?.map(readExtraKey) as never,
    kvCacheSpecKind: optionalText(input, "kv_cache_spec_kind") ?? null,
    kvCacheSpecSlidingWindow: optionalNumber(input, "kv_cache_spec_sliding_window") ?? null,
    sessionId: optionalText(input, "session_id") ?? null,
    lookaheadTokenIds: (lookahead as number[][] | undefined) ?? null,
  });
}

/** A batch of a vector. */
export function readBatch(input: JsonObject): KVEventBatch {
  return {
    ts: number(input, "ts"),
    events: list<JsonObject>(input, "events").map(readEvent),
    dataParallelRank: optionalNumber(input, "data_parallel_rank") ?? null,
  };
}

/** Encodes, and makes sure that what was encoded is read back and encoded again to the same bytes. */
function encodeBatch(input: JsonObject, { release }: VectorContext): JsonValue {
  const encoded = hex(encodeEventBatch(readBatch(input), { release }));
  const again = hex(encodeEventBatch(decodeEventBatch(bytes(encoded)), { release }));
  return again === encoded ? { bytes: encoded } : { bytes: encoded, "after decoding": again };
}

/** The endpoint of a publish vector before its rank was added: the input lacks it, so what was recorded is taken back. */
function publishEndpoint({ recorded }: VectorContext, dataParallelRank: number): string {
  const endpoint = isObject(recorded.expected) ? text(recorded.expected, "endpoint") : "";
  const suffix = dataParallelRank > 0 ? `_dp${dataParallelRank}` : "";
  return endpoint.endsWith(suffix) ? endpoint.slice(0, endpoint.length - suffix.length) : endpoint;
}

function publish(input: JsonObject, context: VectorContext): JsonValue {
  const dataParallelRank = number(input, "data_parallel_rank");
  const log = new EventLog({
    release: context.release,
    topic: text(input, "topic"),
    dataParallelRank,
    bufferSteps: number(input, "buffer_steps"),
  });
  const frames = list<JsonObject>(input, "batches").map((batch) => log.publish(readBatch(batch)).map(hex));
  const start = sequenceFrame(BigInt(number(input, "replay_from")));
  return {
    endpoint: offsetEndpointPort(publishEndpoint(context, dataParallelRank), dataParallelRank),
    frames,
    replay_frames_at_dealer: Array.from(log.replay(start), (message) => message.map(hex)),
  };
}

type ShortEvent = readonly [hash: number, group: number];

function shortEvent([hash, groupIdx]: ShortEvent): KVCacheEvent {
  return blockStored({ blockHashes: EventHashes.from([BigInt(hash)]), blockSize: 1, groupIdx });
}

function shownEvent(event: KVCacheEvent): ShortEvent {
  const { blockHashes, groupIdx } = event as BlockStored;
  return [Number(blockHashes.ids[0]), groupIdx ?? 0];
}

function quorum(input: JsonObject): JsonValue {
  const factors = list<number>(input, "group_tp_replication_factors");
  const engine = new KvEventQuorum();
  return {
    polls: list<readonly (readonly ShortEvent[] | null)[]>(input, "polls").map((poll) => {
      const published = engine.poll(
        poll.map((events) => {
          if (events === null) return null;
          const container = new MooncakeStoreKVEvents(1, factors);
          container.addEvents(events.map(shortEvent));
          return container;
        }),
      );
      const kept = engine.pending?.getAllEvents().map(shownEvent);
      kept?.sort(([a, b], [c, d]) => a - c || b - d);
      return {
        published: published.map(shownEvent),
        kept: kept ?? null,
        kept_workers: engine.pending?.numWorkers ?? null,
      };
    }),
  };
}

/** The ops of kv_events.jsonl, but for `worker_events`, which needs a whole worker. */
export const eventsHandlers: VectorHandlers = {
  convert_block_hash: (input) => {
    const useInts = object(input, "env")["VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES"] !== "0";
    return { value: shownHash(toExternalBlockHash(bytes(text(input, "hash")), useInts)) };
  },
  encode_batch: encodeBatch,
  publish,
  offset_endpoint: (input) => {
    const endpoint = offsetEndpointPort(text(input, "endpoint"), number(input, "data_parallel_rank"));
    return { endpoint, bind: isBindEndpoint(endpoint) };
  },
  quorum,
  quorum_container: (input) => {
    const { numWorkers } = new MooncakeStoreKVEvents(
      number(input, "num_workers"),
      list<number>(input, "group_tp_replication_factors"),
    );
    return { num_workers: numWorkers };
  },
};
