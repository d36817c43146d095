import type { BackendHealth, CallRunner, StoreBackend } from "../backend.js";
import { masterPattern } from "../cluster/master-pattern.js";
import type { Codes, ReplicaAnswer, Sizes, ValueAnswer } from "../shared/answers.js";
import type { CallOptions, PutOptions } from "../shared/call-options.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { KeyList } from "../shared/keys.js";
import type { Region } from "../shared/region.js";
import type { CheckedRows } from "../shared/rows.js";
import type { Values } from "../shared/values.js";
import { DataCalls } from "./data-calls.js";
import { KeyCalls } from "./key-calls.js";
import { KeyedCommands } from "./keyed-commands.js";
import {
  type MooncakeStoreOptions,
  type ResolvedMooncakeOptions,
  resolveMooncakeOptions,
} from "./options.js";
import { Overwrites } from "./overwrites.js";
import { SharedMemories } from "./shared-memory.js";
import { Sidecar } from "./sidecar.js";

/** A key that nobody stores: asking for it tells whether the master answers, and takes no lease. */
const ABSENT_KEY = new KeyList(["mooncake-kv:health"]);

/** What a store over Mooncake's Python client can do besides `KvStore`. */
export interface MooncakeExtras {
  /** host:port by which the cluster knows the sidecar; empty while it is being replaced. */
  readonly hostname: string;
  /** Name and version of Mooncake's Python package. */
  readonly version: string;
  /** The process of the sidecar; undefined while it is being replaced. */
  readonly sidecarPid: number | undefined;
  /** How often the sidecar was replaced. */
  readonly sidecarRestarts: number;
  /** The latest lines of Mooncake's log. */
  log(): string;
  /**
   * What Mooncake's own `health_check` says: 0, 1 or 2. A client without a segment stays at 0 whatever happens to the
   * master; `health` asks the master.
   *
   * @throws MooncakeKvError `ERR_STORE` for bad options, for a store that is closed, and when the sidecar fails.
   */
  clientHealth(options?: CallOptions): Promise<number>;
}

/**
 * A running Mooncake cluster. Mooncake's official Python client works in a child process, the sidecar, that maps the
 * arenas of this store: bytes are not copied between the two, and whatever Mooncake does to its process does not reach
 * this one.
 *
 * A sidecar that dies or hangs is replaced at once; calls that were waiting for it reject with `ERR_STORE` and the
 * reason. A call that outlives its deadline gives -901 for the keys without an answer, and nobody touches its memory
 * any more; calls of others go on.
 */
export class MooncakeBackend implements StoreBackend<MooncakeExtras> {
  readonly name = "mooncake";
  readonly deadlineMs: number;
  readonly #options: ResolvedMooncakeOptions;
  readonly #memories: SharedMemories;
  readonly #sidecar: Sidecar;
  readonly #keyCalls: KeyCalls;
  readonly #dataCalls: DataCalls;
  readonly #overwrites = new Overwrites();

  private constructor(options: ResolvedMooncakeOptions, memories: SharedMemories, sidecar: Sidecar) {
    this.deadlineMs = options.deadlineMs;
    this.#options = options;
    this.#memories = memories;
    this.#sidecar = sidecar;
    this.#keyCalls = new KeyCalls(sidecar, new KeyedCommands(sidecar, memories));
    this.#dataCalls = new DataCalls(sidecar, memories, this.#keyCalls, options.scattered);
  }

  /**
   * Starts the sidecar and connects it to the cluster.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option or configuration file, `ERR_NATIVE` without the addon,
   * `ERR_STORE` when a component of the cluster does not answer in time (its address is in the text), or Mooncake's package
   * is missing.
   */
  static async open(options: MooncakeStoreOptions = {}): Promise<MooncakeBackend> {
    const resolved = await resolveMooncakeOptions(options);
    const memories = new SharedMemories(resolved.stagingBytes);
    try {
      const sidecar = await Sidecar.open(resolved, () => memories.all);
      return new MooncakeBackend(resolved, memories, sidecar);
    } catch (error) {
      await memories.staging.memory.free();
      throw error;
    }
  }

  async register(region: Region): Promise<number> {
    const shared = this.#memories.add(region);
    if (shared) await this.#sidecar.share(shared);
    // Memory that the sidecar can't map works all the same, through staging.
    return CODE.OK;
  }

  async unregister(region: Region): Promise<void> {
    const shared = this.#memories.remove(region);
    if (shared) await this.#sidecar.unshare(shared);
  }

  async putFrom(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return { codes: await this.#dataCalls.putFrom(keys.flat, rows, false, options, deadline) };
  }

  async upsertFrom(
    keys: KeyList,
    rows: CheckedRows,
    options: PutOptions,
    deadline: Deadline,
  ): Promise<Codes> {
    return this.#overwrites.upsert(keys, async () => ({
      codes: await this.#dataCalls.putFrom(keys.flat, rows, true, options, deadline),
    }));
  }

  async put(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes> {
    return { codes: await this.#dataCalls.put(keys.flat, copied(values), false, options, deadline) };
  }

  async upsert(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes> {
    const own = copied(values);
    return this.#overwrites.upsert(keys, async () => ({
      codes: await this.#dataCalls.put(keys.flat, own, true, options, deadline),
    }));
  }

  async getInto(keys: KeyList, rows: CheckedRows, deadline: Deadline): Promise<Sizes> {
    return this.#overwrites.read(keys, async () => ({
      codes: await this.#dataCalls.getInto(keys.flat, rows, deadline),
    }));
  }

  get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer> {
    return this.#overwrites.read(keys, () => this.#dataCalls.get(keys.flat, deadline));
  }

  async exists(keys: KeyList, deadline: Deadline): Promise<Codes> {
    return { codes: await this.#keyCalls.exists(keys, deadline) };
  }

  async size(keys: KeyList, deadline: Deadline): Promise<Sizes> {
    return { codes: await this.#keyCalls.size(keys, deadline) };
  }

  replicas(keys: KeyList, deadline: Deadline): Promise<ReplicaAnswer> {
    return this.#keyCalls.replicas(keys, deadline);
  }

  async remove(keys: KeyList, force: boolean, deadline: Deadline): Promise<Codes> {
    return { codes: await this.#keyCalls.remove(keys, force, deadline) };
  }

  async removeByRegex(pattern: string, force: boolean, deadline: Deadline): Promise<number> {
    const checked = masterPattern(pattern);
    if (!checked.ok) return CODE.INVALID_PARAMS;
    return this.#keyCalls.removeByRegex(checked.sent, force, deadline);
  }

  removeAll(force: boolean, deadline: Deadline): Promise<number> {
    return this.#keyCalls.removeAll(force, deadline);
  }

  async health(deadline: Deadline): Promise<BackendHealth> {
    const master = this.#options.masterServerAddress;
    // A client without a segment calls itself healthy whatever happens to the master: it is asked for something.
    const [code = CODE.RPC_TIMEOUT] = await this.#keyCalls.exists(ABSENT_KEY, deadline);
    return code >= 0
      ? { code: 0, message: `${this.#sidecar.version}, connected to the master at ${master}` }
      : { code: 2, message: `the master at ${master} does not answer (code ${code})` };
  }

  async close(): Promise<void> {
    await this.#sidecar.close();
    await this.#memories.staging.memory.free();
  }

  extras(calls: CallRunner): MooncakeExtras {
    const sidecar = this.#sidecar;
    const keyCalls = this.#keyCalls;
    return {
      get hostname() {
        return sidecar.hostname;
      },
      get version() {
        return sidecar.version;
      },
      get sidecarPid() {
        return sidecar.pid;
      },
      get sidecarRestarts() {
        return sidecar.restarts;
      },
      log: () => sidecar.log(),
      clientHealth: (options) =>
        calls.run("clientHealth", options, (deadline) => keyCalls.clientHealth(deadline)),
    };
  }
}

function copied(values: Values): Uint8Array[] {
  return values.map((value) => new Uint8Array(value));
}
