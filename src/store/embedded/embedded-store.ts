import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { Addon, NativeStore } from "../../native/addon.js";
import { loadNative } from "../../native/load.js";
import type { Arena } from "../arena.js";
import { KeyList, type StoreKeys } from "../keys.js";
import type { KvStore, StoreHealth } from "../kv-store.js";
import { checkedSegments } from "../segments.js";
import { StoreResult } from "../store-result.js";
import { EmbeddedArena } from "./embedded-arena.js";
import { type EmbeddedStoreOptions, resolveEmbeddedOptions } from "./options.js";

/**
 * Mooncake's store inside this process: its result codes and its accounting, no server and no network. Copies run in
 * native threads, off the event loop.
 */
export class EmbeddedStore implements KvStore {
  readonly backend = "embedded";
  readonly #addon: Addon;
  readonly #store: NativeStore;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option, `ERR_NATIVE` when the addon can't be loaded, `ERR_STORE` when
   * the system refuses the memory.
   */
  constructor(options: EmbeddedStoreOptions = {}) {
    const { capacity, copyThreads } = resolveEmbeddedOptions(options);
    this.#addon = loadNative();
    this.#store = refusedMemory("open", () => this.#addon.storeOpen(capacity, copyThreads));
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

  async putFrom(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("putFrom", keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("putFrom", list, segments);
    const { bytes, offsets } = list.flat;
    const call = this.#addon.storePutFrom(this.#store, bytes, offsets, addresses, sizes, rowOffsets);
    return new StoreResult("putFrom", list, await this.#track(call));
  }

  async getInto(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("getInto", keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("getInto", list, segments);
    const { bytes, offsets } = list.flat;
    const call = this.#addon.storeGetInto(this.#store, bytes, offsets, addresses, sizes, rowOffsets);
    return new StoreResult("getInto", list, await this.#track(call));
  }

  async exists(keys: StoreKeys): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    const call = this.#addon.storeExists(this.#store, list.flat.bytes, list.flat.offsets);
    return new StoreResult("exists", list, await this.#track(call));
  }

  async size(keys: StoreKeys): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    const call = this.#addon.storeSize(this.#store, list.flat.bytes, list.flat.offsets);
    return new StoreResult("size", list, await this.#track(call));
  }

  async remove(keys: StoreKeys): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("remove", keys);
    const call = this.#addon.storeRemove(this.#store, list.flat.bytes, list.flat.offsets);
    return new StoreResult("remove", list, await this.#track(call));
  }

  async health(): Promise<StoreHealth> {
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    const usage = this.#addon.storeStats(this.#store);
    return {
      code: 0,
      healthy: true,
      message: `${usage.keys} objects, ${usage.used} of ${usage.capacity} bytes used`,
      usage,
    };
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

/** Runs a native call that fails only when the system has no memory to give. */
function refusedMemory<T>(operation: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: the system gives no memory: ${error instanceof Error ? error.message : String(error)}`,
      { operation },
      { cause: error },
    );
  }
}

function unsigned(operation: string, what: string, value: unknown): bigint {
  const whole = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof whole !== "bigint" || whole < 0n || whole >= 1n << 64n)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: the ${what} is ${describe(value)}; it is a whole number in [0, 2^64)`,
      { operation, value },
    );
  return whole;
}
