import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { Addon, NativeStore, NativeStoreOptions } from "../../native/addon.js";
import { loadNative } from "../../native/load.js";
import type { Arena } from "../arena.js";
import { KeyList, type StoreKeys } from "../keys.js";
import type { KvStore, StoreHealth } from "../kv-store.js";
import {
  type CallOptions,
  checkedCallOptions,
  checkedPutOptions,
  checkedRemoveOptions,
  type PutOptions,
  type RemoveOptions,
} from "../put-options.js";
import { checkedSegments } from "../segments.js";
import { ReadResult, ReplicaResult, StoreResult } from "../store-result.js";
import type { StoreUsage } from "../store-usage.js";
import { checkedValues } from "../values.js";
import { EmbeddedArena } from "./embedded-arena.js";
import { embeddedUsage, nativePutConfig, refusedMemory, unsigned } from "./native-arguments.js";
import { type EmbeddedStoreOptions, resolveEmbeddedOptions } from "./options.js";
import { PutSessions } from "./put-sessions.js";

/** The name of the one segment, as `ReplicaDescriptor.segment` gives it. */
const SEGMENT = "embedded";

/**
 * Mooncake's store inside this process: its result codes, leases, accounting and eviction, no server and no network.
 * Copies run in native threads, off the event loop.
 */
export class EmbeddedStore implements KvStore {
  readonly backend = "embedded";
  readonly #addon: Addon;
  readonly #store: NativeStore;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * @param overrides what no URI can say: a capacity of 0 gives a store into which nothing fits.
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option, `ERR_NATIVE` when the addon can't be loaded, `ERR_STORE` when
   * the system refuses the memory.
   */
  constructor(options: EmbeddedStoreOptions = {}, overrides: Partial<NativeStoreOptions> = {}) {
    const resolved = { ...resolveEmbeddedOptions(options), ...overrides };
    this.#addon = loadNative();
    this.#store = refusedMemory("open", () => this.#addon.storeOpen(resolved));
  }

  async createArena(bytes: number): Promise<Arena> {
    this.#assertOpen("createArena");
    const largest = Math.min(constants.MAX_LENGTH, 2 ** 32 - 1);
    if (!Number.isInteger(bytes) || bytes < 1 || bytes > largest)
      throw new MooncakeKvError(
        "ERR_STORE",
        `createArena: the size is ${describe(bytes)}; an arena has a whole number of bytes from 1 to ${largest}, the most that Node shows as one array of bytes; make several arenas for more`,
        { bytes, largest },
      );
    const created = refusedMemory("createArena", () => this.#addon.arenaCreate(bytes));
    const code = await this.#track(this.#addon.storeRegisterArena(this.#store, created.handle));
    if (code !== 0) {
      this.#addon.arenaClose(created.handle);
      throw new MooncakeKvError(
        "ERR_STORE",
        `createArena: the new memory overlaps a registered region (code ${code}); unregister regions before their memory is freed`,
        { code },
      );
    }
    return new EmbeddedArena(this.#addon, created, (address) => this.#release(address));
  }

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.#assertOpen("registerBuffer");
    const size = unsigned("registerBuffer", "size", bytes);
    return this.#track(
      this.#addon.storeRegister(this.#store, unsigned("registerBuffer", "address", address), size),
    );
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    this.#assertOpen("unregisterBuffer");
    return this.#track(
      this.#addon.storeUnregister(this.#store, unsigned("unregisterBuffer", "address", address)),
    );
  }

  putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#writeFrom("putFrom", keys, segments, options);
  }

  put(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#write("put", keys, values, options);
  }

  upsertFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#writeFrom("upsertFrom", keys, segments, options);
  }

  upsert(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#write("upsert", keys, values, options);
  }

  async getInto(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: CallOptions,
  ): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("getInto", keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("getInto", list, segments);
    const { deadlineMs } = checkedCallOptions("getInto", options);
    const { bytes, offsets } = list.flat;
    const call = this.#addon.storeGetInto(
      this.#store,
      bytes,
      offsets,
      addresses,
      sizes,
      rowOffsets,
      deadlineMs,
    );
    return new StoreResult("getInto", list, await this.#track(call));
  }

  async get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult> {
    const list = this.#begin("get", keys);
    const { deadlineMs } = checkedCallOptions("get", options);
    const call = this.#addon.storeGet(this.#store, list.flat.bytes, list.flat.offsets, deadlineMs);
    const { codes, values } = await this.#track(call);
    return new ReadResult(list, codes, values);
  }

  async exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    const { deadlineMs } = checkedCallOptions("exists", options);
    const call = this.#addon.storeExists(this.#store, list.flat.bytes, list.flat.offsets, deadlineMs);
    return new StoreResult("exists", list, await this.#track(call));
  }

  async size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    const { deadlineMs } = checkedCallOptions("size", options);
    const call = this.#addon.storeSize(this.#store, list.flat.bytes, list.flat.offsets, deadlineMs);
    return new StoreResult("size", list, await this.#track(call));
  }

  async replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult> {
    const list = this.#begin("replicas", keys);
    const { deadlineMs } = checkedCallOptions("replicas", options);
    const call = this.#addon.storeReplicas(this.#store, list.flat.bytes, list.flat.offsets, deadlineMs);
    const { codes, sizes, addresses } = await this.#track(call);
    const replicas = Array.from(codes, (code, i) =>
      code === 1
        ? [
            {
              status: "COMPLETE",
              kind: "memory" as const,
              size: sizes[i]!,
              segment: SEGMENT,
              address: addresses[i]!,
            },
          ]
        : [],
    );
    return new ReplicaResult(list, codes, replicas);
  }

  async remove(keys: StoreKeys, options?: RemoveOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("remove", keys);
    const { force = false, deadlineMs } = checkedRemoveOptions("remove", options);
    const { bytes, offsets } = list.flat;
    const call = this.#addon.storeRemove(this.#store, bytes, offsets, force, deadlineMs);
    return new StoreResult("remove", list, await this.#track(call));
  }

  async removeByRegex(pattern: string, options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeByRegex");
    if (typeof pattern !== "string")
      throw new MooncakeKvError(
        "ERR_STORE",
        `removeByRegex: the pattern is ${describe(pattern)}; it is a regular expression as a string`,
        { pattern },
      );
    const { force = false, deadlineMs } = checkedRemoveOptions("removeByRegex", options);
    return this.#track(
      this.#addon.storeRemoveByRegex(this.#store, new TextEncoder().encode(pattern), force, deadlineMs),
    );
  }

  async removeAll(options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeAll");
    const { force = false, deadlineMs } = checkedRemoveOptions("removeAll", options);
    return this.#track(this.#addon.storeRemoveAll(this.#store, force, deadlineMs));
  }

  async usage(options?: CallOptions): Promise<StoreUsage> {
    this.#assertOpen("usage");
    checkedCallOptions("usage", options);
    return embeddedUsage(this.#addon.storeStats(this.#store));
  }

  async health(): Promise<StoreHealth> {
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    const usage = embeddedUsage(this.#addon.storeStats(this.#store));
    return {
      code: 0,
      healthy: true,
      message: `${usage.keys} objects, ${usage.used} of ${usage.capacity} bytes used`,
      usage,
    };
  }

  /**
   * Lets time pass for a store with `clock: "manual"`: leases and timeouts run out, and rounds of eviction fall due.
   * Stores that follow the system's clock ignore it.
   */
  advanceClock(milliseconds: number): void {
    this.#assertOpen("advanceClock");
    this.#addon.storeAdvance(this.#store, Number(unsigned("advanceClock", "time", milliseconds)));
  }

  /** Puts in parts for the client `id`, which is any whole number: what a client of another process leaves unfinished. */
  putSessions(id: number): PutSessions {
    this.#assertOpen("putSessions");
    return new PutSessions(this.#addon, this.#store, Number(unsigned("putSessions", "client", id)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#addon.storeClose(this.#store);
  }

  async #writeFrom(
    operation: "putFrom" | "upsertFrom",
    keys: StoreKeys,
    segments: SegmentTable,
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const { addresses, sizes, rowOffsets } = checkedSegments(operation, list, segments);
    const checked = checkedPutOptions(operation, options);
    const { bytes, offsets } = list.flat;
    const write = operation === "putFrom" ? this.#addon.storePutFrom : this.#addon.storeUpsertFrom;
    const call = write(
      this.#store,
      bytes,
      offsets,
      addresses,
      sizes,
      rowOffsets,
      nativePutConfig(checked),
      checked.deadlineMs,
    );
    return new StoreResult(operation, list, await this.#track(call));
  }

  async #write(
    operation: "put" | "upsert",
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const checked = checkedPutOptions(operation, options);
    const { bytes, offsets } = list.flat;
    const write = operation === "put" ? this.#addon.storePut : this.#addon.storeUpsert;
    const call = write(
      this.#store,
      bytes,
      offsets,
      checkedValues(operation, list, values),
      nativePutConfig(checked),
      checked.deadlineMs,
    );
    return new StoreResult(operation, list, await this.#track(call));
  }

  /** Takes an arena's memory away; a closed store has let go of it already. */
  async #release(address: bigint): Promise<void> {
    if (this.#closing) await this.#closing;
    else await this.#track(this.#addon.storeUnregister(this.#store, address));
  }

  #begin(operation: string, keys: StoreKeys): KeyList {
    this.#assertOpen(operation);
    return new KeyList(keys);
  }

  #assertOpen(operation: string): void {
    if (this.#closing)
      throw new MooncakeKvError("ERR_STORE", `${operation}: the store is closed`, { operation });
  }

  /** Remembers a call until it is settled, so that `close` can wait for it. */
  #track<T>(call: Promise<T>): Promise<T> {
    this.#running.add(call);
    const forget = (): void => {
      this.#running.delete(call);
    };
    call.then(forget, forget);
    return call;
  }
}
