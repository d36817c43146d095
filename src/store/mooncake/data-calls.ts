import { constants } from "node:buffer";
import type { FlatKeys } from "../../key/key-table.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { Deadline } from "../admin/deadline.js";
import type { PutOptions } from "../put-options.js";
import type { KeyCalls } from "./key-calls.js";
import { keySource, pickKeys } from "./key-frames.js";
import type { StoreMemory } from "./memory.js";
import { putFrames } from "./put-frames.js";
import { type RowBytes, SegmentRows, ValueRows } from "./row-bytes.js";
import type { Sidecar } from "./sidecar.js";
import { type Routes, Transfer } from "./transfer.js";

const INVALID_PARAMS = -600;
const TRANSFER_FAIL = -800;
const RPC_TIMEOUT = -901;

/** How often a value is read again when its size changed between the question and the read. */
const READS = 3;

/** The calls that move bytes. */
export class DataCalls {
  readonly #sidecar: Sidecar;
  readonly #memory: StoreMemory;
  readonly #keyCalls: KeyCalls;
  readonly #scattered: "gather" | "direct";

  constructor(sidecar: Sidecar, memory: StoreMemory, keyCalls: KeyCalls, scattered: "gather" | "direct") {
    this.#sidecar = sidecar;
    this.#memory = memory;
    this.#keyCalls = keyCalls;
    this.#scattered = scattered;
  }

  /** Puts (or upserts, with `overwrite`) rows of registered memory. */
  async putFrom(
    keys: FlatKeys,
    segments: SegmentTable,
    overwrite: boolean,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const rows = new SegmentRows(this.#memory, segments);
    using _use = this.#memory.table.use(rows.plan.used);
    const refused = (row: number): boolean => rows.plan.codes[row] !== 0;
    return this.#put(
      keys,
      rows,
      refused,
      (wanted) => this.#routes(rows, wanted, !overwrite),
      overwrite,
      options,
      deadline,
    );
  }

  /** Puts (or upserts) values, whose bytes nobody changes any more. */
  async put(
    keys: FlatKeys,
    values: readonly Uint8Array[],
    overwrite: boolean,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const gathered = (rows: readonly number[]): Routes => ({ direct: [], gathered: rows });
    return this.#put(keys, new ValueRows(values), () => false, gathered, overwrite, options, deadline);
  }

  /** Reads into rows of registered memory. */
  async getInto(keys: FlatKeys, segments: SegmentTable, deadline: Deadline): Promise<BigInt64Array> {
    const rows = new SegmentRows(this.#memory, segments);
    using _use = this.#memory.table.use(rows.plan.used);
    const count = keys.offsets.length - 1;
    const results = new BigInt64Array(count).fill(BigInt(RPC_TIMEOUT));
    const useless: number[] = [];
    const wanted: number[] = [];
    for (let row = 0; row < count; row++)
      (rows.plan.codes[row] === 0 && rows.plan.bytes[row]! > 0n ? wanted : useless).push(row);
    const transfer = new Transfer(this.#sidecar, this.#memory, keys, deadline);
    await Promise.all([
      ...this.#rounds(keys, wanted).map((round) =>
        transfer.get(rows, this.#routes(rows, round, true), results),
      ),
      this.#readNothing(keys, useless, results, deadline),
    ]);
    return results;
  }

  /** Reads values into memory of their own. */
  async get(
    keys: FlatKeys,
    deadline: Deadline,
  ): Promise<{ readonly codes: BigInt64Array; readonly values: (Uint8Array | undefined)[] }> {
    const count = keys.offsets.length - 1;
    const first = this.#memory.addon.firstOfEqual(keys.bytes, keys.offsets);
    const codes = new BigInt64Array(count).fill(BigInt(RPC_TIMEOUT));
    const values: (Uint8Array | undefined)[] = new Array(count).fill(undefined);
    let wanted = Array.from(first.keys()).filter((row) => first[row] === row);
    for (let attempt = 0; attempt < READS && wanted.length > 0 && !deadline.expired; attempt++)
      wanted = await this.#readOnce(keys, wanted, codes, values, deadline);
    for (let row = 0; row < count; row++) {
      const source = first[row]!;
      if (source === row) continue;
      codes[row] = codes[source]!;
      values[row] = values[source]?.slice();
    }
    return { codes, values };
  }

  /** Reads values whose size is asked first; gives the rows whose size was another when they were read. */
  async #readOnce(
    keys: FlatKeys,
    wanted: readonly number[],
    codes: BigInt64Array,
    values: (Uint8Array | undefined)[],
    deadline: Deadline,
  ): Promise<number[]> {
    const sizes = await this.#keyCalls.size(keySource(pickKeys(keys, wanted)), deadline);
    const reading: number[] = [];
    for (const [index, row] of wanted.entries()) {
      const size = sizes[index]!;
      codes[row] = size > BigInt(constants.MAX_LENGTH) ? BigInt(INVALID_PARAMS) : size;
      if (codes[row]! < 0n) continue;
      values[row] = new Uint8Array(Number(size));
      codes[row] = BigInt(RPC_TIMEOUT);
      reading.push(row);
    }
    const rows = new ValueRows(values as Uint8Array[]);
    const transfer = new Transfer(this.#sidecar, this.#memory, keys, deadline);
    await transfer.get(rows, { direct: [], gathered: reading }, codes);
    const failed = reading.filter((row) => codes[row]! < 0n);
    for (const row of failed) values[row] = undefined;
    return failed.filter(
      (row) => codes[row] === BigInt(INVALID_PARAMS) || codes[row] === BigInt(TRANSFER_FAIL),
    );
  }

  async #put(
    keys: FlatKeys,
    rows: RowBytes,
    refused: (row: number) => boolean,
    routes: (wanted: readonly number[]) => Routes,
    overwrite: boolean,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const count = keys.offsets.length - 1;
    const codes = new Int32Array(count).fill(RPC_TIMEOUT);
    if (options.groupIds && options.groupIds.length !== count) return codes.fill(INVALID_PARAMS);
    const first = this.#memory.addon.firstOfEqual(keys.bytes, keys.offsets);
    /** The row that stands for all rows of its key: the first that can be stored. */
    const chosen = new Map<number, number>();
    for (let row = 0; row < count; row++) {
      const emptyKey = keys.offsets[row] === keys.offsets[row + 1];
      if (emptyKey || refused(row) || rows.size(row) === 0) codes[row] = INVALID_PARAMS;
      else if (!chosen.has(first[row]!)) chosen.set(first[row]!, row);
    }
    const transfer = new Transfer(this.#sidecar, this.#memory, keys, deadline);
    await transfer.put(
      (some) => putFrames(overwrite, options, some),
      rows,
      routes([...chosen.values()]),
      codes,
    );
    for (let row = 0; row < count; row++)
      if (codes[row] === RPC_TIMEOUT) codes[row] = codes[chosen.get(first[row]!)!]!;
    return codes;
  }

  /** What is one piece of shared memory needs no copy; the rest is gathered, unless Mooncake is to fetch the pieces. */
  #routes(rows: SegmentRows, wanted: readonly number[], pieces: boolean): Routes {
    const direct: number[] = [];
    const gathered: number[] = [];
    for (const row of wanted) {
      const onePiece = rows.plan.starts[row] !== 0n;
      const asItIs = onePiece || (pieces && this.#scattered === "direct");
      const shared = asItIs && rows.pieces(row).every(({ region }) => region.shared);
      (shared ? direct : gathered).push(row);
    }
    return { direct, gathered };
  }

  /** Rows whose keys differ, round by round: Mooncake fills one destination a key and call. */
  #rounds(keys: FlatKeys, wanted: readonly number[]): number[][] {
    const first = this.#memory.addon.firstOfEqual(keys.bytes, keys.offsets);
    const seen = new Map<number, number>();
    const rounds: number[][] = [];
    for (const row of wanted) {
      const round = seen.get(first[row]!) ?? 0;
      seen.set(first[row]!, round + 1);
      rounds[round] ??= [];
      rounds[round].push(row);
    }
    return rounds;
  }

  /** Foreign memory, and memory without bytes, take no object: what is wrong depends on whether there is one. */
  async #readNothing(
    keys: FlatKeys,
    rows: readonly number[],
    results: BigInt64Array,
    deadline: Deadline,
  ): Promise<void> {
    if (rows.length === 0) return;
    const sizes = await this.#keyCalls.size(keySource(pickKeys(keys, rows)), deadline);
    for (const [index, row] of rows.entries())
      results[row] = sizes[index]! >= 0n ? BigInt(INVALID_PARAMS) : sizes[index]!;
  }
}
