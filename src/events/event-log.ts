import { describe } from "../errors.js";
import { checkNames, releaseOption, wordOption } from "../lookup/options.js";
import { type EncodeOptions, encodeEventBatch } from "./encode-batch.js";
import { configError, eventError } from "./errors.js";
import type { KVEventBatch } from "./kv-events.js";

/** How a publisher numbers, labels and keeps its batches. */
export interface EventLogOptions extends EncodeOptions {
  /** Put into batches that have none. Default: 0. */
  readonly dataParallelRank?: number | undefined;
  /** Text before each batch, by which subscribers choose. Default: empty. */
  readonly topic?: string | undefined;
  /** Batches that are kept for replay. Default: 10,000. */
  readonly bufferSteps?: number | undefined;
}

/** The sequence number of a replay's end: -1 in 8 bytes. */
export const END_SEQ: Uint8Array = new Uint8Array(8).fill(0xff);

const EMPTY = new Uint8Array(0);

/** Names of the options. */
export const EVENT_LOG_NAMES: readonly (keyof EventLogOptions)[] = [
  "release",
  "eventForm",
  "batchForm",
  "dataParallelRank",
  "topic",
  "bufferSteps",
];

/** Whether a frame is the number from which a replay is asked for: exactly 8 bytes. */
export function isReplayRequest(start: Uint8Array): boolean {
  return start.length === 8;
}

/** What a publisher sends, without its sockets: numbers batches and keeps the last ones for replay. */
export class EventLog {
  readonly #options: EncodeOptions;
  readonly #dataParallelRank: number;
  readonly #topic: Uint8Array;
  readonly bufferSteps: number;
  /** Payloads of the last batches, each at its number modulo `bufferSteps`. */
  readonly #kept: Uint8Array[] = [];
  #next = 0n;

  /** @throws MooncakeKvError `ERR_CONFIG` for options that make no sense, or that nobody knows. */
  constructor(given: EventLogOptions = {}) {
    checkNames("EventLog", given, EVENT_LOG_NAMES);
    const { dataParallelRank = 0, topic = "", bufferSteps = 10_000, ...options } = given;
    releaseOption(options.release);
    wordOption("eventForm", options.eventForm ?? "map", ["map", "array"]);
    wordOption("batchForm", options.batchForm ?? "array", ["array", "map", "tagged-map"]);
    if (typeof topic !== "string")
      throw configError(`topic is ${describe(topic)}; it must be a text`, { topic });
    for (const [name, value] of Object.entries({ dataParallelRank, bufferSteps }))
      if (!Number.isSafeInteger(value) || value < 0)
        throw configError(`${name} is ${describe(value)}; it must be a whole number of 0 or more`, {
          name,
          value,
        });
    this.#options = options;
    this.#dataParallelRank = dataParallelRank;
    this.#topic = new TextEncoder().encode(topic);
    this.bufferSteps = bufferSteps;
  }

  /** Number of the next batch. */
  get nextSequence(): bigint {
    return this.#next;
  }

  /**
   * The frames of the next batch: topic, number, payload.
   *
   * @throws MooncakeKvError `ERR_SCHEMA` for a batch that can't be encoded; its number is then given to the next one.
   */
  publish(batch: KVEventBatch): Uint8Array[] {
    const dataParallelRank = batch.dataParallelRank ?? this.#dataParallelRank;
    const payload = encodeEventBatch({ ...batch, dataParallelRank }, this.#options);
    const sequence = this.#next++;
    if (this.bufferSteps > 0) this.#kept[this.#place(sequence)] = payload;
    return [this.#topic, sequenceFrame(sequence), payload];
  }

  /** Number of the first batch that is kept. */
  get #oldest(): bigint {
    const kept = BigInt(this.bufferSteps);
    return this.#next > kept ? this.#next - kept : 0n;
  }

  #place(sequence: bigint): number {
    return Number(sequence % BigInt(this.bufferSteps));
  }

  /**
   * The messages that answer a replay request, behind the asker's identity: the kept batches from a number on, then the
   * end marker. Batches that are published meanwhile don't belong to it; those that are kept no longer when their turn
   * comes are missing.
   *
   * @param start the number, 8 bytes, big-endian.
   * @throws MooncakeKvError `ERR_SCHEMA` for a start of another length.
   */
  replay(start: Uint8Array): Generator<Uint8Array[]> {
    if (!isReplayRequest(start))
      throw eventError(`a replay starts at a number of 8 bytes; these are ${start.length}`, {
        bytes: start.length,
      });
    const from = new DataView(start.buffer, start.byteOffset, 8).getBigUint64(0);
    return this.#messages(from, this.#next);
  }

  *#messages(from: bigint, end: bigint): Generator<Uint8Array[]> {
    for (let sequence = from; ; sequence++) {
      if (sequence < this.#oldest) sequence = this.#oldest;
      if (sequence >= end) break;
      yield [EMPTY, this.#topic, sequenceFrame(sequence), this.#kept[this.#place(sequence)]!];
    }
    yield [EMPTY, EMPTY, END_SEQ, EMPTY];
  }
}

/** A sequence number as it lies in a frame: 8 bytes, big-endian. */
export function sequenceFrame(sequence: bigint): Uint8Array {
  const frame = new Uint8Array(8);
  new DataView(frame.buffer).setBigUint64(0, sequence);
  return frame;
}
