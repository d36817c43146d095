import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { Deadline } from "../admin/deadline.js";
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
import { ReadResult, ReplicaResult, type StoreOperation, StoreResult } from "../store-result.js";
import type { StoreUsage } from "../store-usage.js";
import { checkedValues } from "../values.js";
import { DataCalls } from "./data-calls.js";
import { KeyCalls } from "./key-calls.js";
import { KeyedCommands } from "./keyed-commands.js";
import { StoreMemory } from "./memory.js";
import { MooncakeArena } from "./mooncake-arena.js";
import {
  type MooncakeStoreOptions,
  type ResolvedMooncakeOptions,
  resolveMooncakeOptions,
} from "./options.js";
import { Sidecar } from "./sidecar.js";

const OK = 0;
const INVALID_PARAMS = -600;

/** The longest that a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** A key that nobody stores: asking for it tells whether the master answers, and takes no lease. */
const ABSENT_KEY = new KeyList(["mooncake-kv:health"]);

/**
 * A running Mooncake cluster. Mooncake's official Python client works in a child process, the sidecar, that maps the
 * arenas of this store: bytes are not copied between the two, and whatever Mooncake does to its process does not reach
 * this one.
 *
 * A sidecar that dies or hangs is replaced at once; calls that were waiting for it reject with `ERR_STORE` and the
 * reason. A call that outlives its deadline gives -901 for the keys without an answer, and nobody touches its memory
 * any more: when the sidecar might, it is replaced first.
 */
export class MooncakeStore implements KvStore {
  readonly backend = "mooncake";
  readonly #options: ResolvedMooncakeOptions;
  readonly #memory: StoreMemory;
  readonly #sidecar: Sidecar;
  readonly #keyCalls: KeyCalls;
  readonly #dataCalls: DataCalls;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(options: ResolvedMooncakeOptions, memory: StoreMemory, sidecar: Sidecar) {
    this.#options = options;
    this.#memory = memory;
    this.#sidecar = sidecar;
    this.#keyCalls = new KeyCalls(sidecar, new KeyedCommands(sidecar, memory));
    this.#dataCalls = new DataCalls(sidecar, memory, this.#keyCalls, options.scattered);
  }

  /**
   * Starts the sidecar and connects it to the cluster.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option or configuration file, `ERR_NATIVE` without the addon,
   * `ERR_STORE` when no master answers in time (its address is in the text), or Mooncake's package is missing.
   */
  static async open(options: MooncakeStoreOptions = {}): Promise<MooncakeStore> {
    const resolved = resolveMooncakeOptions(options);
    const memory = new StoreMemory(resolved.stagingBytes);
    try {
      const sidecar = await Sidecar.open(resolved, () => memory.shareable);
      return new MooncakeStore(resolved, memory, sidecar);
    } catch (error) {
      memory.drop(memory.staging);
      throw error;
    }
  }

  /** host:port by which the cluster knows the sidecar. */
  get hostname(): string {
    return this.#sidecar.hostname;
  }

  /** Name and version of Mooncake's Python package. */
  get version(): string {
    return this.#sidecar.version;
  }

  /** The process of the sidecar; undefined while it is being replaced. */
  get sidecarPid(): number | undefined {
    return this.#sidecar.pid;
  }

  /** How often the sidecar was replaced. */
  get sidecarRestarts(): number {
    return this.#sidecar.restarts;
  }

  /** The latest lines of Mooncake's log. */
  log(): string {
    return this.#sidecar.log();
  }

  async createArena(bytes: number): Promise<Arena> {
    this.#assertOpen("createArena");
    const shared = this.#memory.makeShared("createArena", bytes);
    const { region } = shared;
    if (!this.#memory.table.add(region)) {
      this.#memory.drop(shared);
      throw new MooncakeKvError(
        "ERR_STORE",
        `createArena: the new memory overlaps a registered region (code ${INVALID_PARAMS}); unregister regions before their memory is freed`,
        { code: INVALID_PARAMS },
      );
    }
    const release = async (): Promise<void> => {
      if (this.#memory.table.find(region.address) === region) await this.#release(region);
      this.#memory.drop(shared);
    };
    try {
      await this.#timed(undefined, (deadline) => this.#sidecar.share(region, deadline));
    } catch {
      // The sidecar died meanwhile: its successor maps the arena from the start.
    }
    return new MooncakeArena(shared, release);
  }

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.#assertOpen("registerBuffer");
    const first = unsigned("registerBuffer", "address", address);
    const size = unsigned("registerBuffer", "size", bytes);
    if (first === 0n || size === 0n || first + size > 1n << 64n) return INVALID_PARAMS;
    if (!(await this.#track(this.#memory.addon.memoryAccessible(first, size)))) return INVALID_PARAMS;
    const region = { id: this.#memory.table.newId(), address: first, size, shared: false };
    return this.#memory.table.add(region) ? OK : INVALID_PARAMS;
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    this.#assertOpen("unregisterBuffer");
    const region = this.#memory.table.find(unsigned("unregisterBuffer", "address", address));
    if (!region) return INVALID_PARAMS;
    await this.#track(this.#release(region));
    return OK;
  }

  putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#putFrom("putFrom", keys, segments, options);
  }

  put(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#put("put", keys, values, options);
  }

  upsertFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#putFrom("upsertFrom", keys, segments, options);
  }

  upsert(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    return this.#put("upsert", keys, values, options);
  }

  async getInto(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: CallOptions,
  ): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("getInto", keys);
    const table = checkedSegments("getInto", list, segments);
    const codes = await this.#timed(checkedCallOptions("getInto", options).deadlineMs, (deadline) =>
      this.#dataCalls.getInto(list.flat, table, deadline),
    );
    return new StoreResult("getInto", list, codes);
  }

  async get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult> {
    const list = this.#begin("get", keys);
    const { codes, values } = await this.#timed(checkedCallOptions("get", options).deadlineMs, (deadline) =>
      this.#dataCalls.get(list.flat, deadline),
    );
    return new ReadResult(list, codes, values);
  }

  async exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    const codes = await this.#timed(checkedCallOptions("exists", options).deadlineMs, (deadline) =>
      this.#keyCalls.exists(list, deadline),
    );
    return new StoreResult("exists", list, codes);
  }

  async size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    const sizes = await this.#timed(checkedCallOptions("size", options).deadlineMs, (deadline) =>
      this.#keyCalls.size(list, deadline),
    );
    return new StoreResult("size", list, sizes);
  }

  async replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult> {
    const list = this.#begin("replicas", keys);
    const { codes, replicas } = await this.#timed(
      checkedCallOptions("replicas", options).deadlineMs,
      (deadline) => this.#keyCalls.replicas(list, deadline),
    );
    return new ReplicaResult(list, codes, replicas);
  }

  async remove(keys: StoreKeys, options?: RemoveOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("remove", keys);
    const { force = false, deadlineMs } = checkedRemoveOptions("remove", options);
    const codes = await this.#timed(deadlineMs, (deadline) => this.#keyCalls.remove(list, force, deadline));
    return new StoreResult("remove", list, codes);
  }

  async removeByRegex(pattern: string, options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeByRegex");
    const { force = false, deadlineMs } = checkedRemoveOptions("removeByRegex", options);
    if (typeof pattern !== "string")
      throw new MooncakeKvError("ERR_STORE", `removeByRegex: ${describe(pattern)} is no pattern`, {
        pattern,
      });
    return this.#timed(deadlineMs, (deadline) => this.#keyCalls.removeByRegex(pattern, force, deadline));
  }

  async removeAll(options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeAll");
    const { force = false, deadlineMs } = checkedRemoveOptions("removeAll", options);
    return this.#timed(deadlineMs, (deadline) => this.#keyCalls.removeAll(force, deadline));
  }

  /** Mooncake's client can't tell: the master's HTTP interface does (`mooncake-admin:`). */
  async usage(): Promise<StoreUsage | undefined> {
    this.#assertOpen("usage");
    return undefined;
  }

  async health(options?: CallOptions): Promise<StoreHealth> {
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    const master = this.#options.masterServerAddress;
    try {
      // A client without a segment calls itself healthy whatever happens to the master: it is asked for something.
      const [code = 0] = await this.#timed(options?.deadlineMs, (deadline) =>
        this.#keyCalls.exists(ABSENT_KEY, deadline),
      );
      if (code >= 0)
        return { code: 0, healthy: true, message: `${this.version}, connected to the master at ${master}` };
      return { code: 2, healthy: false, message: `the master at ${master} does not answer (code ${code})` };
    } catch (error) {
      return { code: 2, healthy: false, message: error instanceof Error ? error.message : String(error) };
    }
  }

  /**
   * What Mooncake's own `health_check` says: 0, 1 or 2. A client without a segment stays at 0 whatever happens to the
   * master; `health` asks the master.
   */
  async clientHealth(options?: CallOptions): Promise<number> {
    if (this.#closing) return 1;
    const { deadlineMs } = checkedCallOptions("clientHealth", options);
    return this.#timed(deadlineMs, (deadline) => this.#keyCalls.clientHealth(deadline));
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
    await this.#sidecar.close();
    this.#memory.drop(this.#memory.staging);
  }

  async #putFrom(
    operation: "putFrom" | "upsertFrom",
    keys: StoreKeys,
    segments: SegmentTable,
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const table = checkedSegments(operation, list, segments);
    const { deadlineMs, ...put } = checkedPutOptions(operation, options);
    const codes = await this.#timed(deadlineMs, (deadline) =>
      this.#dataCalls.putFrom(list.flat, table, operation === "upsertFrom", put, deadline),
    );
    return new StoreResult(operation, list, codes);
  }

  async #put(
    operation: "put" | "upsert",
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options: (PutOptions & CallOptions) | undefined,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin(operation, keys);
    const copies = checkedValues(operation, list, values).map((value) => new Uint8Array(value));
    const { deadlineMs, ...put } = checkedPutOptions(operation, options);
    const codes = await this.#timed(deadlineMs, (deadline) =>
      this.#dataCalls.put(list.flat, copies, operation === "upsert", put, deadline),
    );
    return new StoreResult(operation, list, codes);
  }

  /** Takes a region away from calls, and from the sidecar once no call uses it. */
  async #release(region: Parameters<Sidecar["unshare"]>[0]): Promise<void> {
    await this.#memory.table.remove(region);
    if (!this.#closing) await this.#sidecar.unshare(region);
  }

  #begin(operation: StoreOperation, keys: StoreKeys): KeyList {
    this.#assertOpen(operation);
    return new KeyList(keys);
  }

  #assertOpen(operation: string): void {
    if (this.#closing)
      throw new MooncakeKvError("ERR_STORE", `${operation}: the store is closed`, { operation });
  }

  /** Runs a call under its deadline; `close` waits for it. */
  #timed<T>(deadlineMs: number | undefined, call: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = new Deadline(Math.min(deadlineMs ?? this.#options.deadlineMs, LONGEST_MS));
    return this.#track(call(deadline).finally(() => deadline.end()));
  }

  #track<T>(call: Promise<T>): Promise<T> {
    this.#running.add(call);
    const forget = (): void => {
      this.#running.delete(call);
    };
    call.then(forget, forget);
    return call;
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
