import { EVENT_KINDS } from "../../generated/typescript/event-fields.js";
import { describe } from "../errors.js";
import { checkNames, releaseOption, wordOption } from "../lookup/options.js";
import type { Release } from "../release.js";
import { type EventField, hasField } from "../wire/event-field.js";
import { eventError } from "./errors.js";
import { EventHashes } from "./event-hashes.js";
import type { KVCacheEvent, KVEventBatch } from "./kv-events.js";
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

/** Which forms to write, checked and filled in. */
interface Forms {
  readonly release: Release;
  readonly eventForm: "map" | "array";
  readonly batchForm: "array" | "map" | "tagged-map";
}

/** Names of the options. */
const NAMES: readonly (keyof EncodeOptions)[] = ["release", "eventForm", "batchForm"];

/**
 * A batch as an engine publishes it, byte for byte. What it gives, `decodeEventBatch` reads.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for a member of the wrong kind, or one that the release does not have;
 * `ERR_CONFIG` for options that nobody knows.
 */
export function encodeEventBatch(batch: KVEventBatch, options: EncodeOptions = {}): Uint8Array {
  const forms = checkedForms("encodeEventBatch", options);
  if (typeof batch !== "object" || batch === null)
    throw eventError(`${describe(batch)} is no batch of events`, { batch });
  const writer = new MessagePackWriter();
  const { ts, events, dataParallelRank } = batch;
  if (!Number.isFinite(ts)) throw eventError(`ts is ${describe(ts)}; it must be a time in seconds`, { ts });
  if (!Array.isArray(events))
    throw eventError(`events is ${describe(events)}; it must be a list of events`, { events });
  if (dataParallelRank !== null) checkCount("data_parallel_rank", dataParallelRank);
  const form = forms.batchForm;
  const tagged = form === "tagged-map";
  if (form === "array") writer.list(3).float(ts);
  else {
    writer.map((tagged ? 3 : 2) + (dataParallelRank === null ? 0 : 1));
    if (tagged) writer.text("type").text("KVEventBatch");
    writer.text("ts").float(ts).text("events");
  }
  writer.list(events.length);
  for (const event of events) writeEvent(writer, event, forms);
  if (form !== "array" && dataParallelRank === null) return writer.finish();
  if (form !== "array") writer.text("data_parallel_rank");
  return (dataParallelRank === null ? writer.nil() : writer.integer(dataParallelRank)).finish();
}

/**
 * One event as it lies in a batch.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for a member of the wrong kind, or one that the release does not have;
 * `ERR_CONFIG` for options that nobody knows.
 */
export function encodeEvent(event: KVCacheEvent, options: EncodeOptions = {}): Uint8Array {
  const writer = new MessagePackWriter();
  writeEvent(writer, event, checkedForms("encodeEvent", options));
  return writer.finish();
}

function checkedForms(where: string, options: EncodeOptions): Forms {
  checkNames(where, options, NAMES);
  return {
    release: releaseOption(options.release),
    eventForm: wordOption("eventForm", options.eventForm ?? "map", ["map", "array"]),
    batchForm: wordOption("batchForm", options.batchForm ?? "array", ["array", "map", "tagged-map"]),
  };
}

function writeEvent(writer: MessagePackWriter, event: KVCacheEvent, { release, eventForm }: Forms): void {
  const fields = Object.hasOwn(EVENT_KINDS, event?.type) ? EVENT_KINDS[event.type]!.fields : undefined;
  if (fields === undefined)
    throw eventError(`there is no event ${describe(event?.type)}`, { type: event?.type });
  const values = event as unknown as Readonly<Record<string, unknown>>;
  const known = fields.filter((field) => hasField(release, field));
  for (const [member, value] of Object.entries(values))
    if (member !== "type" && (value ?? null) !== null && !known.some((field) => field.member === member))
      throw eventError(`the ${event.type} of ${release} has no ${member}`, { release, member });
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
    case "hashes":
      if (!(value instanceof EventHashes))
        throw eventError(`${name} is ${describe(value)}; it must be EventHashes: see EventHashes.from`, {
          field: name,
        });
      writer.list(value.length);
      for (const hash of value) writeHash(writer, name, hash);
      return;
    case "hash":
      writeHash(writer, name, value);
      return;
    case "tokens":
      if (!(value instanceof Uint32Array))
        throw eventError(`${name} is ${describe(value)}; it must be a Uint32Array`, { field: name });
      writer.list(value.length);
      for (const token of value) writer.integer(token);
      return;
    case "integer":
      writer.integer(checkCount(name, value));
      return;
    case "text":
      writer.text(value as string);
      return;
    case "anyLists":
      writer.list(checkList(name, value).length);
      for (const item of value as readonly unknown[])
        if (item === null) writer.nil();
        else {
          writer.list(checkList(name, item).length);
          for (const key of item as readonly unknown[]) writer.value(key);
        }
      return;
    case "integerLists":
      writer.list(checkList(name, value).length);
      for (const item of value as readonly unknown[]) {
        writer.list(checkList(name, item).length);
        for (const count of item as readonly unknown[]) writer.integer(checkCount(name, count));
      }
      return;
  }
}

function checkCount(name: string, value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw eventError(`${name} is ${describe(value)}; it must be a whole number from 0 to 2^53 - 1`, {
      field: name,
      value,
    });
  return value as number;
}

function checkList(name: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value))
    throw eventError(`${name} has ${describe(value)} where a list must be`, { field: name, value });
  return value;
}

function writeHash(writer: MessagePackWriter, name: string, hash: unknown): void {
  if (hash instanceof Uint8Array) writer.bin(hash);
  else if (typeof hash === "bigint") writer.integer(hash);
  else
    throw eventError(`${name} has ${describe(hash)}; a block hash is bytes, or a bigint of 64 bits`, {
      field: name,
      hash,
    });
}
