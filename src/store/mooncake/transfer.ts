import { sidecarGetCodec, sidecarSpansCodec } from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { FlatKeys } from "../../key/key-table.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { pickKeys } from "../shared/keys.js";
import { inLanes } from "../shared/lanes.js";
import { Slots } from "../shared/slots.js";
import { sidecarError } from "./failure.js";
import { bytesOf } from "./key-frames.js";
import { KeyedCommands } from "./keyed-commands.js";
import { codesReply, type ReplyReader, sizesReply } from "./replies.js";
import type { RowBytes, Runs, SegmentRows } from "./row-bytes.js";
import type { SharedMemories, SharedMemory } from "./shared-memory.js";
import { type Outcome, type Sidecar, type TouchedMemory, UNSENT } from "./sidecar.js";
import { type Slice, sliceRows } from "./slices.js";

/** Bytes that one command gathers: enough for Mooncake to be fast, few enough that copying and sending overlap. */
const GATHERED_BYTES = 32 << 20;

/** Bytes that one command moves out of or into memory of the caller. */
const DIRECT_BYTES = 256 << 20;

/** Slices of a call that are under way at a time: one is sent while the next is copied. */
const LANES = 2;

/** Memory of a command, one or more spans a key. */
interface Spans {
  /** Empty when every key has one span. */
  readonly rowEnds: Uint32Array;
  /** One region for all spans, or one each. */
  readonly regions: Uint32Array;
  readonly offsets: BigUint64Array;
  readonly sizes: BigUint64Array;
}

/** How the rows of a call cross: what lies in one piece in shared memory as it is, the rest through staging. */
export interface Routes {
  readonly direct: readonly number[];
  readonly gathered: readonly number[];
}

/** Moves the bytes of one call. Whatever it promises settles when nobody touches the memory of the rows any more. */
export class Transfer {
  readonly #sidecar: Sidecar;
  readonly #memories: SharedMemories;
  readonly #commands: KeyedCommands;
  readonly #keys: FlatKeys;
  readonly #deadline: Deadline;
  readonly #line = new Slots(1);

  constructor(sidecar: Sidecar, memories: SharedMemories, keys: FlatKeys, deadline: Deadline) {
    this.#sidecar = sidecar;
    this.#memories = memories;
    this.#commands = new KeyedCommands(sidecar, memories);
    this.#keys = keys;
    this.#deadline = deadline;
  }

  /** Stores rows; `head` makes the head of the command for some of them. A row without an answer keeps its code. */
  put(
    head: (rows: readonly number[]) => readonly Uint8Array[],
    rows: RowBytes,
    routes: Routes,
    codes: Int32Array,
  ): Promise<void> {
    return this.#move(rows, routes, {
      command: ({ rows }) => ({ head: head(rows), reply: codesReply(rows.length, CODE.OK) }),
      before: (slice, runs, staged) => rows.gather(slice.rows, runs, staged),
      answer: (slice, answers) => {
        for (const [index, row] of slice.rows.entries()) codes[row] = answers[index]!;
        return [];
      },
    });
  }

  /** Reads rows, which must have different keys. A row without an answer keeps its code. */
  get(rows: RowBytes, routes: Routes, results: BigInt64Array): Promise<void> {
    const head = [sidecarGetCodec.toBinary({})];
    return this.#move(rows, routes, {
      command: ({ rows }) => ({ head, reply: sizesReply(rows.length) }),
      answer: (slice, answers) =>
        slice.rows.filter((row, index) => {
          const found = answers[index]!;
          // A value that is shorter than the memory for it is no success.
          const complete = found < 0n || found === BigInt(rows.size(row));
          results[row] = complete ? found : BigInt(CODE.TRANSFER_FAIL);
          return complete && found >= 0n;
        }),
    });
  }

  /** Runs commands for slices of rows, by both routes. */
  async #move<T>(rows: RowBytes, routes: Routes, { command, before, answer }: Move<T>): Promise<void> {
    const direct = this.#slices(routes.direct, rows, DIRECT_BYTES).map((slice) => async () => {
      const spans = directSpans(rows as SegmentRows, slice, this.#memories);
      const { reply } = await this.#send(command(slice), slice, spans, "caller");
      if (reply !== undefined) answer(slice, reply);
    });
    const gathered = this.#slices(routes.gathered, rows, this.#gatheredBytes).map(
      (slice) => () =>
        this.#staged(slice, async ({ shared, offset }) => {
          const runs = layOut(slice, rows, offset);
          await before?.(slice, runs, shared);
          const spans = runSpans(slice, rows, runs, shared.number);
          const outcome = await this.#sendNext(command(slice), slice, spans);
          if (outcome.reply !== undefined) await rows.scatter(answer(slice, outcome.reply), runs, shared);
          return outcome;
        }),
    );
    await inLanes([...direct, ...gathered], LANES, (job) => job());
  }

  get #gatheredBytes(): number {
    return Math.min(GATHERED_BYTES, this.#memories.blocks.size >> 1);
  }

  #slices(rows: readonly number[], bytes: RowBytes, mostBytes: number): Slice[] {
    return sliceRows(rows, (row) => bytes.size(row), mostBytes);
  }

  /**
   * Sends a command with gathered bytes. One at a time: two of them slow each other down, while copying and sending go
   * well together.
   */
  async #sendNext<T>(command: Command<T>, slice: Slice, spans: Spans): Promise<Outcome<T>> {
    if (!(await this.#line.take(this.#deadline))) return UNSENT;
    try {
      return await this.#send(command, slice, spans, "staging");
    } finally {
      this.#line.give();
    }
  }

  #send<T>(
    { head, reply }: Command<T>,
    slice: Slice,
    spans: Spans,
    touched: TouchedMemory,
  ): Promise<Outcome<T>> {
    const tail = sidecarSpansCodec.toBinary({
      rowEnds: bytesOf(spans.rowEnds),
      regions: bytesOf(spans.regions),
      offsets: bytesOf(spans.offsets),
      sizes: bytesOf(spans.sizes),
    });
    const keys = pickKeys(this.#keys, slice.rows);
    return this.#commands.run({ head, keys, tail, reply, touched }, this.#deadline);
  }

  /** Runs a slice with staging memory of its own, which is free again when the sidecar is done with it. */
  async #staged(slice: Slice, run: (staged: Staged) => Promise<Outcome<unknown>>): Promise<void> {
    if (slice.bytes > this.#memories.blocks.size) return this.#stagedAlone(slice, run);
    const { staging, blocks } = this.#memories;
    const block = await blocks.allocate(slice.bytes, this.#deadline);
    if (!block) return;
    let over: Promise<void> = Promise.resolve();
    try {
      ({ over } = await run({ shared: staging, offset: block.offset }));
    } finally {
      over.then(() => blocks.free(block));
    }
  }

  /** The same for a row that is larger than the staging memory: it gets memory for this one time. */
  async #stagedAlone(slice: Slice, run: (staged: Staged) => Promise<Outcome<unknown>>): Promise<void> {
    const own = this.#memories.take("transfer", slice.bytes);
    let over: Promise<void> = Promise.resolve();
    try {
      await this.#sidecar.share(own);
      if (this.#deadline.expired) return;
      if (!own.mapped) throw sidecarError(`it can't map ${slice.bytes} bytes for a value`);
      ({ over } = await run({ shared: own, offset: 0 }));
    } finally {
      over.then(() => this.#sidecar.unshare(own)).finally(() => own.memory.free());
    }
  }
}

/** The head of a command that moves bytes, and how its reply is read. */
interface Command<T> {
  readonly head: readonly Uint8Array[];
  readonly reply: ReplyReader<T>;
}

/** What is done with each slice of a call. */
interface Move<T> {
  command(slice: Slice): Command<T>;
  /** Fills the staging memory of a slice. */
  before?(slice: Slice, runs: Runs, staged: SharedMemory): Promise<void>;
  /** Takes over the answer; gives the rows whose bytes are in the staging memory now. */
  answer(slice: Slice, reply: T): number[];
}

/** A place in shared memory for the rows of a slice. */
interface Staged {
  readonly shared: SharedMemory;
  /** Where the place starts in it. */
  readonly offset: number;
}

/** Rows one behind another, from `start` on. */
function layOut(slice: Slice, rows: RowBytes, start: number): Map<number, number> {
  const runs = new Map<number, number>();
  let at = start;
  for (const row of slice.rows) {
    runs.set(row, at);
    at += rows.size(row);
  }
  return runs;
}

function runSpans(slice: Slice, rows: RowBytes, runs: Runs, number: number): Spans {
  return {
    rowEnds: new Uint32Array(0),
    regions: Uint32Array.of(number),
    offsets: BigUint64Array.from(slice.rows, (row) => BigInt(runs.get(row)!)),
    sizes: BigUint64Array.from(slice.rows, (row) => BigInt(rows.size(row))),
  };
}

/** The memory of rows as the caller has it: one span a row where all of them are one piece, else every segment. */
function directSpans({ rows }: SegmentRows, slice: Slice, memories: SharedMemories): Spans {
  const pieces = slice.rows.map((row) => rows.pieces(row));
  const spans = pieces.flat();
  const one = spans.every(({ region }) => region === spans[0]!.region);
  const rowEnds: number[] = [];
  for (const list of pieces) rowEnds.push((rowEnds.at(-1) ?? 0) + list.length);
  return {
    rowEnds: Uint32Array.from(pieces.every((list) => list.length === 1) ? [] : rowEnds),
    regions: Uint32Array.from(one ? spans.slice(0, 1) : spans, ({ region }) => memories.of(region)!.number),
    offsets: BigUint64Array.from(spans, ({ region, address }) => address - region.address),
    sizes: BigUint64Array.from(spans, ({ size }) => size),
  };
}
