import { EVENT_KINDS } from "../../generated/typescript/event-fields.js";
import type { EventField, EventFieldKind, EventKind } from "../wire/event-field.js";
import { EventHashes } from "./event-hashes.js";
import type { KVCacheEvent } from "./kv-events.js";
import { MessagePackFault } from "./message-pack-fault.js";
import type { MessagePackReader } from "./message-pack-reader.js";

/** Kinds of fields as numbers: events come by the thousands, and each has a dozen fields. */
const CODES: Readonly<Record<EventFieldKind, number>> = {
  hashes: 0,
  hash: 1,
  tokens: 2,
  integer: 3,
  text: 4,
  anyLists: 5,
  integerLists: 6,
};

/** A field as the reader looks for it. */
interface ReadField extends EventField {
  /** Its place among the fields of its event. */
  readonly index: number;
  readonly code: number;
  readonly bytes: Uint8Array;
}

/** A kind of event as the reader looks for it. */
class ReadKind {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly fields: readonly ReadField[];
  /** An event in which every member that may be null is. */
  readonly nothing: readonly unknown[];
  readonly #kind: EventKind;
  /** Fields by the length of their name and two of its bytes, which tell them all apart but for their other bytes. */
  readonly #byName = new Map<number, ReadField>();

  constructor(type: string, kind: EventKind) {
    this.type = type;
    this.bytes = new TextEncoder().encode(type);
    this.#kind = kind;
    this.fields = kind.fields.map((field, index) => ({
      ...field,
      index,
      code: CODES[field.kind],
      bytes: new TextEncoder().encode(field.name),
    }));
    this.nothing = kind.fields.map(({ presence }) => (presence === "always" ? undefined : null));
    for (const field of this.fields) {
      const key = nameKey(field.bytes, 0, field.bytes.length);
      if (this.#byName.has(key)) throw new Error(`the names of two fields of ${type} have one key`);
      this.#byName.set(key, field);
    }
  }

  /** The field of a name that lies in `bytes`. @param guess the field that comes next where a writer keeps the order. */
  find(bytes: Uint8Array, start: number, length: number, guess: number): ReadField | undefined {
    const next = this.fields[guess];
    if (next !== undefined && isName(next.bytes, bytes, start, length)) return next;
    const found = this.#byName.get(nameKey(bytes, start, length));
    return found !== undefined && isName(found.bytes, bytes, start, length) ? found : undefined;
  }

  finish(values: readonly unknown[]): KVCacheEvent {
    for (let index = 0; index < values.length; index++)
      if (values[index] === undefined)
        throw new MessagePackFault(`a ${this.type} has no ${this.fields[index]!.name}`);
    return this.#kind.build(values) as KVCacheEvent;
  }
}

const KINDS: readonly ReadKind[] = Object.entries(EVENT_KINDS).map(
  ([type, kind]) => new ReadKind(type, kind),
);

const TYPE = new TextEncoder().encode("type");

function nameKey(bytes: Uint8Array, start: number, length: number): number {
  return (length << 16) | (bytes[start]! << 8) | bytes[start + (length >> 1)]!;
}

function isName(name: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (name.length !== length) return false;
  for (let at = 0; at < length; at++) if (name[at] !== bytes[start + at]) return false;
  return true;
}

/** Reads events one after the other, in the map and in the list form. */
export class EventReader {
  readonly #reader: MessagePackReader;
  #typeAt = 0;
  /** Members that nobody knows, of all events so far; they are left out. */
  unknownFields = 0;
  /** The kind of event that the last one says it is; undefined where it does not say. */
  type: string | undefined;

  constructor(reader: MessagePackReader) {
    this.#reader = reader;
  }

  /**
   * The next event; undefined for one of an unknown kind, which is taken.
   *
   * @throws MessagePackFault for one that can't be read; the reader stands somewhere inside it.
   */
  read(): KVCacheEvent | undefined {
    this.type = undefined;
    const unknown = this.unknownFields;
    try {
      return this.#reader.isList() ? this.#list() : this.#map();
    } catch (error) {
      // What is left out as a whole has no members that are left out.
      this.unknownFields = unknown;
      throw error;
    }
  }

  #list(): KVCacheEvent | undefined {
    const reader = this.#reader;
    const length = reader.listLength() - 1;
    if (length < 0) throw new MessagePackFault("an event has a type");
    const kind = this.#kind();
    if (kind === undefined) {
      for (let left = length; left > 0; left--) reader.skip();
      return undefined;
    }
    const values = kind.nothing.slice();
    for (let index = 0; index < length; index++) {
      const field = kind.fields[index];
      if (field === undefined) this.#unknownField();
      else values[index] = this.#read(field);
    }
    return kind.finish(values);
  }

  #map(): KVCacheEvent | undefined {
    const reader = this.#reader;
    let pairs = reader.mapLength();
    const begin = reader.offset;
    const kind = this.#kindOfMap(pairs);
    // Nearly always the kind comes first, and the reader stands behind it.
    if (this.#typeAt === 0) pairs--;
    else reader.offset = begin;
    if (kind === undefined) {
      for (let left = 2 * pairs; left > 0; left--) reader.skip();
      return undefined;
    }
    const values = kind.nothing.slice();
    let guess = 0;
    for (; pairs > 0; pairs--) {
      const start = reader.span();
      const length = reader.spanLength;
      const field = kind.find(reader.bytes, start, length, guess);
      if (field !== undefined) {
        values[field.index] = this.#read(field);
        guess = field.index + 1;
      } else if (isName(TYPE, reader.bytes, start, length)) reader.skip();
      else this.#unknownField();
    }
    return kind.finish(values);
  }

  /** The kind of a map, in whichever pair it stands: `#typeAt`. The reader is behind it then. */
  #kindOfMap(pairs: number): ReadKind | undefined {
    const reader = this.#reader;
    for (let pair = 0; pair < pairs; pair++) {
      const start = reader.span();
      if (isName(TYPE, reader.bytes, start, reader.spanLength)) {
        this.#typeAt = pair;
        return this.#kind();
      }
      reader.skip();
    }
    throw new MessagePackFault("an event has no type");
  }

  /** The kind that is named here. */
  #kind(): ReadKind | undefined {
    const reader = this.#reader;
    const begin = reader.offset;
    const start = reader.span();
    for (const kind of KINDS)
      if (isName(kind.bytes, reader.bytes, start, reader.spanLength)) {
        this.type = kind.type;
        return kind;
      }
    reader.offset = begin;
    this.type = reader.text();
    return undefined;
  }

  #read(field: ReadField): unknown {
    const reader = this.#reader;
    if (reader.isNull()) {
      if (!field.nullable) throw new MessagePackFault(`${field.name} is null`);
      return null;
    }
    switch (field.code) {
      case CODES.hashes:
        return readHashes(reader);
      case CODES.hash:
        return reader.externalHash();
      case CODES.tokens:
        return reader.tokens();
      case CODES.integer:
        return reader.count();
      case CODES.text:
        return reader.text();
      case CODES.anyLists:
        return this.#anyLists();
      default:
        return readList(reader, readCounts);
    }
  }

  /** Lists of anything; null for what nothing here can hold, such as maps, which is then a field that nobody knows. */
  #anyLists(): unknown {
    const reader = this.#reader;
    const begin = reader.offset;
    try {
      return readList(reader, readAnyList);
    } catch (error) {
      if (!(error instanceof MessagePackFault)) throw error;
      reader.offset = begin;
      this.#unknownField();
      return null;
    }
  }

  #unknownField(): void {
    this.unknownFields++;
    this.#reader.skip();
  }
}

function readList<T>(reader: MessagePackReader, item: (reader: MessagePackReader) => T): T[] {
  const items: T[] = [];
  for (let left = reader.listLength(); left > 0; left--) items.push(item(reader));
  return items;
}

const readAnyList = (reader: MessagePackReader): unknown =>
  reader.isNull() ? null : readList(reader, readAny);
const readAny = (reader: MessagePackReader): unknown => reader.value();
const readCounts = (reader: MessagePackReader): number[] => readList(reader, readCount);
const readCount = (reader: MessagePackReader): number => reader.count();

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
