import type { NativeMooncakePutConfig } from "../../native/mooncake-addon.js";
import type { ValueAnswer } from "../shared/answers.js";
import { ArenaMemory } from "../shared/arena-memory.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { type KeyList, pickKeys } from "../shared/keys.js";
import type { Values } from "../shared/values.js";
import type { NativeCalls } from "./native-calls.js";
import { type Scratch, scratchPieces, scratchRows } from "./scratch.js";

/** No arena is larger. */
const LARGEST_VALUE = 2n ** 32n - 1n;

type Columns = [
  keyBytes: Uint8Array,
  keyOffsets: Uint32Array,
  addresses: BigUint64Array,
  sizes: BigUint64Array,
  rowOffsets: Uint32Array,
];

/** Puts and gets of values in JavaScript's own memory: they pass through an arena that lasts as long as the call. */
export class ValueCalls {
  readonly #calls: NativeCalls;

  constructor(calls: NativeCalls) {
    this.#calls = calls;
  }

  /** One code a key. */
  async put(
    keys: KeyList,
    values: Values,
    config: NativeMooncakePutConfig,
    deadline: Deadline,
  ): Promise<Int32Array> {
    const { addon, client } = this.#calls;
    const codes = new Int32Array(keys.length).fill(CODE.INVALID_PARAMS);
    const filled = values.flatMap((value, index) =>
      value.length > 0 ? [[index, value.length] as const] : [],
    );
    // The caller may change its values as soon as it has the promise, so that all are copied first.
    const pieces = [...scratchPieces(filled)].map((piece) => {
      const memory = takeMemory(piece.bytes);
      for (const [position, index] of piece.indexes.entries())
        memory?.bytes.set(values[index]!, piece.offsets[position]!);
      return { piece, memory };
    });
    try {
      for (const { piece, memory } of pieces) {
        const results = await this.#inMemory("put", piece, memory, keys, deadline, (id, columns) =>
          addon.mooncakePutFrom(client, id, ...columns, config),
        );
        for (const [position, index] of piece.indexes.entries()) codes[index] = Number(results[position]);
      }
    } finally {
      for (const { memory } of pieces) await memory?.free();
    }
    return codes;
  }

  /** The size or a code a key, and the values. */
  async get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer> {
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const codes = await this.#calls.run("get", deadline, (id) =>
      addon.mooncakeSize(client, id, bytes, offsets),
    );
    const values = new Array<Uint8Array | undefined>(keys.length).fill(undefined);
    const wanted: (readonly [number, number])[] = [];
    for (const [index, size] of codes.entries())
      if (size > LARGEST_VALUE) codes[index] = BigInt(CODE.INVALID_PARAMS);
      else if (size >= 0n) wanted.push([index, Number(size)]);
    for (const piece of scratchPieces(wanted)) {
      const memory = takeMemory(piece.bytes);
      try {
        const results = await this.#inMemory("get", piece, memory, keys, deadline, (id, columns) =>
          addon.mooncakeGetInto(client, id, ...columns),
        );
        for (const [position, index] of piece.indexes.entries()) {
          const start = piece.offsets[position]!;
          const result = BigInt(results[position]!);
          codes[index] = result;
          if (memory && result >= 0n) values[index] = memory.bytes.slice(start, start + Number(result));
        }
      } finally {
        await memory?.free();
      }
    }
    return { codes, values };
  }

  /** Runs one call on the values of one piece; the numbers that it gives, one a value. */
  async #inMemory(
    operation: string,
    piece: Scratch,
    memory: ArenaMemory | undefined,
    keys: KeyList,
    deadline: Deadline,
    start: (id: number, columns: Columns) => Promise<Int32Array | BigInt64Array>,
  ): Promise<ArrayLike<number | bigint>> {
    const { addon, client } = this.#calls;
    const all = (code: number): number[] => new Array<number>(piece.indexes.length).fill(code);
    if (memory === undefined) return all(CODE.BUFFER_OVERFLOW);
    if (deadline.expired) return all(CODE.RPC_TIMEOUT);
    const code = addon.mooncakeRegisterArena(client, memory.handle!);
    if (code !== CODE.OK) return all(code);
    try {
      const { bytes, offsets } = pickKeys(keys.flat, piece.indexes);
      const { addresses, sizes, rowOffsets } = scratchRows(piece, memory.baseAddress);
      return await this.#calls.run(operation, deadline, (id) =>
        start(id, [bytes, offsets, addresses, sizes, rowOffsets]),
      );
    } finally {
      await addon.mooncakeUnregister(client, memory.baseAddress);
    }
  }
}

/** Memory for some values; undefined when the system has none. */
function takeMemory(bytes: number): ArenaMemory | undefined {
  try {
    return ArenaMemory.allocate("scratch", Math.max(bytes, 1));
  } catch {
    return undefined;
  }
}
