import type { Addon, NativeStore, NativeStoreOptions } from "../../native/addon.js";
import { loadNative } from "../../native/load.js";
import type { BackendHealth, CallRunner, StoreBackend } from "../backend.js";
import type { Codes, ReplicaAnswer, Sizes, ValueAnswer } from "../shared/answers.js";
import { refusedMemory } from "../shared/arena-memory.js";
import type { PutOptions } from "../shared/call-options.js";
import type { Deadline } from "../shared/deadline.js";
import { unsigned } from "../shared/integers.js";
import type { KeyList } from "../shared/keys.js";
import type { Region } from "../shared/region.js";
import type { CheckedRows } from "../shared/rows.js";
import type { StoreUsage } from "../shared/usage.js";
import type { Values } from "../shared/values.js";
import { embeddedUsage, nativePutConfig } from "./native-arguments.js";
import { NativeLimit } from "./native-limit.js";
import { type EmbeddedStoreOptions, resolveEmbeddedOptions } from "./options.js";
import { PutSessions } from "./put-sessions.js";

/** The name of the one segment, as `ReplicaDescriptor.segment` gives it. */
const SEGMENT = "embedded";

/** What an embedded store can do for tests, besides `KvStore`. */
export interface EmbeddedExtras {
  /**
   * Lets time pass for a store with `clock: "manual"`: leases and timeouts run out, and rounds of eviction fall due.
   * Stores that follow the system's clock ignore it.
   *
   * @throws MooncakeKvError `ERR_STORE` for a time that is no whole number of milliseconds, and once the store is closed.
   */
  advanceClock(milliseconds: number): void;
  /**
   * Puts in parts for the client `id`, which is any whole number: what a client of another process leaves unfinished.
   *
   * @throws MooncakeKvError `ERR_STORE` for another id, and once the store is closed.
   */
  putSessions(id: number): PutSessions;
}

/**
 * Mooncake's store inside this process: its result codes, leases, accounting and eviction, no server and no network.
 * Copies run in native threads, off the event loop.
 */
export class EmbeddedBackend implements StoreBackend<EmbeddedExtras> {
  readonly name = "embedded";
  /** Nothing in it waits for anybody. */
  readonly deadlineMs: number = Number.POSITIVE_INFINITY;
  readonly #addon: Addon;
  readonly #store: NativeStore;

  /**
   * @param overrides what no URI can say: a capacity of 0 gives a store into which nothing fits.
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option, `ERR_NATIVE` when the addon can't be loaded, `ERR_STORE` when
   * the system refuses the memory.
   */
  constructor(options: EmbeddedStoreOptions = {}, overrides: Partial<NativeStoreOptions> = {}) {
    const resolved = { ...resolveEmbeddedOptions(options), ...overrides };
    this.#addon = loadNative();
    try {
      this.#store = this.#addon.storeOpen(resolved);
    } catch (error) {
      throw refusedMemory("open", error);
    }
  }

  register({ arena, address, size }: Region): Promise<number> {
    return arena?.handle === undefined
      ? this.#addon.storeRegister(this.#store, address, size)
      : this.#addon.storeRegisterArena(this.#store, arena.handle, address, size);
  }

  async unregister({ address }: Region): Promise<void> {
    await this.#addon.storeUnregister(this.#store, address);
  }

  putFrom(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return this.#writeFrom(this.#addon.storePutFrom, keys, rows, options, deadline);
  }

  upsertFrom(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return this.#writeFrom(this.#addon.storeUpsertFrom, keys, rows, options, deadline);
  }

  put(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return this.#write(this.#addon.storePut, keys, values, options, deadline);
  }

  upsert(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return this.#write(this.#addon.storeUpsert, keys, values, options, deadline);
  }

  async getInto(keys: KeyList, rows: CheckedRows, deadline: Deadline): Promise<Sizes> {
    const { bytes, offsets } = keys.flat;
    const { addresses, sizes, rowOffsets } = rows.forNative();
    using limit = new NativeLimit(this.#addon, deadline);
    const call = this.#addon.storeGetInto;
    return {
      codes: await call(this.#store, bytes, offsets, addresses, sizes, rowOffsets, ...limit.arguments),
    };
  }

  async get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer> {
    using limit = new NativeLimit(this.#addon, deadline);
    return await this.#addon.storeGet(this.#store, keys.flat.bytes, keys.flat.offsets, ...limit.arguments);
  }

  async exists(keys: KeyList, deadline: Deadline): Promise<Codes> {
    using limit = new NativeLimit(this.#addon, deadline);
    const { bytes, offsets } = keys.flat;
    return { codes: await this.#addon.storeExists(this.#store, bytes, offsets, ...limit.arguments) };
  }

  async size(keys: KeyList, deadline: Deadline): Promise<Sizes> {
    using limit = new NativeLimit(this.#addon, deadline);
    const { bytes, offsets } = keys.flat;
    return { codes: await this.#addon.storeSize(this.#store, bytes, offsets, ...limit.arguments) };
  }

  async replicas(keys: KeyList, deadline: Deadline): Promise<ReplicaAnswer> {
    using limit = new NativeLimit(this.#addon, deadline);
    const { bytes, offsets } = keys.flat;
    const found = await this.#addon.storeReplicas(this.#store, bytes, offsets, ...limit.arguments);
    const replicas = Array.from(found.codes, (count, i) =>
      count <= 0
        ? []
        : [
            {
              status: "COMPLETE" as const,
              kind: "memory" as const,
              size: found.sizes[i]!,
              segment: SEGMENT,
              address: found.addresses[i]!,
            },
          ],
    );
    return { codes: found.codes, replicas };
  }

  async remove(keys: KeyList, force: boolean, deadline: Deadline): Promise<Codes> {
    using limit = new NativeLimit(this.#addon, deadline);
    const { bytes, offsets } = keys.flat;
    return { codes: await this.#addon.storeRemove(this.#store, bytes, offsets, force, ...limit.arguments) };
  }

  async removeByRegex(pattern: string, force: boolean, deadline: Deadline): Promise<number> {
    using limit = new NativeLimit(this.#addon, deadline);
    const bytes = new TextEncoder().encode(pattern);
    return await this.#addon.storeRemoveByRegex(this.#store, bytes, force, ...limit.arguments);
  }

  async removeAll(force: boolean, deadline: Deadline): Promise<number> {
    using limit = new NativeLimit(this.#addon, deadline);
    return await this.#addon.storeRemoveAll(this.#store, force, ...limit.arguments);
  }

  async usage(): Promise<StoreUsage> {
    return embeddedUsage(this.#addon.storeStats(this.#store));
  }

  async health(): Promise<BackendHealth> {
    const usage = await this.usage();
    const message = `${usage.keys} objects, ${usage.used} of ${usage.capacity} bytes used`;
    return { code: 0, message, usage };
  }

  close(): Promise<void> {
    return this.#addon.storeClose(this.#store);
  }

  extras(calls: CallRunner): EmbeddedExtras {
    return {
      advanceClock: (milliseconds) => {
        calls.assertOpen("advanceClock");
        this.#addon.storeAdvance(this.#store, Number(unsigned("advanceClock", "time", milliseconds)));
      },
      putSessions: (id) => {
        calls.assertOpen("putSessions");
        const client = Number(unsigned("putSessions", "client", id));
        return new PutSessions(this.#addon, this.#store, client);
      },
    };
  }

  async #writeFrom(
    write: Addon["storePutFrom"],
    keys: KeyList,
    rows: CheckedRows,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Codes> {
    const { bytes, offsets } = keys.flat;
    const { addresses, sizes, rowOffsets } = rows.forNative();
    const config = nativePutConfig(options);
    using limit = new NativeLimit(this.#addon, deadline);
    return {
      codes: await write(
        this.#store,
        bytes,
        offsets,
        addresses,
        sizes,
        rowOffsets,
        config,
        ...limit.arguments,
      ),
    };
  }

  async #write(
    write: Addon["storePut"],
    keys: KeyList,
    values: Values,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Codes> {
    const { bytes, offsets } = keys.flat;
    using limit = new NativeLimit(this.#addon, deadline);
    const config = nativePutConfig(options);
    return { codes: await write(this.#store, bytes, offsets, values, config, ...limit.arguments) };
  }
}
