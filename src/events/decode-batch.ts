import { describe } from "../errors.js";
import { eventError } from "./errors.js";
import { EventReader } from "./event-reader.js";
import type { KVCacheEvent, KVEventBatch } from "./kv-events.js";
import { MessagePackFault } from "./message-pack-fault.js";
import { MessagePackReader } from "./message-pack-reader.js";

/** An event of a batch that could not be read. */
export interface EventProblem {
  /** Its place among the events of the batch, from 0. */
  readonly index: number;
  /** The kind of event that it says it is; undefined where it does not say. */
  readonly type: string | undefined;
  /** `unknown-type`: a kind of event that this package does not know. `malformed`: what it holds is not what its kind has. */
  readonly reason: "unknown-type" | "malformed";
  /** What is wrong with it. */
  readonly message: string;
}

/** A batch as it was read. */
export interface DecodedEventBatch extends KVEventBatch {
  /** Events of a kind that this package does not know; they are left out. */
  readonly unknownEvents: number;
  /** Members that this package does not know; they are left out. */
  readonly unknownFields: number;
  /** Events whose members are not what their kind has; they are left out. */
  readonly malformedEvents: number;
  /** The events that are left out, the first 100 of them. */
  readonly problems: readonly EventProblem[];
}

const NONE: readonly EventProblem[] = Object.freeze([]);

/** Problems of a batch that are told one by one; the others are only counted. */
const MOST_PROBLEMS = 100;

/**
 * Reads a batch in any of the forms that engines have used: events as maps with a type or as arrays that begin with it,
 * the batch as an array or a map, with or without a type, hashes as integers or bytes. What newer engines may have added
 * is passed over and counted. An event that can't be read costs no other event.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for bytes that are no batch of events, or are cut off.
 */
export function decodeEventBatch(bytes: Uint8Array): DecodedEventBatch {
  if (!(bytes instanceof Uint8Array))
    throw eventError(`${describe(bytes)} is no Uint8Array`, { value: bytes });
  try {
    return DECODER.batch(bytes);
  } catch (error) {
    if (!(error instanceof MessagePackFault)) throw error;
    throw eventError(`not a batch of KV events: ${error.message}`, { bytes: bytes.length }, { cause: error });
  }
}

const NO_BYTES = new Uint8Array(0);

class BatchDecoder {
  readonly #reader = new MessagePackReader(NO_BYTES);
  readonly #events = new EventReader(this.#reader);
  #problems: EventProblem[] | undefined;
  #unknownEvents = 0;
  #malformedEvents = 0;
  /** Members of the batch itself that nobody knows. */
  #unknownFields = 0;

  batch(bytes: Uint8Array): DecodedEventBatch {
    this.#reader.reset(bytes);
    this.#problems = undefined;
    this.#unknownEvents = 0;
    this.#malformedEvents = 0;
    this.#unknownFields = 0;
    this.#events.unknownFields = 0;
    try {
      return this.#batch();
    } finally {
      // Nobody keeps what was read.
      this.#reader.reset(NO_BYTES);
    }
  }

  #batch(): DecodedEventBatch {
    const batch = this.#reader.isMap() ? this.#mapBatch() : this.#listBatch();
    if (this.#reader.left > 0) throw new MessagePackFault(`${this.#reader.left} bytes follow the batch`);
    return {
      ts: batch.ts,
      events: batch.events,
      dataParallelRank: batch.dataParallelRank,
      unknownEvents: this.#unknownEvents,
      unknownFields: this.#unknownFields + this.#events.unknownFields,
      malformedEvents: this.#malformedEvents,
      problems: this.#problems ?? NONE,
    };
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
    const events = this.#readEvents();
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
      else if (name === "events") events = this.#readEvents();
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

  #readEvents(): KVCacheEvent[] {
    const reader = this.#reader;
    const events: KVCacheEvent[] = [];
    const count = reader.listLength();
    for (let index = 0; index < count; index++) {
      const begin = reader.offset;
      try {
        const event = this.#events.read();
        if (event !== undefined) events.push(event);
        else this.#leftOut(index, "unknown-type", "this kind of event is not known");
      } catch (error) {
        if (!(error instanceof MessagePackFault)) throw error;
        // The next event begins behind this one, if this one has an end; where it has none, the whole batch is broken.
        reader.offset = begin;
        reader.skip();
        this.#leftOut(index, "malformed", error.message);
      }
    }
    return events;
  }

  #leftOut(index: number, reason: EventProblem["reason"], what: string): void {
    if (reason === "malformed") this.#malformedEvents++;
    else this.#unknownEvents++;
    this.#problems ??= [];
    if (this.#problems.length >= MOST_PROBLEMS) return;
    const { type } = this.#events;
    const message = `event ${index} of the batch${type === undefined ? "" : `, a ${describe(type)},`} can't be read: ${what}`;
    this.#problems.push({ index, type, reason, message });
  }

  #unknownField(): void {
    this.#unknownFields++;
    this.#reader.skip();
  }
}

/** Reads one batch after the other: most have one event, for which three new objects would be felt. */
const DECODER = new BatchDecoder();
