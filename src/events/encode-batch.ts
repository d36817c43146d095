import { EVENT_KINDS } from "../../generated/typescript/event-fields.js";
import { type EventField, hasField } from "../../generated/typescript/runtime/event-field.js";
import { describe } from "../errors.js";
import type { ExternalBlockHash } from "../hash/external-block-hash.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { eventError } from "./errors.js";
import type { EventHashes } from "./event-hashes.js";
import type { ExtraKey, KVCacheEvent, KVEventBatch } from "./kv-events.js";
import { MessagePackWriter } from "./message-pack-writer.js";

/** Which of the forms that events have had on the wire to write. */
export interface EncodeOptions {
  /** Release whose members are written. Default: the newest. */
  readonly release?: Release | undefined;
  /** `map` with a type (all releases of `RELEASES`), or `array`, as engines before them. Default: `map`. */
  readonly eventForm?: "map" | "array" | undefined;
  /** `array` (all releases), or a `map`, or a map with a `type`. Default: `array`. */
  readonly batchForm?: "array" | "map" | "tagged-map" | undefined;
}

/**
 * A batch as an engine publishes it, byte for byte.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for a member of the wrong kind, or one that the release does not have.
 */
export function encodeEventBatch(batch: KVEventBatch, options: EncodeOptions = {}): Uint8Array {
  const writer = new MessagePackWriter();
  const { ts, events, dataParallelRank } = batch;
  const form = options.batchForm ?? "array";
  const tagged = form === "tagged-map";
  if (form === "array") writer.list(3).float(ts);
  else {
    writer.map((tagged ? 3 : 2) + (dataParallelRank === null ? 0 : 1));
    if (tagged) writer.text("type").text("KVEventBatch");
    writer.text("ts").float(ts).text("events");
  }
  writer.list(events.length);
  for (const event of events) writeEvent(writer, event, options);
  if (form !== "array" && dataParallelRank === null) return writer.finish();
  if (form !== "array") writer.text("data_parallel_rank");
  return (dataParallelRank === null ? writer.nil() : writer.integer(dataParallelRank)).finish();
}

/**
 * One event as it lies in a batch.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for a member of the wrong kind, or one that the release does not have.
 */
export function encodeEvent(event: KVCacheEvent, options: EncodeOptions = {}): Uint8Array {
  const writer = new MessagePackWriter();
  writeEvent(writer, event, options);
  return writer.finish();
}

function writeEvent(writer: MessagePackWriter, event: KVCacheEvent, options: EncodeOptions): void {
  const { release = DEFAULT_RELEASE, eventForm = "map" } = options;
  const fields = Object.hasOwn(EVENT_KINDS, event?.type) ? EVENT_KINDS[event.type]!.fields : undefined;
  if (fields === undefined)
    throw eventError(`there is no event ${describe(event?.type)}`, { type: event?.type });
  const values = event as unknown as Readonly<Record<string, unknown>>;
  const known = fields.filter((field) => hasField(release, field));
  for (const field of fields)
    if (!known.includes(field) && (values[field.member] ?? null) !== null)
      throw eventError(`the ${event.type} of ${release} has no ${field.name}`, {
        release,
        field: field.name,
      });
  const written =
    eventForm === "array"
      ? known
      : known.filter((field) => field.presence !== "optional" || (values[field.member] ?? null) !== null);
  if (eventForm === "array") writer.list(1 + written.length);
  else writer.map(1 + written.length, 1 + known.length).text("type");
  writer.text(event.type);
  for (const field of written) {
    if (eventForm === "map") writer.text(field.name);
    writeField(writer, field, values[field.member] ?? null);
  }
}

function writeField(writer: MessagePackWriter, { kind, name, nullable }: EventField, value: unknown): void {
  if (value === null) {
    if (!nullable) throw eventError(`${name} is missing`, { field: name });
    writer.nil();
    return;
  }
  switch (kind) {
    case "hashes": {
      const hashes = value as EventHashes;
      writer.list(hashes.length);
      for (const hash of hashes) writeHash(writer, hash);
      return;
    }
    case "hash":
      writeHash(writer, value as ExternalBlockHash);
      return;
    case "tokens": {
      const tokens = value as Uint32Array;
      writer.list(tokens.length);
      for (const token of tokens) writer.integer(token);
      return;
    }
    case "integer":
      writer.integer(value as number);
      return;
    case "text":
      writer.text(value as string);
      return;
    case "anyLists":
    case "integerLists":
      writer.value(value as readonly ExtraKey[]);
      return;
  }
}

function writeHash(writer: MessagePackWriter, hash: ExternalBlockHash): void {
  if (hash instanceof Uint8Array) writer.bin(hash);
  else writer.integer(hash);
}
