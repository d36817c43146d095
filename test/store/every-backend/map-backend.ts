import {
  type Answer,
  type BackendHealth,
  CODE,
  type KeyList,
  type Region,
  type StoreBackend,
  type ValueAnswer,
} from "../../../src/store/index.js";
import type { CheckedRows } from "../../../src/store/shared/rows.js";

/** A backend as docs/stores.md says that one is made: objects in a map of this process, in memory of arenas alone. */
export class MapBackend implements StoreBackend {
  readonly name = "map";
  readonly deadlineMs: number = Number.POSITIVE_INFINITY;
  readonly heapArenas = true;
  readonly lacks = { replicas: "a map has no replicas" } as const;
  readonly #objects: Map<string, Uint8Array>;

  /** Backends over one map share their objects. */
  constructor(objects: Map<string, Uint8Array> = new Map()) {
    this.#objects = objects;
  }

  async register({ arena }: Region): Promise<number> {
    return arena === undefined ? CODE.INVALID_PARAMS : CODE.OK;
  }

  async putFrom(keys: KeyList, rows: CheckedRows): Promise<Answer<Int32Array>> {
    return this.#write(keys, (i) => (rows.isUsable(i) ? gather(rows, i) : undefined), false);
  }

  async upsertFrom(keys: KeyList, rows: CheckedRows): Promise<Answer<Int32Array>> {
    return this.#write(keys, (i) => (rows.isUsable(i) ? gather(rows, i) : undefined), true);
  }

  async put(keys: KeyList, values: readonly Uint8Array[]): Promise<Answer<Int32Array>> {
    return this.#write(keys, (i) => values[i]!.slice(), false);
  }

  async upsert(keys: KeyList, values: readonly Uint8Array[]): Promise<Answer<Int32Array>> {
    return this.#write(keys, (i) => values[i]!.slice(), true);
  }

  async getInto(keys: KeyList, rows: CheckedRows): Promise<Answer<BigInt64Array>> {
    return {
      codes: BigInt64Array.from({ length: keys.length }, (_, i) => {
        const value = this.#objects.get(keys.at(i));
        if (value === undefined) return BigInt(CODE.OBJECT_NOT_FOUND);
        if (!rows.isUsable(i) || rows.bytes(i) < value.length) return BigInt(CODE.INVALID_PARAMS);
        if (rows.bytes(i) > value.length) return BigInt(CODE.TRANSFER_FAIL);
        let at = 0;
        for (const bytes of placesOf(rows, i)) {
          bytes.set(value.subarray(at, at + bytes.length));
          at += bytes.length;
        }
        return BigInt(value.length);
      }),
    };
  }

  async get(keys: KeyList): Promise<ValueAnswer> {
    const values = Array.from({ length: keys.length }, (_, i) => this.#objects.get(keys.at(i))?.slice());
    return {
      codes: BigInt64Array.from(values, (value) => BigInt(value?.length ?? CODE.OBJECT_NOT_FOUND)),
      values,
    };
  }

  async exists(keys: KeyList): Promise<Answer<Int32Array>> {
    return { codes: this.#each(keys, (key) => Number(this.#objects.has(key))) };
  }

  async size(keys: KeyList): Promise<Answer<BigInt64Array>> {
    const sizes = this.#each(keys, (key) => this.#objects.get(key)?.length ?? CODE.OBJECT_NOT_FOUND);
    return { codes: BigInt64Array.from(sizes, BigInt) };
  }

  async remove(keys: KeyList): Promise<Answer<Int32Array>> {
    return {
      codes: this.#each(keys, (key) => (this.#objects.delete(key) ? CODE.OK : CODE.OBJECT_NOT_FOUND)),
    };
  }

  async removeByRegex(pattern: string): Promise<number> {
    const found = [...this.#objects.keys()].filter((key) => new RegExp(pattern).test(key));
    for (const key of found) this.#objects.delete(key);
    return found.length;
  }

  async removeAll(): Promise<number> {
    const { size } = this.#objects;
    this.#objects.clear();
    return size;
  }

  async health(): Promise<BackendHealth> {
    return { code: 0, message: `${this.#objects.size} objects` };
  }

  async close(): Promise<void> {}

  #write(
    keys: KeyList,
    value: (index: number) => Uint8Array | undefined,
    overwrite: boolean,
  ): Answer<Int32Array> {
    const written = new Set<string>();
    const codes = this.#each(keys, (key, i) => {
      const bytes = value(i);
      if (key === "" || bytes === undefined || bytes.length === 0) return CODE.INVALID_PARAMS;
      if (overwrite ? !written.has(key) : !this.#objects.has(key)) this.#objects.set(key, bytes);
      written.add(key);
      return CODE.OK;
    });
    return { codes };
  }

  #each(keys: KeyList, code: (key: string, index: number) => number): Int32Array {
    return Int32Array.from({ length: keys.length }, (_, i) => code(keys.at(i), i));
  }
}

/** The bytes of a row in the arenas where they lie. */
function placesOf(rows: CheckedRows, row: number): Uint8Array[] {
  return rows.pieces(row).map(({ region, address, size }) => {
    const start = Number(address - region.arena!.baseAddress);
    return region.arena!.bytes.subarray(start, start + Number(size));
  });
}

function gather(rows: CheckedRows, row: number): Uint8Array {
  return new Uint8Array(Buffer.concat(placesOf(rows, row)));
}
