import { describe, MooncakeKvError } from "../errors.js";
import type { SegmentTable } from "../layout/segment-table.js";
import type { Arena } from "./arena.js";
import type { CallRunner, LackedCall, StoreBackend } from "./backend.js";
import type { KvStore, StoreHealth } from "./kv-store.js";
import { type Answer, allFailed, type Codes } from "./shared/answers.js";
import {
  type CallOptions,
  checkedCallOptions,
  checkedPutOptions,
  checkedRemoveOptions,
  type PutOptions,
  type RemoveOptions,
} from "./shared/call-options.js";
import { CODE } from "./shared/codes.js";
import { Deadline } from "./shared/deadline.js";
import { unsigned } from "./shared/integers.js";
import { KeyList, type StoreKeys } from "./shared/keys.js";
import { checkedSegments } from "./shared/segments.js";
import type { StoreUsage } from "./shared/usage.js";
import { checkedValues, type Values } from "./shared/values.js";
import { StoreArena } from "./store-arena.js";
import { StoreMemory } from "./store-memory.js";
import { ReadResult, ReplicaResult, type StoreOperation, StoreResult } from "./store-result.js";

/**
 * The one implementation of `KvStore`: everything that is the same for all backends. It checks arguments and options, knows
 * whether the store is open and which calls are under way, owns the registered memory, and makes result objects; a
 * `StoreBackend` does the rest.
 */
export class CheckedStore implements KvStore {
  readonly backend: string;
  readonly #backend: StoreBackend;
  readonly #memory: StoreMemory;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(backend: StoreBackend) {
    this.backend = backend.name;
    this.#backend = backend;
    this.#memory = new StoreMemory(backend, (work) => void this.#track(work));
  }

  /** A store over a backend, which belongs to it from now on. What only that backend can do is there, too. */
  static over<Extras extends object>(backend: StoreBackend<Extras>): KvStore & Extras {
    const store = new CheckedStore(backend);
    const extras = backend.extras?.(store.#runner);
    if (extras) Object.defineProperties(store, Object.getOwnPropertyDescriptors(extras));
    return store as CheckedStore & Extras;
  }

  async createArena(bytes: number): Promise<Arena> {
    this.#assertOpen("createArena");
    return new StoreArena(await this.#track(this.#memory.createArena(bytes)));
  }

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.#assertOpen("registerBuffer");
    const first = unsigned("registerBuffer", "address", address);
    const size = unsigned("registerBuffer", "size", bytes);
    return this.#track(this.#memory.register(first, size));
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    this.#assertOpen("unregisterBuffer");
    return this.#track(this.#memory.unregister(unsigned("unregisterBuffer", "address", address)));
  }

  async putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#writeFrom("putFrom", keys, segments, options);
  }

  async put(
    keys: StoreKeys,
    values: Values,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#write("put", keys, values, options);
  }

  async upsertFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#writeFrom("upsertFrom", keys, segments, options);
  }

  async upsert(
    keys: StoreKeys,
    values: Values,
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
    const columns = checkedSegments("getInto", list, segments);
    const rows = this.#memory.regions.check(columns);
    const { codes, reasons } = await this.#codes(checkedCallOptions("getInto", options), (deadline) =>
      this.#memory.regions.withRegions(rows, () => this.#backend.getInto(list, rows, deadline)),
    );
    return new StoreResult("getInto", list, codes, reasons);
  }

  async get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult> {
    const list = this.#begin("get", keys);
    const { codes, values, reasons } = await this.#codes(checkedCallOptions("get", options), (deadline) =>
      this.#backend.get(list, deadline),
    );
    const read = Array.from(codes, (code, index) => (code >= 0n ? values[index] : undefined));
    return new ReadResult(list, codes, read, reasons);
  }

  async exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    const { codes, reasons } = await this.#codes(checkedCallOptions("exists", options), (deadline) =>
      this.#backend.exists(list, deadline),
    );
    return new StoreResult("exists", list, codes, reasons);
  }

  async size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    const { codes, reasons } = await this.#codes(checkedCallOptions("size", options), (deadline) =>
      this.#backend.size(list, deadline),
    );
    return new StoreResult("size", list, codes, reasons);
  }

  async replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult> {
    const list = this.#begin("replicas", keys);
    const checked = checkedCallOptions("replicas", options);
    const { codes, replicas, reasons } = this.#backend.replicas
      ? await this.#codes(checked, (deadline) => this.#backend.replicas!(list, deadline))
      : { ...this.#lacks("replicas", list), replicas: Array.from({ length: list.length }, () => []) };
    return new ReplicaResult(list, codes, replicas, reasons);
  }

  async remove(keys: StoreKeys, options?: RemoveOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("remove", keys);
    const checked = checkedRemoveOptions("remove", options);
    const { codes, reasons } = this.#backend.remove
      ? await this.#codes(checked, (deadline) =>
          this.#backend.remove!(list, checked.force ?? false, deadline),
        )
      : this.#lacks("remove", list);
    return new StoreResult("remove", list, codes, reasons);
  }

  async removeByRegex(pattern: string, options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeByRegex");
    const checked = checkedRemoveOptions("removeByRegex", options);
    if (typeof pattern !== "string" || !pattern.isWellFormed())
      throw new MooncakeKvError(
        "ERR_STORE",
        `removeByRegex: the pattern is ${describe(pattern)}; it is a regular expression as a string that UTF-8 can carry`,
        { pattern },
      );
    if (!this.#backend.removeByRegex) return CODE.NOT_SUPPORTED;
    return this.#number(checked, (deadline) =>
      this.#backend.removeByRegex!(pattern, checked.force ?? false, deadline),
    );
  }

  async removeAll(options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeAll");
    const checked = checkedRemoveOptions("removeAll", options);
    if (!this.#backend.removeAll) return CODE.NOT_SUPPORTED;
    return this.#number(checked, (deadline) => this.#backend.removeAll!(checked.force ?? false, deadline));
  }

  async usage(options?: CallOptions): Promise<StoreUsage | undefined> {
    this.#assertOpen("usage");
    const checked = checkedCallOptions("usage", options);
    return this.#timed(checked, async (deadline) => this.#backend.usage?.(deadline));
  }

  async health(options?: CallOptions): Promise<StoreHealth> {
    const checked = checkedCallOptions("health", options);
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    return this.#timed(checked, async (deadline) => {
      try {
        const health = await this.#backend.health(deadline);
        if (health.code !== 0) deadline.signal?.throwIfAborted();
        return { ...health, healthy: health.code === 0 };
      } catch (error) {
        deadline.signal?.throwIfAborted();
        return { code: 2, healthy: false, message: error instanceof Error ? error.message : describe(error) };
      }
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    const ended = this.#backend.close();
    this.#memory.end(ended);
    await ended;
  }

  async #writeFrom(
    operation: "putFrom" | "upsertFrom",
    keys: StoreKeys,
    segments: SegmentTable,
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const columns = checkedSegments(operation, list, segments);
    const checked = checkedPutOptions(operation, options);
    const refused = this.#refusal(operation, list, checked);
    if (refused) return new StoreResult(operation, list, refused.codes, refused.reasons);
    const rows = this.#memory.regions.check(columns);
    const { codes, reasons } = await this.#codes(checked, (deadline) =>
      this.#memory.regions.withRegions(rows, () => this.#backend[operation]!(list, rows, checked, deadline)),
    );
    return new StoreResult(operation, list, codes, reasons);
  }

  async #write(
    operation: "put" | "upsert",
    keys: StoreKeys,
    values: Values,
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const bytes = checkedValues(operation, list, values);
    const checked = checkedPutOptions(operation, options);
    const refused = this.#refusal(operation, list, checked);
    if (refused) return new StoreResult(operation, list, refused.codes, refused.reasons);
    const { codes, reasons } = await this.#codes(checked, (deadline) =>
      this.#backend[operation]!(list, bytes, checked, deadline),
    );
    return new StoreResult(operation, list, codes, reasons);
  }

  /** The answer to a write that no backend is asked for. */
  #refusal(
    operation: "putFrom" | "put" | "upsertFrom" | "upsert",
    keys: KeyList,
    { groupIds }: PutOptions,
  ): Codes | undefined {
    if (!this.#backend[operation]) return this.#lacks(operation, keys);
    if (groupIds === undefined || groupIds.length === keys.length) return undefined;
    const reason = `groupIds has ${groupIds.length} elements; every one of the ${keys.length} keys needs one, "" for none`;
    return allFailed(keys.length, CODE.INVALID_PARAMS, reason);
  }

  #lacks(call: LackedCall & StoreOperation, keys: KeyList): Codes {
    return allFailed(keys.length, CODE.NOT_SUPPORTED, this.#backend.lacks?.[call]);
  }

  #begin(operation: StoreOperation, keys: StoreKeys): KeyList {
    this.#assertOpen(operation);
    return new KeyList(keys);
  }

  #assertOpen(operation: string): void {
    if (this.#closing)
      throw new MooncakeKvError("ERR_STORE", `${operation}: the store is closed`, { operation });
  }

  /** Runs a call that gives a code a key. An abort rejects it, unless every key has its answer. */
  #codes<T extends Answer<Int32Array | BigInt64Array>>(
    options: CallOptions,
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    return this.#timed(options, async (deadline) => {
      const answer = await work(deadline);
      if (deadline.aborted && answer.codes.some((code: number | bigint) => Number(code) === CODE.RPC_TIMEOUT))
        throw deadline.signal!.reason;
      return answer;
    });
  }

  /** The same for a call that gives one number. */
  #number(options: CallOptions, work: (deadline: Deadline) => Promise<number>): Promise<number> {
    return this.#timed(options, async (deadline) => {
      const number = await work(deadline);
      if (deadline.aborted && number === CODE.RPC_TIMEOUT) throw deadline.signal!.reason;
      return number;
    });
  }

  /** Runs a call under its deadline; `close` waits for it. */
  #timed<T>({ deadlineMs, signal }: CallOptions, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const deadline = new Deadline(deadlineMs ?? this.#backend.deadlineMs, signal);
    const call = work(deadline).catch((error: unknown) => {
      // What an abort breaks off may fail in any way.
      throw deadline.aborted ? deadline.signal!.reason : error;
    });
    return this.#track(call.finally(() => deadline.end()));
  }

  /** Remembers a call until it is settled. */
  #track<T>(call: Promise<T>): Promise<T> {
    this.#running.add(call);
    const forget = (): void => {
      this.#running.delete(call);
    };
    call.then(forget, forget);
    return call;
  }

  readonly #runner: CallRunner = {
    run: async (operation, options, work) => {
      this.#assertOpen(operation);
      return this.#timed(checkedCallOptions(operation, options as CallOptions | undefined), work);
    },
    assertOpen: (operation) => this.#assertOpen(operation),
    deadlineMs: (operation, options) =>
      checkedCallOptions(operation, options as CallOptions | undefined).deadlineMs ??
      this.#backend.deadlineMs,
  };
}
