import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { loadNative } from "../../native/load.js";
import type { Arena } from "../arena.js";
import { unsigned } from "../embedded/native-arguments.js";
import { KeyList, type StoreKeys } from "../keys.js";
import type { KvStore, StoreHealth } from "../kv-store.js";
import type { CallOptions } from "../put-options.js";
import type { ReplicaDescriptor } from "../replica.js";
import { checkedSegments } from "../segments.js";
import { ReadResult, ReplicaResult, type StoreOperation, StoreResult } from "../store-result.js";
import type { StoreUsage } from "../store-usage.js";
import { AdminClient } from "./admin-client.js";
import type { AdminSegment, KeyAnswer } from "./answers.js";
import { arenaMemory, foreignMemory, makeArena } from "./arenas.js";
import { DataPlane } from "./data-plane.js";
import { Deadline } from "./deadline.js";
import { adminFailure } from "./failure.js";
import { inspectKeys } from "./inspect.js";
import type { ReadContext } from "./leased-read.js";
import { MemoryMap } from "./memory-map.js";
import { type AdminStoreOptions, callDeadline, resolveAdminOptions } from "./options.js";
import { Outcomes } from "./outcomes.js";
import { readInto, readValues } from "./read-calls.js";

const OK = 0;
const INVALID_PARAMS = -600;
const OBJECT_NOT_FOUND = -704;
const REPLICA_IS_NOT_READY = -703;
const NOT_SUPPORTED = -1012;

/**
 * A running Mooncake cluster, read-only, with nothing but sockets: what exists is asked of the master's HTTP interface,
 * and bytes come over Mooncake's TCP transport. For gateways that own no memory of the cluster.
 *
 * `exists`, `size`, `replicas`, `usage`, `segments` and `list` grant no lease, unlike those of other backends; `getInto`
 * and `get` do. Calls that write give -1012. Keys that the interface can't carry give -600, with the reason: for
 * `exists`, `size` and `replicas` those with a comma or that are not UTF-8; for `getInto` and `get` those with a space,
 * a control character or "&". A read that breaks off in the middle (-800) may leave its destination half written.
 */
export class AdminStore implements KvStore {
  readonly backend = "mooncake-admin";
  readonly #client: AdminClient;
  readonly #plane = new DataPlane();
  readonly #memory = new MemoryMap();
  readonly #running = new Set<Promise<unknown>>();
  readonly #deadlineMs: number;
  readonly #lanes: number;
  readonly #leaseMs: number;
  #closing: Promise<void> | undefined;

  /** Connects to nobody yet. @throws MooncakeKvError `ERR_CONFIG` for a bad option. */
  constructor(options: AdminStoreOptions) {
    const { url, deadlineMs, concurrency, leaseMs } = resolveAdminOptions(options);
    this.#client = new AdminClient(url, concurrency);
    this.#deadlineMs = deadlineMs;
    this.#lanes = concurrency;
    this.#leaseMs = leaseMs;
  }

  async createArena(bytes: number): Promise<Arena> {
    this.#assertOpen("createArena");
    const arena = makeArena(bytes, (address) => this.#memory.remove(address).then(() => {}));
    const code = this.#memory.add(arena.baseAddress, BigInt(arena.size), arenaMemory(arena));
    if (code === OK) return arena;
    await arena.close();
    throw new MooncakeKvError(
      "ERR_STORE",
      `createArena: the new memory overlaps a registered region (code ${code}); unregister regions before their memory is freed`,
      { code },
    );
  }

  /** As `KvStore.registerBuffer`. @throws MooncakeKvError `ERR_NATIVE` without the addon, which alone can write there. */
  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.#assertOpen("registerBuffer");
    const first = unsigned("registerBuffer", "address", address);
    const size = unsigned("registerBuffer", "size", bytes);
    if (first === 0n || size === 0n || first + size > 1n << 64n) return INVALID_PARAMS;
    const memory = foreignMemory(loadNative(), first, size);
    return memory === undefined ? INVALID_PARAMS : this.#memory.add(first, size, memory);
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    this.#assertOpen("unregisterBuffer");
    return this.#memory.remove(unsigned("unregisterBuffer", "address", address));
  }

  async putFrom(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<Int32Array>> {
    return this.#refused("putFrom", keys, segments);
  }

  async put(keys: StoreKeys, _values: readonly Uint8Array[]): Promise<StoreResult<Int32Array>> {
    return this.#refused("put", keys);
  }

  async upsertFrom(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<Int32Array>> {
    return this.#refused("upsertFrom", keys, segments);
  }

  async upsert(keys: StoreKeys, _values: readonly Uint8Array[]): Promise<StoreResult<Int32Array>> {
    return this.#refused("upsert", keys);
  }

  async remove(keys: StoreKeys): Promise<StoreResult<Int32Array>> {
    return this.#refused("remove", keys);
  }

  async removeByRegex(_pattern: string): Promise<number> {
    this.#assertOpen("removeByRegex");
    return NOT_SUPPORTED;
  }

  async removeAll(): Promise<number> {
    this.#assertOpen("removeAll");
    return NOT_SUPPORTED;
  }

  async getInto(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: CallOptions,
  ): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("getInto", keys);
    const table = checkedSegments("getInto", list, segments);
    return this.#timed("getInto", options, async (deadline) => {
      const outcomes = new Outcomes(list.length);
      await readInto(this.#reading(), list, table, this.#memory, this.#lanes, outcomes, deadline);
      return new StoreResult("getInto", list, outcomes.sizes(), outcomes.reasons);
    });
  }

  async get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult> {
    const list = this.#begin("get", keys);
    return this.#timed("get", options, async (deadline) => {
      const outcomes = new Outcomes(list.length);
      const values = await readValues(this.#reading(), list, this.#lanes, outcomes, deadline);
      return new ReadResult(list, outcomes.sizes(), values, outcomes.reasons);
    });
  }

  async exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    return this.#timed("exists", options, async (deadline) => {
      const outcomes = await this.#inspect(list, deadline, () => 1n);
      const codes = outcomes.numbers();
      for (let i = 0; i < codes.length; i++)
        if (codes[i] === OBJECT_NOT_FOUND || codes[i] === REPLICA_IS_NOT_READY) codes[i] = 0;
      return new StoreResult("exists", list, codes, outcomes.reasons);
    });
  }

  async size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    return this.#timed("size", options, async (deadline) => {
      const outcomes = await this.#inspect(
        list,
        deadline,
        ({ memory, stored }) => (memory[0] ?? stored[0])!.size,
      );
      return new StoreResult("size", list, outcomes.sizes(), outcomes.reasons);
    });
  }

  async replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult> {
    const list = this.#begin("replicas", keys);
    return this.#timed("replicas", options, async (deadline) => {
      const replicas: ReplicaDescriptor[][] = Array.from({ length: list.length }, () => []);
      const outcomes = await this.#inspect(list, deadline, (answer, index) => {
        replicas[index] = describeReplicas(answer);
        return BigInt(replicas[index].length);
      });
      return new ReplicaResult(list, outcomes.numbers(), replicas, outcomes.reasons);
    });
  }

  /**
   * Every key of the default tenant whose object can be read, in no order, streamed: memory does not grow with their
   * number. Grants no lease. The interface gives one key a line: a key with a newline comes as several, and bytes that
   * are no UTF-8 come as replacement characters (`listBytes` has them as they are).
   *
   * @throws MooncakeKvError `ERR_STORE` with the code in `details` when the master fails, or sends nothing for
   * `deadlineMs`.
   */
  async *list(options?: CallOptions): AsyncGenerator<string> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    for await (const key of this.listBytes(options)) yield decoder.decode(key);
  }

  /** `list` with the bytes of each key. */
  async *listBytes(options?: CallOptions): AsyncGenerator<Uint8Array> {
    this.#assertOpen("list");
    const idleMs = callDeadline("list", options, this.#deadlineMs);
    try {
      yield* this.#client.allKeys(idleMs);
    } catch (error) {
      throw storeError("list", error);
    }
  }

  /** The mounted segments. @throws MooncakeKvError `ERR_STORE` with the code in `details`. */
  async segments(options?: CallOptions): Promise<AdminSegment[]> {
    this.#assertOpen("segments");
    return this.#timed("segments", options, async (deadline) => {
      try {
        return await this.#client.segments(deadline);
      } catch (error) {
        throw storeError("segments", error);
      }
    });
  }

  /** Capacity and use of all segments together. @throws MooncakeKvError `ERR_STORE` with the code in `details`. */
  async usage(options?: CallOptions): Promise<StoreUsage> {
    this.#assertOpen("usage");
    return this.#timed("usage", options, async (deadline) => {
      try {
        const segments = await this.#client.segments(deadline);
        const keys = await this.#client.keyCount(deadline);
        const usage = {
          capacity: segments.reduce((sum, segment) => sum + segment.capacity, 0n),
          used: segments.reduce((sum, segment) => sum + segment.used, 0n),
        };
        return keys === undefined ? usage : { ...usage, keys };
      } catch (error) {
        throw storeError("usage", error);
      }
    });
  }

  async health(options?: CallOptions): Promise<StoreHealth> {
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    try {
      return await this.#timed("health", options, async (deadline) => {
        const { role, haState, ready } = await this.#client.health(deadline);
        const state = `the master at ${this.#client.address} is ${role}, ${haState}`;
        return ready
          ? { code: 0, healthy: true, message: state }
          : { code: 2, healthy: false, message: `${state}, and not ready to serve` };
      });
    } catch (error) {
      return { code: 2, healthy: false, message: error instanceof Error ? error.message : describe(error) };
    }
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
    this.#client.close();
    this.#plane.close();
  }

  #reading(): ReadContext {
    return { client: this.#client, plane: this.#plane, leaseMs: this.#leaseMs };
  }

  #inspect(
    keys: KeyList,
    deadline: Deadline,
    found: (answer: KeyAnswer, index: number) => bigint,
  ): Promise<Outcomes> {
    return inspectKeys(this.#client, keys, this.#lanes, found, deadline);
  }

  #refused(operation: StoreOperation, keys: StoreKeys, segments?: SegmentTable): StoreResult<Int32Array> {
    const list = this.#begin(operation, keys);
    if (segments !== undefined) checkedSegments(operation, list, segments);
    const codes = new Int32Array(list.length).fill(NOT_SUPPORTED);
    const reasons = new Map(
      codes.length > 0 ? [[0, "the admin interface of the master can only be read"]] : [],
    );
    return new StoreResult(operation, list, codes, reasons);
  }

  #begin(operation: string, keys: StoreKeys): KeyList {
    this.#assertOpen(operation);
    return new KeyList(keys);
  }

  #assertOpen(operation: string): void {
    if (this.#closing)
      throw new MooncakeKvError("ERR_STORE", `${operation}: the store is closed`, { operation });
  }

  /** Runs a call with its deadline, and remembers it until it is settled, so that `close` can wait for it. */
  async #timed<T>(
    operation: string,
    options: CallOptions | undefined,
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(callDeadline(operation, options, this.#deadlineMs));
    const call = work(deadline).finally(() => deadline.end());
    this.#running.add(call);
    try {
      return await call;
    } finally {
      this.#running.delete(call);
    }
  }
}

function describeReplicas({ memory, stored }: KeyAnswer): ReplicaDescriptor[] {
  return [
    ...memory.map(
      ({ size, address, endpoint }): ReplicaDescriptor => ({
        status: "COMPLETE",
        kind: "memory",
        size,
        segment: endpoint,
        address,
      }),
    ),
    ...stored.map(
      ({ kind, size, where }): ReplicaDescriptor => ({ status: "COMPLETE", kind, size, segment: where }),
    ),
  ];
}

function storeError(operation: string, error: unknown): MooncakeKvError {
  const { storeCode, message } = adminFailure(error);
  return new MooncakeKvError("ERR_STORE", `${operation}: ${message} (code ${storeCode})`, {
    operation,
    storeCode,
  });
}
