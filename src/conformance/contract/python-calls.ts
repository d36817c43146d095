import { SegmentTable } from "../../layout/segment-table.js";
import type { KvStore } from "../../store/kv-store.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import { CODE } from "../../store/shared/codes.js";
import type { Place } from "./client-memory.js";
import { flatKeys, keyId } from "./keys.js";
import type { ContractClient } from "./world.js";

const NOT_OPEN = CODE.INVALID_PARAMS;

/** A way to keep objects, or the code with which it is refused. */
export type Keeping = PutOptions | number;

/** An object to be written. */
export interface Source {
  readonly key: Uint8Array;
  readonly places: readonly Place[];
}

/**
 * The calls of Mooncake's Python client, said in calls of a `KvStore`. What they add is the client's own doing: limits of
 * its local buffer, sizes of 0 that some calls take for success, buffers larger than the object, and what a client answers
 * that is not set up.
 */
export class PythonCalls {
  readonly #client: ContractClient;

  constructor(client: ContractClient) {
    this.#client = client;
  }

  get #store(): KvStore | undefined {
    return this.#client.store;
  }

  /** `put_from` and `upsert_from`: a put of nothing is success. */
  async putFrom(source: Source, keeping: Keeping, upsert: boolean): Promise<number> {
    if (!this.#store) return NOT_OPEN;
    if (!upsert && bytesOf(source.places) === 0) return CODE.OK;
    return (await this.batchPutFrom([source], keeping, upsert))[0]!;
  }

  /** `batch_put_from`, `batch_upsert_from` and `batch_put_from_multi_buffers`. */
  async batchPutFrom(sources: readonly Source[], keeping: Keeping, upsert = false): Promise<number[]> {
    if (!this.#store) return sources.map(() => NOT_OPEN);
    if (typeof keeping === "number") return sources.map(() => keeping);
    const keys = flatKeys(sources.map(({ key }) => key));
    const segments = table(sources.map(({ places }) => places));
    const call = upsert
      ? this.#store.upsertFrom(keys, segments, keeping)
      : this.#store.putFrom(keys, segments, keeping);
    return [...(await call).codes];
  }

  /** `put` and `upsert`: through the local buffer. */
  async put(key: Uint8Array, value: Uint8Array, keeping: Keeping, upsert: boolean): Promise<number> {
    if (!this.#store || value.length > this.#client.localBufferSize) return NOT_OPEN;
    if (typeof keeping === "number") return keeping;
    const keys = flatKeys([key]);
    const call = upsert
      ? this.#store.upsert(keys, [value], keeping)
      : this.#store.put(keys, [value], keeping);
    return (await call).codes[0]!;
  }

  /** `put_parts`: the parts joined; nothing to store is success. */
  async putParts(key: Uint8Array, parts: readonly Uint8Array[]): Promise<number> {
    const value = Uint8Array.from(Buffer.concat(parts));
    if (this.#store && value.length === 0) return 0;
    return this.put(key, value, {}, false);
  }

  /** `put_batch`: one code, and nothing is stored when a value is empty or too large. */
  async putBatch(keys: readonly Uint8Array[], values: readonly Uint8Array[]): Promise<number> {
    if (!this.#store || keys.length !== values.length) return NOT_OPEN;
    if (values.some(({ length }) => length === 0 || length > this.#client.localBufferSize))
      return CODE.INVALID_PARAMS;
    if (keys.length === 0) return 0;
    const { codes } = await this.#store.put(flatKeys(keys), values);
    return codes.find((code) => code !== 0) ?? 0;
  }

  /** `get_into` and `batch_get_into`: the buffer may be larger than the object. */
  async batchGetInto(keys: readonly Uint8Array[], places: readonly Place[]): Promise<number[]> {
    const codes = await this.batchGetIntoMultiBuffers(
      keys,
      places.map((place) => [place]),
    );
    const large = [...codes.keys()].filter((i) => codes[i] === CODE.TRANSFER_FAIL);
    if (!this.#store || large.length === 0) return codes;
    const sizes = await this.#store.size(flatKeys(large.map((i) => keys[i]!)));
    const again = large.filter((i, n) => sizes.codes[n]! >= 0n && sizes.codes[n]! < BigInt(places[i]!.size));
    const exact = again.map((i) => {
      const size = Number(sizes.codes[large.indexOf(i)]);
      return [{ ...places[i]!, size }];
    });
    const read = await this.batchGetIntoMultiBuffers(
      again.map((i) => keys[i]!),
      exact,
    );
    for (const [n, i] of again.entries()) codes[i] = read[n]!;
    return codes;
  }

  /** `batch_get_into_multi_buffers`. */
  async batchGetIntoMultiBuffers(
    keys: readonly Uint8Array[],
    rows: readonly (readonly Place[])[],
  ): Promise<number[]> {
    if (!this.#store) return keys.map(() => NOT_OPEN);
    const { codes } = await this.#store.getInto(flatKeys(keys), table(rows));
    return Array.from(codes, Number);
  }

  /** `get`, `get_batch` and `get_buffer`: undefined for whatever failed, the local buffer being too small included. */
  async get(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    if (!this.#store) return keys.map(() => undefined);
    const { values } = await this.#store.get(flatKeys(keys));
    return keys.map((_, i) => {
      const value = values[i];
      return value && value.length <= this.#client.localBufferSize ? value : undefined;
    });
  }

  /** `is_exist` and `batch_is_exist`. */
  async exists(keys: readonly Uint8Array[]): Promise<number[]> {
    if (!this.#store) return keys.map(() => NOT_OPEN);
    return [...(await this.#store.exists(flatKeys(keys))).codes];
  }

  /** `get_size`. */
  async size(key: Uint8Array): Promise<number> {
    if (!this.#store) return NOT_OPEN;
    return Number((await this.#store.size(flatKeys([key]))).codes[0]);
  }

  /** `remove` and `batch_remove`. */
  async remove(keys: readonly Uint8Array[], force: boolean): Promise<number[]> {
    if (!this.#store) return keys.map(() => NOT_OPEN);
    return [...(await this.#store.remove(flatKeys(keys), { force })).codes];
  }

  /** `remove_by_regex`. */
  async removeByRegex(pattern: string, force: boolean): Promise<number> {
    return this.#store ? this.#store.removeByRegex(pattern, { force }) : NOT_OPEN;
  }

  /** `remove_all`. */
  async removeAll(force: boolean): Promise<number> {
    return this.#store ? this.#store.removeAll({ force }) : NOT_OPEN;
  }

  /** `batch_get_replica_desc`: keys that have none are left out. */
  async replicas(keys: readonly Uint8Array[]): Promise<Map<string, ReplicaShown[]>> {
    const shown = new Map<string, ReplicaShown[]>();
    if (!this.#store) return shown;
    const { replicas } = await this.#store.replicas(flatKeys(keys));
    for (const [i, list] of replicas.entries())
      if (list.length > 0)
        shown.set(
          keyId(keys[i]!),
          list.map(({ status, kind, size, address }) => ({
            status,
            memory: kind === "memory",
            size,
            address,
          })),
        );
    return shown;
  }
}

/** A replica as the recordings show it, with its address. */
export interface ReplicaShown {
  readonly status: string;
  readonly memory: boolean;
  readonly size: bigint;
  readonly address: bigint | undefined;
}

function bytesOf(places: readonly Place[]): number {
  return places.reduce((sum, { size }) => sum + size, 0);
}

function table(rows: readonly (readonly Place[])[]): SegmentTable {
  return SegmentTable.fromRows(
    rows.map((row) => row.map(({ address, size }) => ({ address, size: BigInt(size) }))),
  );
}
