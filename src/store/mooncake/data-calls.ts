import { constants } from "node:buffer";
import type { FlatKeys } from "../../key/key-table.js";
import type { ValueAnswer } from "../shared/answers.js";
import type { PutOptions } from "../shared/call-options.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { keySource, pickKeys } from "../shared/keys.js";
import { allSettled } from "../shared/lanes.js";
import type { CheckedRows } from "../shared/rows.js";
import type { Values } from "../shared/values.js";
import type { KeyCalls } from "./key-calls.js";
import { putFrames } from "./put-frames.js";
import { type RowBytes, SegmentRows, ValueRows } from "./row-bytes.js";
import type { SharedMemories } from "./shared-memory.js";
import type { Sidecar } from "./sidecar.js";
import { type Routes, Transfer } from "./transfer.js";

/** How often a value is read again when its size changed between the question and the read. */
const READS = 3;

/**
 * Milliseconds that a call must have left for Mooncake to touch the caller's memory itself. A sidecar that is still at it
 * after so long is stuck, and may be ended; one that is ended for an impatient caller would fail everybody else.
 */
const PATIENT_MS = 10_000;

/** The calls that move bytes. */
export class DataCalls {
  readonly #sidecar: Sidecar;
  readonly #memories: SharedMemories;
  readonly #keyCalls: KeyCalls;
  readonly #scattered: "gather" | "direct";

  constructor(
    sidecar: Sidecar,
    memories: SharedMemories,
    keyCalls: KeyCalls,
    scattered: "gather" | "direct",
  ) {
    this.#sidecar = sidecar;
    this.#memories = memories;
    this.#keyCalls = keyCalls;
    this.#scattered = scattered;
  }

  /** Puts (or upserts, with `overwrite`) rows of registered memory. */
  putFrom(
    keys: FlatKeys,
    checked: CheckedRows,
    overwrite: boolean,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const rows = new SegmentRows(this.#memories, checked);
    const refused = (row: number): boolean => !checked.isUsable(row);
    const routes = (wanted: readonly number[]): Routes => this.#routes(checked, wanted, !overwrite, deadline);
    return this.#put(keys, rows, refused, routes, overwrite, options, deadline);
  }

  /** Puts (or upserts) values, whose bytes nobody changes any more. */
  put(
    keys: FlatKeys,
    values: Values,
    overwrite: boolean,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const gathered = (rows: readonly number[]): Routes => ({ direct: [], gathered: rows });
    return this.#put(keys, new ValueRows(values), () => false, gathered, overwrite, options, deadline);
  }

  /** Reads into rows of registered memory. */
  async getInto(keys: FlatKeys, checked: CheckedRows, deadline: Deadline): Promise<BigInt64Array> {
    const rows = new SegmentRows(this.#memories, checked);
    const count = keys.offsets.length - 1;
    const results = new BigInt64Array(count).fill(BigInt(CODE.RPC_TIMEOUT));
    const useless: number[] = [];
    const wanted: number[] = [];
    for (let row = 0; row < count; row++)
      (checked.isUsable(row) && checked.bytes(row) > 0n ? wanted : useless).push(row);
    const transfer = new Transfer(this.#sidecar, this.#memories, keys, deadline);
    await allSettled([
      ...this.#rounds(keys, wanted).map((round) =>
        transfer.get(rows, this.#routes(checked, round, true, deadline), results),
      ),
      this.#readNothing(keys, useless, results, deadline),
    ]);
    return results;
  }

  /** Reads values into memory of their own. */
  async get(keys: FlatKeys, deadline: Deadline): Promise<ValueAnswer> {
    const count = keys.offsets.length - 1;
    const first = this.#memories.addon.firstOfEqual(keys.bytes, keys.offsets);
    const codes = new BigInt64Array(count).fill(BigInt(CODE.RPC_TIMEOUT));
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
      const value = size < 0n ? undefined : memoryFor(size);
      codes[row] = size < 0n ? size : BigInt(value === undefined ? CODE.INVALID_PARAMS : CODE.RPC_TIMEOUT);
      if (value === undefined) continue;
      values[row] = value;
      reading.push(row);
    }
    const rows = new ValueRows(values as Uint8Array[]);
    const transfer = new Transfer(this.#sidecar, this.#memories, keys, deadline);
    await transfer.get(rows, { direct: [], gathered: reading }, codes);
    const failed = reading.filter((row) => codes[row]! < 0n);
    for (const row of failed) values[row] = undefined;
    const otherSize = [CODE.INVALID_PARAMS, CODE.TRANSFER_FAIL].map(BigInt);
    return failed.filter((row) => otherSize.includes(codes[row]!));
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
    const codes = new Int32Array(count).fill(CODE.RPC_TIMEOUT);
    const first = this.#memories.addon.firstOfEqual(keys.bytes, keys.offsets);
    /** The row that stands for all rows of its key: the first that can be stored. */
    const chosen = new Map<number, number>();
    for (let row = 0; row < count; row++) {
      const emptyKey = keys.offsets[row] === keys.offsets[row + 1];
      if (emptyKey || refused(row) || rows.size(row) === 0) codes[row] = CODE.INVALID_PARAMS;
      else if (!chosen.has(first[row]!)) chosen.set(first[row]!, row);
    }
    const transfer = new Transfer(this.#sidecar, this.#memories, keys, deadline);
    await transfer.put(
      (some) => putFrames(overwrite, options, some),
      rows,
      routes([...chosen.values()]),
      codes,
    );
    for (let row = 0; row < count; row++)
      if (codes[row] === CODE.RPC_TIMEOUT) codes[row] = codes[chosen.get(first[row]!)!]!;
    return codes;
  }

  /**
   * What is one piece of mapped memory needs no copy; the rest is gathered, unless Mooncake is to fetch the pieces. So is
   * everything of a caller who may not wait until the sidecar is done with it.
   */
  #routes(rows: CheckedRows, wanted: readonly number[], pieces: boolean, deadline: Deadline): Routes {
    const patient = deadline.signal === undefined && deadline.left >= PATIENT_MS;
    const direct: number[] = [];
    const gathered: number[] = [];
    for (const row of wanted) {
      const asItIs = patient && (rows.isOneRun(row) || (pieces && this.#scattered === "direct"));
      const mapped =
        asItIs && rows.pieces(row).every(({ region }) => this.#memories.of(region)?.mapped === true);
      (mapped ? direct : gathered).push(row);
    }
    return { direct, gathered };
  }

  /** Rows whose keys differ, round by round: Mooncake fills one destination a key and call. */
  #rounds(keys: FlatKeys, wanted: readonly number[]): number[][] {
    const first = this.#memories.addon.firstOfEqual(keys.bytes, keys.offsets);
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
      results[row] = sizes[index]! >= 0n ? BigInt(CODE.INVALID_PARAMS) : sizes[index]!;
  }
}

/** Memory for a value; undefined for one that is too large for one typed array, or for the system. */
function memoryFor(size: bigint): Uint8Array | undefined {
  if (size > BigInt(constants.MAX_LENGTH)) return undefined;
  try {
    return new Uint8Array(Number(size));
  } catch {
    return undefined;
  }
}
