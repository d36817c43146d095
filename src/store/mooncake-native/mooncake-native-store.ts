import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { FlatKeys } from "../../key/key-table.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { loadNative } from "../../native/load.js";
import type { NativeMooncakePutConfig } from "../../native/mooncake-addon.js";
import type { Arena } from "../arena.js";
import { storeCode } from "../codes.js";
import { EmbeddedArena } from "../embedded/embedded-arena.js";
import { refusedMemory, unsigned } from "../embedded/native-arguments.js";
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
import {
  type FailureReasons,
  ReadResult,
  ReplicaResult,
  type StoreOperation,
  StoreResult,
} from "../store-result.js";
import type { StoreUsage } from "../store-usage.js";
import { checkedValues } from "../values.js";
import { closeAtExit } from "./at-exit.js";
import { addressTowards } from "./local-address.js";
import { NativeCalls } from "./native-calls.js";
import {
  type MooncakeNativeStoreOptions,
  type ResolvedMooncakeNativeOptions,
  resolveMooncakeNativeOptions,
} from "./options.js";
import { ValueCalls } from "./value-calls.js";

const OK = 0;
const INVALID_PARAMS = -600;
const RPC_FAIL = -900;
const RPC_TIMEOUT = -901;
const NOT_SUPPORTED = -1012;

/** The largest arena: what Node shows as one array of bytes, and the addon maps at once. */
const LARGEST_ARENA = Math.min(constants.MAX_LENGTH, 2 ** 32 - 1);

/** How long `close` waits for calls that hang inside the library. */
const CLOSE_MS = 5_000;

/**
 * A running Mooncake cluster through Mooncake's C library, loaded into this process at run time.
 *
 * The library's calls block for up to minutes; they run on threads of the store's own. One that outlives its deadline
 * gives -901 for the keys without an answer and is left behind; the library sees only memory of those threads, never an
 * arena, so that nothing can be written late. Values are gathered and scattered there. What the C interface lacks
 * (upserts, replicas, soft pin times, groups) gives -1012; a key with a NUL gives -600.
 *
 * A read that fails writes nothing, also when it outlives its lease (-707).
 *
 * The library crashes in this process when it crashes: `mooncake:` is the safer choice. It listens on two ports of all
 * network interfaces.
 */
export class MooncakeNativeStore implements KvStore {
  readonly backend = "mooncake-native";
  readonly #calls: NativeCalls;
  readonly #values: ValueCalls;
  readonly #options: ResolvedMooncakeNativeOptions;
  readonly #forgetExit: () => void;
  #closing: Promise<void> | undefined;

  private constructor(calls: NativeCalls, options: ResolvedMooncakeNativeOptions) {
    this.#calls = calls;
    this.#values = new ValueCalls(calls);
    this.#options = options;
    this.#forgetExit = closeAtExit((milliseconds) =>
      calls.addon.mooncakeCloseNow(calls.client, milliseconds),
    );
  }

  /**
   * Loads the library and connects it to the cluster.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option or configuration file, `ERR_NATIVE` without the addon or when
   * the library can't be loaded (with the names of the functions that it lacks), `ERR_STORE` when no master answers in
   * time, or it refuses.
   */
  static async open(options: MooncakeNativeStoreOptions = {}): Promise<MooncakeNativeStore> {
    const resolved = resolveMooncakeNativeOptions(options);
    const addon = loadNative();
    const { masterServerAddress, openDeadlineMs, threads, staging } = resolved;
    const end = performance.now() + openDeadlineMs;
    const localHostname =
      resolved.localHostname ?? (await addressTowards(masterServerAddress, openDeadlineMs));
    const calls = new NativeCalls(addon, addon.mooncakeOpen(threads, staging));
    try {
      const code = await calls.run(
        "open",
        end - performance.now(),
        (id) => addon.mooncakeSetup(calls.client, id, resolved.library, { ...resolved, localHostname }),
        "ERR_NATIVE",
      );
      if (code !== OK) throw setupError(code, masterServerAddress, openDeadlineMs);
      return new MooncakeNativeStore(calls, resolved);
    } catch (error) {
      // A setup that hangs takes the client with it when it comes back.
      await calls.run("close", 0, (id) => addon.mooncakeClose(calls.client, id));
      throw error;
    }
  }

  /** How many threads hang in calls of the library whose deadline has passed. */
  get hangingCalls(): number {
    return this.#calls.addon.mooncakeLost(this.#calls.client);
  }

  async createArena(bytes: number): Promise<Arena> {
    this.#assertOpen("createArena");
    if (!Number.isInteger(bytes) || bytes < 1 || bytes > LARGEST_ARENA)
      throw new MooncakeKvError(
        "ERR_STORE",
        `createArena: the size is ${describe(bytes)}; an arena has a whole number of bytes from 1 to ${LARGEST_ARENA}; make several arenas for more`,
        { bytes, largest: LARGEST_ARENA },
      );
    const { addon, client } = this.#calls;
    const created = refusedMemory("createArena", () => addon.arenaCreate(bytes));
    const code = addon.mooncakeRegisterArena(client, created.handle);
    if (code === OK)
      return new EmbeddedArena(addon, created, (address) =>
        addon.mooncakeUnregister(client, address).then(() => {}),
      );
    addon.arenaClose(created.handle);
    throw new MooncakeKvError(
      "ERR_STORE",
      `createArena: the new memory overlaps a registered region (code ${code}); unregister regions before their memory is freed`,
      { code },
    );
  }

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.#assertOpen("registerBuffer");
    const { addon, client } = this.#calls;
    const size = unsigned("registerBuffer", "size", bytes);
    return addon.mooncakeRegister(client, unsigned("registerBuffer", "address", address), size);
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    this.#assertOpen("unregisterBuffer");
    const { addon, client } = this.#calls;
    return addon.mooncakeUnregister(client, unsigned("unregisterBuffer", "address", address));
  }

  async putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("putFrom", keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("putFrom", list, segments);
    const checked = checkedPutOptions("putFrom", options);
    const config = putConfig(checked);
    if (typeof config === "string") return unsupported("putFrom", list, config);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = list.flat;
    const codes = await this.#calls.run("putFrom", this.#deadline(checked), (id) =>
      addon.mooncakePutFrom(client, id, bytes, offsets, addresses, sizes, rowOffsets, config),
    );
    return new StoreResult("putFrom", list, codes, reasons(list.flat));
  }

  async put(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("put", keys);
    const checked = checkedPutOptions("put", options);
    const config = putConfig(checked);
    checkedValues("put", list, values);
    if (typeof config === "string") return unsupported("put", list, config);
    const codes = await this.#values.put(list, values, config, this.#deadline(checked));
    return new StoreResult("put", list, codes, reasons(list.flat));
  }

  async upsertFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("upsertFrom", keys);
    checkedSegments("upsertFrom", list, segments);
    checkedPutOptions("upsertFrom", options);
    return unsupported("upsertFrom", list, "Mooncake's C interface has no upsert");
  }

  async upsert(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("upsert", keys);
    checkedValues("upsert", list, values);
    checkedPutOptions("upsert", options);
    return unsupported("upsert", list, "Mooncake's C interface has no upsert");
  }

  async getInto(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: CallOptions,
  ): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("getInto", keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("getInto", list, segments);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = list.flat;
    const codes = await this.#calls.run(
      "getInto",
      this.#deadline(checkedCallOptions("getInto", options)),
      (id) => addon.mooncakeGetInto(client, id, bytes, offsets, addresses, sizes, rowOffsets),
    );
    return new StoreResult("getInto", list, codes, reasons(list.flat));
  }

  async get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult> {
    const list = this.#begin("get", keys);
    const deadlineMs = this.#deadline(checkedCallOptions("get", options));
    const { codes, values } = await this.#values.get(list, deadlineMs);
    return new ReadResult(list, codes, values, reasons(list.flat));
  }

  async exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("exists", keys);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = list.flat;
    const codes = await this.#calls.run(
      "exists",
      this.#deadline(checkedCallOptions("exists", options)),
      (id) => addon.mooncakeExists(client, id, bytes, offsets),
    );
    return new StoreResult("exists", list, codes, reasons(list.flat));
  }

  async size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>> {
    const list = this.#begin("size", keys);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = list.flat;
    const codes = await this.#calls.run("size", this.#deadline(checkedCallOptions("size", options)), (id) =>
      addon.mooncakeSize(client, id, bytes, offsets),
    );
    return new StoreResult("size", list, codes, reasons(list.flat));
  }

  async replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult> {
    const list = this.#begin("replicas", keys);
    checkedCallOptions("replicas", options);
    const codes = new Int32Array(list.length).fill(NOT_SUPPORTED);
    const why = new Map([[0, "Mooncake's C interface does not tell where replicas lie"]]);
    return new ReplicaResult(
      list,
      codes,
      Array.from(codes, () => []),
      why,
    );
  }

  async remove(keys: StoreKeys, options?: RemoveOptions): Promise<StoreResult<Int32Array>> {
    const list = this.#begin("remove", keys);
    const checked = checkedRemoveOptions("remove", options);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = list.flat;
    const codes = await this.#calls.run("remove", this.#deadline(checked), (id) =>
      addon.mooncakeRemove(client, id, bytes, offsets, checked.force ?? false),
    );
    return new StoreResult("remove", list, codes, reasons(list.flat));
  }

  async removeByRegex(pattern: string, options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeByRegex");
    if (typeof pattern !== "string")
      throw new MooncakeKvError("ERR_STORE", `removeByRegex: ${describe(pattern)} is no pattern`, {
        pattern,
      });
    // The library would read a shorter pattern, which matches more.
    if (pattern.includes("\0")) return INVALID_PARAMS;
    return this.#removeMany("removeByRegex", pattern, options);
  }

  async removeAll(options?: RemoveOptions): Promise<number> {
    this.#assertOpen("removeAll");
    return this.#removeMany("removeAll", undefined, options);
  }

  async usage(options?: CallOptions): Promise<StoreUsage | undefined> {
    this.#assertOpen("usage");
    checkedCallOptions("usage", options);
    return undefined;
  }

  async health(options?: CallOptions): Promise<StoreHealth> {
    if (this.#closing) return { code: 1, healthy: false, message: "the store is closed" };
    try {
      const { addon, client } = this.#calls;
      const { health, answer, hostName } = await this.#calls.run(
        "health",
        this.#deadline(checkedCallOptions("health", options)),
        (id) => addon.mooncakeHealth(client, id),
      );
      const master = this.#options.masterServerAddress;
      if (health === 1) return { code: 1, healthy: false, message: "the library says it is not set up" };
      if (health === OK && answer >= 0)
        return { code: 0, healthy: true, message: `${hostName} is connected to the master ${master}` };
      // The library's own check only says that something is wrong; the answer may say what.
      const { name, code, meaning } = storeCode(answer < 0 ? answer : RPC_FAIL);
      return {
        code: 2,
        healthy: false,
        message: `the master ${master} does not answer: ${name} (${code}, ${meaning})`,
      };
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
    await this.#calls.settled();
    const { addon, client } = this.#calls;
    await this.#calls.run("close", CLOSE_MS, (id) => addon.mooncakeClose(client, id));
    this.#forgetExit();
  }

  async #removeMany(
    operation: string,
    pattern: string | undefined,
    options: RemoveOptions | undefined,
  ): Promise<number> {
    const checked = checkedRemoveOptions(operation, options);
    const { addon, client } = this.#calls;
    const codes = await this.#calls.run(operation, this.#deadline(checked), (id) =>
      addon.mooncakeRemoveMany(client, id, pattern, checked.force ?? false),
    );
    return Number(codes[0]);
  }

  #begin(operation: string, keys: StoreKeys): KeyList {
    this.#assertOpen(operation);
    return new KeyList(keys);
  }

  #assertOpen(operation: string): void {
    if (this.#closing)
      throw new MooncakeKvError("ERR_STORE", `${operation}: the store is closed`, { operation });
  }

  #deadline({ deadlineMs }: CallOptions): number {
    return deadlineMs ?? this.#options.deadlineMs;
  }
}

/** What the C interface takes, or why it can't. */
function putConfig(options: PutOptions): NativeMooncakePutConfig | string {
  if (options.softPinTtlMs !== undefined) return "Mooncake's C interface takes no time for a soft pin";
  if (options.groupIds !== undefined) return "Mooncake's C interface has no groups";
  return {
    replicaNum: options.replicaNum ?? 1,
    softPin: options.withSoftPin ?? false,
    hardPin: options.withHardPin ?? false,
    preferredSegments: options.preferredSegments ?? [],
  };
}

function unsupported(operation: StoreOperation, keys: KeyList, reason: string): StoreResult<Int32Array> {
  const codes = new Int32Array(keys.length).fill(NOT_SUPPORTED);
  return new StoreResult(operation, keys, codes, new Map([[0, reason]]));
}

/** Keys that end early for C. */
function reasons({ bytes, offsets }: FlatKeys): FailureReasons {
  const found = new Map<number, string>();
  if (!bytes.includes(0)) return found;
  for (let i = 0; i + 1 < offsets.length; i++)
    if (bytes.subarray(offsets[i], offsets[i + 1]).includes(0))
      found.set(i, "Mooncake's C interface ends a key at its first NUL");
  return found;
}

function setupError(code: number, master: string, deadlineMs: number): MooncakeKvError {
  const { name, meaning } = storeCode(code);
  const why =
    code === RPC_TIMEOUT
      ? `there was no answer within ${deadlineMs} ms`
      : `Mooncake's setup gave ${name} (${code}, ${meaning})`;
  return new MooncakeKvError(
    "ERR_STORE",
    `open: the Mooncake cluster of the master ${master} can't be joined: ${why}`,
    { master, storeCode: code },
  );
}
