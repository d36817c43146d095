import { describe } from "../errors.js";
import type { ExternalBlockHash } from "../hash/external-block-hash.js";
import { eventError } from "./errors.js";
import { EventHashes } from "./event-hashes.js";
import type { AllBlocksCleared, KVCacheEvent, KVEventBatch } from "./kv-events.js";
import { MessagePackFault, MessagePackReader } from "./message-pack-reader.js";
import { EVENT_FIELDS, type WireField } from "./wire-fields.js";

/** A batch as it was read. */
export interface DecodedEventBatch extends KVEventBatch {
  /** Events of a kind that this package does not know; they are left out. */
  readonly unknownEvents: number;
  /** Members that this package does not know; they are left out. */
  readonly unknownFields: number;
}

/**
 * Reads a batch in any of the forms that engines have used: events as maps with a type or as arrays that begin with it,
 * the batch as an array or a map, with or without a type, hashes as integers or bytes. What newer engines may have added
 * is passed over and counted.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for bytes that are no batch of events.
 */
export function decodeEventBatch(bytes: Uint8Array): DecodedEventBatch {
  if (!(bytes instanceof Uint8Array))
    throw eventError(`${describe(bytes)} is no Uint8Array`, { value: bytes });
  try {
    return new BatchDecoder(bytes).batch();
  } catch (error) {
    if (!(error instanceof MessagePackFault)) throw error;
    throw eventError(`not a batch of KV events: ${error.message}`, { bytes: bytes.length }, { cause: error });
  }
}

const CLEARED: AllBlocksCleared = Object.freeze({ type: "AllBlocksCleared" });

/** An event while it is read. */
type Draft = Record<string, unknown>;

class BatchDecoder {
  readonly #reader: MessagePackReader;
  #unknownEvents = 0;
  #unknownFields = 0;

  constructor(bytes: Uint8Array) {
    this.#reader = new MessagePackReader(bytes);
  }

  batch(): DecodedEventBatch {
    const batch = this.#reader.isMap() ? this.#mapBatch() : this.#listBatch();
    if (this.#reader.left > 0) throw new MessagePackFault(`${this.#reader.left} bytes follow the batch`);
    return { ...batch, unknownEvents: this.#unknownEvents, unknownFields: this.#unknownFields };
  }

  #listBatch(): KVEventBatch {
    const reader = this.#reader;
    let length = reader.listLength();
    if (length > 0 && reader.isText()) {
      reader.skip();
      length--;
    }
    if (length < 2) throw new MessagePackFault("a batch has a time and a list of events");
    const ts = reader.float();
    const events = this.#events();
    const dataParallelRank = length > 2 ? this.#rank() : null;
    for (let rest = 3; rest < length; rest++) this.#unknownField();
    return { ts, events, dataParallelRank };
  }

  #mapBatch(): KVEventBatch {
    const reader = this.#reader;
    let ts: number | undefined;
    let events: readonly KVCacheEvent[] | undefined;
    let dataParallelRank: number | null = null;
    for (let pairs = reader.mapLength(); pairs > 0; pairs--) {
      const name = reader.text();
      if (name === "ts") ts = reader.float();
      else if (name === "events") events = this.#events();
      else if (name === "data_parallel_rank") dataParallelRank = this.#rank();
      else if (name === "type") reader.skip();
      else this.#unknownField();
    }
    if (ts === undefined || events === undefined)
      throw new MessagePackFault("a batch has a time and a list of events");
    return { ts, events, dataParallelRank };
  }

  #rank(): number | null {
    return this.#reader.isNull() ? null : this.#reader.count();
  }

  #events(): KVCacheEvent[] {
    const events: KVCacheEvent[] = [];
    for (let left = this.#reader.listLength(); left > 0; left--) {
      const event = this.#reader.isList() ? this.#listEvent() : this.#mapEvent();
      if (event === undefined) this.#unknownEvents++;
      else events.push(event);
    }
    return events;
  }

  #listEvent(): KVCacheEvent | undefined {
    const reader = this.#reader;
    const length = reader.listLength() - 1;
    if (length < 0) throw new MessagePackFault("an event has a type");
    const type = eventType(reader.text());
    if (type === undefined) {
      for (let left = length; left > 0; left--) reader.skip();
      return undefined;
    }
    const draft = type.draft();
    for (let index = 0; index < length; index++) {
      const field = type.fields[index];
      if (field === undefined) this.#unknownField();
      else readField(reader, field, draft);
    }
    return type.finish(draft);
  }

  #mapEvent(): KVCacheEvent | undefined {
    const reader = this.#reader;
    const pairs = reader.mapLength();
    const type = eventType(this.#mapType(pairs));
    if (type === undefined) {
      for (let left = 2 * pairs; left > 0; left--) reader.skip();
      return undefined;
    }
    const draft = type.draft();
    for (let pair = 0; pair < pairs; pair++) {
      const [start, length] = reader.textSpan();
      const field = type.find(reader.bytes, start, length);
      if (field !== undefined) readField(reader, field, draft);
      else if (isTypeName(reader.bytes, start, length)) reader.skip();
      else this.#unknownField();
    }
    return type.finish(draft);
  }

  /** The type of a map, wherever it stands; the reader stays before the first pair. */
  #mapType(pairs: number): string {
    const reader = this.#reader;
    const begin = reader.offset;
    for (let pair = 0; pair < pairs; pair++) {
      const [start, length] = reader.textSpan();
      if (isTypeName(reader.bytes, start, length)) {
        const type = reader.text();
        reader.offset = begin;
        return type;
      }
      reader.skip();
    }
    throw new MessagePackFault("an event has no type");
  }

  #unknownField(): void {
    this.#unknownFields++;
    this.#reader.skip();
  }
}

function isTypeName(bytes: Uint8Array, start: number, length: number): boolean {
  return (
    length === 4 &&
    bytes[start] === 0x74 &&
    bytes[start + 1] === 0x79 &&
    bytes[start + 2] === 0x70 &&
    bytes[start + 3] === 0x65
  );
}

/** What the decoder knows of one kind of event. */
class EventType {
  readonly fields: readonly WireField[];
  readonly #type: string;
  /** Fields by the length of their name and its middle byte, which tell them all apart but for their other bytes. */
  readonly #byName = new Map<number, { readonly field: WireField; readonly name: Uint8Array }>();
  readonly #required: readonly WireField[];

  constructor(type: string, fields: readonly WireField[]) {
    this.#type = type;
    this.fields = fields;
    for (const field of fields) {
      const name = new TextEncoder().encode(field.name);
      const key = nameKey(name, 0, name.length);
      if (this.#byName.has(key)) throw new Error(`the names of two fields of ${type} have one key`);
      this.#byName.set(key, { field, name });
    }
    this.#required = fields.filter(({ presence }) => presence === "always");
  }

  /** An event in which every member is null. */
  draft(): Draft {
    const draft: Draft = { type: this.#type };
    for (const { member, presence } of this.fields) draft[member] = presence === "always" ? undefined : null;
    return draft;
  }

  /** The field of a name that lies in `bytes`. */
  find(bytes: Uint8Array, start: number, length: number): WireField | undefined {
    const found = this.#byName.get(nameKey(bytes, start, length));
    if (found === undefined || found.name.length !== length) return undefined;
    for (let at = 0; at < length; at++) if (found.name[at] !== bytes[start + at]) return undefined;
    return found.field;
  }

  finish(draft: Draft): KVCacheEvent {
    for (const { member, name } of this.#required)
      if (draft[member] === undefined) throw new MessagePackFault(`a ${this.#type} has no ${name}`);
    return this.fields.length === 0 ? CLEARED : (draft as unknown as KVCacheEvent);
  }
}

function nameKey(bytes: Uint8Array, start: number, length: number): number {
  return (length << 16) | (bytes[start]! << 8) | bytes[start + (length >> 1)]!;
}

const TYPES: ReadonlyMap<string, EventType> = new Map(
  Object.entries(EVENT_FIELDS).map(([type, fields]) => [type, new EventType(type, fields)]),
);

function eventType(name: string): EventType | undefined {
  return TYPES.get(name);
}

function readField(
  reader: MessagePackReader,
  { kind, member, name, presence }: WireField,
  draft: Draft,
): void {
  if (reader.isNull()) {
    if (presence === "always" && kind !== "hash") throw new MessagePackFault(`${name} is null`);
    draft[member] = null;
    return;
  }
  switch (kind) {
    case "hashes":
      draft[member] = readHashes(reader);
      return;
    case "hash":
      draft[member] = readHash(reader);
      return;
    case "tokens":
      draft[member] = reader.tokens();
      return;
    case "size": {
      const size = reader.count();
      if (size === 0) throw new MessagePackFault(`${name} is 0`);
      draft[member] = size;
      return;
    }
    case "integer":
      draft[member] = reader.count();
      return;
    case "text":
      draft[member] = reader.text();
      return;
    case "extraKeys":
      draft[member] = readList(reader, () =>
        reader.isNull() ? null : readList(reader, () => reader.value()),
      );
      return;
    case "tokenLists":
      draft[member] = readList(reader, () => readList(reader, () => reader.count()));
      return;
  }
}

function readList<T>(reader: MessagePackReader, item: () => T): T[] {
  const items: T[] = [];
  for (let left = reader.listLength(); left > 0; left--) items.push(item());
  return items;
}

function readHashes(reader: MessagePackReader): EventHashes {
  const length = reader.listLength();
  const words = new Uint32Array(2 * length);
  let full: (Uint8Array | undefined)[] | undefined;
  for (let index = 0; index < length; index++) {
    const bytes = reader.hash(words, index);
    if (bytes !== undefined) {
      full ??= new Array(length);
      full[index] = bytes;
    }
  }
  return new EventHashes(words, full);
}

const ONE = new Uint32Array(2);

function readHash(reader: MessagePackReader): ExternalBlockHash {
  const bytes = reader.hash(ONE, 0);
  return bytes ?? (BigInt(ONE[1]!) << 32n) | BigInt(ONE[0]!);
}
