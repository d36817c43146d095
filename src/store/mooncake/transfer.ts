import {
  sidecarCodesCodec,
  sidecarGetCodec,
  sidecarSizesCodec,
  sidecarSpansCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { FlatKeys } from "../../key/key-table.js";
import type { Deadline } from "../admin/deadline.js";
import { int32, int64 } from "./columns.js";
import { sidecarError } from "./failure.js";
import { bytesOf, pickKeys } from "./key-frames.js";
import { KeyedCommands } from "./keyed-commands.js";
import type { SharedMemory, StoreMemory } from "./memory.js";
import type { RowBytes, RunMemory, SegmentRows } from "./row-bytes.js";
import { type Outcome, type Sidecar, type TouchedMemory, UNSENT } from "./sidecar.js";
import { inLanes, type Slice, sliceRows } from "./slices.js";
import { Slots } from "./slots.js";

/** Bytes that one command gathers: enough for Mooncake to be fast, few enough that copying and sending overlap. */
const GATHERED_BYTES = 32 << 20;

/** Bytes that one command moves out of or into memory of the caller. */
const DIRECT_BYTES = 256 << 20;

/** Slices of a call that are under way at a time: one is sent while the next is copied. */
const LANES = 2;

const TRANSFER_FAIL = -800;

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

/** Moves the bytes of one call. */
export class Transfer {
  readonly #sidecar: Sidecar;
  readonly #memory: StoreMemory;
  readonly #commands: KeyedCommands;
  readonly #keys: FlatKeys;
  readonly #deadline: Deadline;
  readonly #line = new Slots(1);

  constructor(sidecar: Sidecar, memory: StoreMemory, keys: FlatKeys, deadline: Deadline) {
    this.#sidecar = sidecar;
    this.#memory = memory;
    this.#commands = new KeyedCommands(sidecar, memory);
    this.#keys = keys;
    this.#deadline = deadline;
  }

  /** Stores rows; `head` makes the head of the command for some of them. A row without an answer keeps its code. */
  async put(
    head: (rows: readonly number[]) => readonly Uint8Array[],
    rows: RowBytes,
    routes: Routes,
    codes: Int32Array,
  ): Promise<void> {
    const answer = (slice: Slice, reply: Uint8Array[]): void => {
      const answers = int32(sidecarCodesCodec.fromBinary(reply[0]!).codes);
      for (const [index, row] of slice.rows.entries()) codes[row] = answers[index]!;
    };
    const direct = this.#slices(routes.direct, rows, DIRECT_BYTES).map((slice) => async () => {
      const { reply } = await this.#send(
        head(slice.rows),
        slice,
        directSpans(rows as SegmentRows, slice),
        "caller",
      );
      if (reply) answer(slice, reply);
    });
    const gathered = this.#slices(routes.gathered, rows, this.#gatheredBytes).map(
      (slice) => () =>
        this.#staged(slice, async (staged) => {
          const runs = layOut(slice, rows, staged.offset);
          await rows.gather(slice.rows, runs, staged.run);
          const outcome = await this.#sendNext(
            head(slice.rows),
            slice,
            runSpans(slice, rows, runs, staged.region),
          );
          if (outcome.reply) answer(slice, outcome.reply);
          return outcome;
        }),
    );
    await inLanes([...direct, ...gathered], LANES);
  }

  /** Reads rows, which must have different keys. A row without an answer keeps its code. */
  async get(rows: RowBytes, routes: Routes, results: BigInt64Array): Promise<void> {
    const head = [sidecarGetCodec.toBinary({})];
    const answer = (slice: Slice, reply: Uint8Array[]): number[] => {
      const answers = int64(sidecarSizesCodec.fromBinary(reply[0]!).sizes);
      return slice.rows.filter((row, index) => {
        const found = answers[index]!;
        // A value that is shorter than the memory for it is no success.
        const complete = found < 0n || found === BigInt(rows.size(row));
        results[row] = complete ? found : BigInt(TRANSFER_FAIL);
        return complete && found >= 0n;
      });
    };
    const direct = this.#slices(routes.direct, rows, DIRECT_BYTES).map((slice) => async () => {
      const { reply } = await this.#send(head, slice, directSpans(rows as SegmentRows, slice), "caller");
      if (reply) answer(slice, reply);
    });
    const gathered = this.#slices(routes.gathered, rows, this.#gatheredBytes).map(
      (slice) => () =>
        this.#staged(slice, async (staged) => {
          const runs = layOut(slice, rows, staged.offset);
          const outcome = await this.#sendNext(head, slice, runSpans(slice, rows, runs, staged.region));
          if (outcome.reply) await rows.scatter(answer(slice, outcome.reply), runs, staged.run);
          return outcome;
        }),
    );
    await inLanes([...direct, ...gathered], LANES);
  }

  get #gatheredBytes(): number {
    return Math.min(GATHERED_BYTES, this.#memory.blocks.size >> 1);
  }

  #slices(rows: readonly number[], bytes: RowBytes, mostBytes: number): Slice[] {
    return sliceRows(rows, (row) => bytes.size(row), mostBytes);
  }

  /**
   * Sends a command with gathered bytes. One at a time: two of them slow each other down, while copying and sending go
   * well together.
   */
  async #sendNext(head: readonly Uint8Array[], slice: Slice, spans: Spans): Promise<Outcome> {
    if (!(await this.#line.take(this.#deadline))) return UNSENT;
    try {
      return await this.#send(head, slice, spans, "staging");
    } finally {
      this.#line.give();
    }
  }

  #send(head: readonly Uint8Array[], slice: Slice, spans: Spans, touched: TouchedMemory): Promise<Outcome> {
    const tail = sidecarSpansCodec.toBinary({
      rowEnds: bytesOf(spans.rowEnds),
      regions: bytesOf(spans.regions),
      offsets: bytesOf(spans.offsets),
      sizes: bytesOf(spans.sizes),
    });
    return this.#commands.run(head, pickKeys(this.#keys, slice.rows), tail, this.#deadline, touched);
  }

  /** Runs a slice with staging memory of its own, which is free again when the sidecar is done with it. */
  async #staged(slice: Slice, run: (staged: Staged) => Promise<Outcome>): Promise<void> {
    if (slice.bytes > this.#memory.blocks.size) return this.#stagedAlone(slice, run);
    const { staging, blocks } = this.#memory;
    const block = await blocks.allocate(slice.bytes, this.#deadline);
    if (!block) return;
    let over: Promise<void> = Promise.resolve();
    try {
      ({ over } = await run(stagedIn(staging, block.offset)));
    } finally {
      over.then(() => blocks.free(block));
    }
  }

  /** The same for a row that is larger than the staging memory: it gets memory for this one time. */
  async #stagedAlone(slice: Slice, run: (staged: Staged) => Promise<Outcome>): Promise<void> {
    const own = this.#memory.makeShared("transfer", slice.bytes);
    let over: Promise<void> = Promise.resolve();
    try {
      await this.#sidecar.share(own.region, this.#deadline);
      if (this.#deadline.expired) return;
      if (!own.region.shared) throw sidecarError(`it can't map ${slice.bytes} bytes for a value`);
      ({ over } = await run(stagedIn(own, 0)));
    } finally {
      over
        .then(() => this.#sidecar.unshare(own.region))
        .catch(() => {})
        .finally(() => this.#memory.drop(own));
    }
  }
}

/** A place in shared memory for the rows of a slice. */
interface Staged {
  readonly region: number;
  /** Where the place starts in its region. */
  readonly offset: number;
  readonly run: RunMemory;
}

function stagedIn({ region, bytes }: SharedMemory, offset: number): Staged {
  return { region: region.id, offset, run: { address: region.address, bytes } };
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

function runSpans(slice: Slice, rows: RowBytes, runs: ReadonlyMap<number, number>, region: number): Spans {
  return {
    rowEnds: new Uint32Array(0),
    regions: Uint32Array.of(region),
    offsets: BigUint64Array.from(slice.rows, (row) => BigInt(runs.get(row)!)),
    sizes: BigUint64Array.from(slice.rows, (row) => BigInt(rows.size(row))),
  };
}

/** The memory of rows as the caller has it: one span a row where all of them are one piece, else every segment. */
function directSpans(rows: SegmentRows, slice: Slice): Spans {
  const pieces = slice.rows.map((row) => rows.pieces(row));
  const spans = pieces.flat();
  const one = spans.every(({ region }) => region === spans[0]!.region);
  const rowEnds: number[] = [];
  for (const list of pieces) rowEnds.push((rowEnds.at(-1) ?? 0) + list.length);
  return {
    rowEnds: Uint32Array.from(pieces.every((list) => list.length === 1) ? [] : rowEnds),
    regions: Uint32Array.from(one ? spans.slice(0, 1) : spans, ({ region }) => region.id),
    offsets: BigUint64Array.from(spans, ({ region, address }) => address - region.address),
    sizes: BigUint64Array.from(spans, ({ size }) => size),
  };
}
