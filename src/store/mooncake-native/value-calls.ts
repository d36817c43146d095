import type { NativeMooncakePutConfig } from "../../native/mooncake-addon.js";
import { EmbeddedArena } from "../embedded/embedded-arena.js";
import type { KeyList } from "../keys.js";
import type { NativeCalls } from "./native-calls.js";
import { keysAt, type Scratch, scratchPieces, scratchRows } from "./scratch.js";

const BUFFER_OVERFLOW = -10;
const INVALID_PARAMS = -600;
const RPC_TIMEOUT = -901;

/** No arena is larger. */
const LARGEST_VALUE = 2n ** 32n - 1n;

/** Puts and gets of values in JavaScript's own memory: they pass through an arena that lasts as long as the call. */
export class ValueCalls {
  readonly #calls: NativeCalls;

  constructor(calls: NativeCalls) {
    this.#calls = calls;
  }

  /** One code a key. */
  async put(
    keys: KeyList,
    values: readonly Uint8Array[],
    config: NativeMooncakePutConfig,
    deadlineMs: number,
  ): Promise<Int32Array> {
    const { addon, client } = this.#calls;
    const codes = new Int32Array(keys.length).fill(INVALID_PARAMS);
    const filled = values.flatMap((value, index) =>
      value.length > 0 ? [[index, value.length] as const] : [],
    );
    const end = performance.now() + deadlineMs;
    // The caller may change its values as soon as it has the promise, so that all are copied first.
    const pieces = [...scratchPieces(filled)].map((piece) => ({ piece, arena: this.#arena(piece.bytes) }));
    for (const { piece, arena } of pieces)
      for (const [position, index] of piece.indexes.entries())
        arena?.bytes.set(values[index]!, piece.offsets[position]!);
    for (const { piece, arena } of pieces) {
      const results = await this.#inArena("put", piece, arena, keys, end, (id, columns) =>
        addon.mooncakePutFrom(client, id, ...columns, config),
      );
      for (const [position, index] of piece.indexes.entries()) codes[index] = Number(results[position]);
      await arena?.close();
    }
    return codes;
  }

  /** The size or a code a key, and the values. */
  async get(
    keys: KeyList,
    deadlineMs: number,
  ): Promise<{ codes: BigInt64Array; values: (Uint8Array | undefined)[] }> {
    const { addon, client } = this.#calls;
    const end = performance.now() + deadlineMs;
    const { bytes, offsets } = keys.flat;
    const codes = await this.#calls.run("get", deadlineMs, (id) =>
      addon.mooncakeSize(client, id, bytes, offsets),
    );
    const values = new Array<Uint8Array | undefined>(keys.length).fill(undefined);
    const wanted: (readonly [number, number])[] = [];
    for (const [index, size] of codes.entries())
      if (size > LARGEST_VALUE) codes[index] = BigInt(INVALID_PARAMS);
      else if (size >= 0n) wanted.push([index, Number(size)]);
    for (const piece of scratchPieces(wanted)) {
      const arena = this.#arena(piece.bytes);
      const results = await this.#inArena("get", piece, arena, keys, end, (id, columns) =>
        addon.mooncakeGetInto(client, id, ...columns),
      );
      for (const [position, index] of piece.indexes.entries()) {
        const start = piece.offsets[position]!;
        const result = BigInt(results[position]!);
        codes[index] = result;
        if (arena && result >= 0n) values[index] = arena.bytes.slice(start, start + Number(result));
      }
      await arena?.close();
    }
    return { codes, values };
  }

  /** Runs one call on the values of one piece; the numbers that it gives, one a value. */
  async #inArena(
    operation: string,
    piece: Scratch,
    arena: EmbeddedArena | undefined,
    keys: KeyList,
    end: number,
    start: (id: number, columns: Columns) => Promise<Int32Array | BigInt64Array>,
  ): Promise<ArrayLike<number | bigint>> {
    if (arena === undefined) return new Array<number>(piece.indexes.length).fill(BUFFER_OVERFLOW);
    const left = end - performance.now();
    if (left <= 0) return new Array<number>(piece.indexes.length).fill(RPC_TIMEOUT);
    const { bytes, offsets } = keysAt(keys, piece.indexes);
    const { addresses, sizes, rowOffsets } = scratchRows(piece, arena);
    return this.#calls.run(operation, left, (id) =>
      start(id, [bytes, offsets, addresses, sizes, rowOffsets]),
    );
  }

  /** Memory for some values; undefined when the system has none. */
  #arena(bytes: number): EmbeddedArena | undefined {
    const { addon, client } = this.#calls;
    try {
      const created = addon.arenaCreate(Math.max(bytes, 1));
      addon.mooncakeRegisterArena(client, created.handle);
      return new EmbeddedArena(addon, created, (address) =>
        addon.mooncakeUnregister(client, address).then(() => {}),
      );
    } catch {
      return undefined;
    }
  }
}

type Columns = [
  keyBytes: Uint8Array,
  keyOffsets: Uint32Array,
  addresses: BigUint64Array,
  sizes: BigUint64Array,
  rowOffsets: Uint32Array,
];
