import { describe, MooncakeKvError } from "../../errors.js";
import type { FlatKeys } from "../../key/key-table.js";
import { loadNative } from "../../native/load.js";
import type { NativeMooncakePutConfig } from "../../native/mooncake-addon.js";
import type { BackendHealth, LackedCall, StoreBackend } from "../backend.js";
import { addressTowards } from "../cluster/local-address.js";
import { parseMasterAddress, probeMaster } from "../cluster/master-address.js";
import { masterPattern } from "../cluster/master-pattern.js";
import { probeMetadataServer } from "../cluster/metadata-server.js";
import { setupFailure } from "../cluster/setup-failure.js";
import { allFailed, type Codes, type Sizes, type ValueAnswer } from "../shared/answers.js";
import type { PutOptions } from "../shared/call-options.js";
import { CODE, storeCode } from "../shared/codes.js";
import { Deadline } from "../shared/deadline.js";
import type { FailureReasons } from "../shared/failure-reasons.js";
import type { KeyList } from "../shared/keys.js";
import type { Region } from "../shared/region.js";
import type { CheckedRows } from "../shared/rows.js";
import type { Values } from "../shared/values.js";
import { closeAtExit } from "./at-exit.js";
import { NativeCalls } from "./native-calls.js";
import {
  type MooncakeNativeStoreOptions,
  type ResolvedMooncakeNativeOptions,
  resolveMooncakeNativeOptions,
} from "./options.js";
import { ValueCalls } from "./value-calls.js";

/** How long `close` waits for calls that hang inside the library. */
const CLOSE_MS = 5_000;

/** Milliseconds that a component of the cluster may take to accept a connection, once a set-up has failed. */
const PROBE_MS = 500;

/** What a store over Mooncake's C library can do besides `KvStore`. */
export interface MooncakeNativeExtras {
  /** How many threads hang in calls of the library whose deadline has passed. */
  readonly hangingCalls: number;
}

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
export class MooncakeNativeBackend implements StoreBackend<MooncakeNativeExtras> {
  readonly name = "mooncake-native";
  readonly deadlineMs: number;
  readonly lacks: Partial<Record<LackedCall, string>> = {
    upsertFrom: "Mooncake's C interface has no upsert",
    upsert: "Mooncake's C interface has no upsert",
    replicas: "Mooncake's C interface does not tell where replicas lie",
  };
  readonly #calls: NativeCalls;
  readonly #values: ValueCalls;
  readonly #options: ResolvedMooncakeNativeOptions;
  readonly #forgetExit: () => void;

  private constructor(calls: NativeCalls, options: ResolvedMooncakeNativeOptions) {
    this.#calls = calls;
    this.#values = new ValueCalls(calls);
    this.#options = options;
    this.deadlineMs = options.deadlineMs;
    this.#forgetExit = closeAtExit((milliseconds) =>
      calls.addon.mooncakeCloseNow(calls.client, milliseconds),
    );
  }

  /**
   * Loads the library and connects it to the cluster. The library reads `MC_LOG_LEVEL` once: unless it is set, this sets it
   * to `ERROR` for the process.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for a bad option or configuration file, `ERR_NATIVE` without the addon or when
   * the library can't be loaded (with the names of the functions that it lacks), `ERR_STORE` when no master answers in
   * time, or it refuses.
   */
  static async open(options: MooncakeNativeStoreOptions = {}): Promise<MooncakeNativeBackend> {
    const resolved = await resolveMooncakeNativeOptions(options);
    const addon = loadNative();
    const { masterServerAddress, openDeadlineMs, threads, staging } = resolved;
    const deadline = new Deadline(openDeadlineMs);
    process.env["MC_LOG_LEVEL"] ??= "ERROR";
    const localHostname =
      resolved.localHostname ?? (await addressTowards(masterServerAddress, openDeadlineMs));
    const calls = new NativeCalls(addon, addon.mooncakeOpen(threads, staging));
    try {
      const code = await calls.run(
        "open",
        deadline,
        (id) => addon.mooncakeSetup(calls.client, id, resolved.library, { ...resolved, localHostname }),
        "ERR_NATIVE",
      );
      if (code !== CODE.OK) throw await whySetupFailed(code, resolved);
      return new MooncakeNativeBackend(calls, resolved);
    } catch (error) {
      // A setup that hangs takes the client with it when it comes back.
      await calls.run("close", new Deadline(0), (id) => addon.mooncakeClose(calls.client, id));
      throw error;
    } finally {
      deadline.end();
    }
  }

  async register({ arena, address, size }: Region): Promise<number> {
    const { addon, client } = this.#calls;
    return arena?.handle === undefined
      ? addon.mooncakeRegister(client, address, size)
      : addon.mooncakeRegisterArena(client, arena.handle, address, size);
  }

  async unregister({ address }: Region): Promise<void> {
    await this.#calls.addon.mooncakeUnregister(this.#calls.client, address);
  }

  async putFrom(keys: KeyList, rows: CheckedRows, options: PutOptions, deadline: Deadline): Promise<Codes> {
    const config = putConfig(options);
    if (typeof config === "string") return allFailed(keys.length, CODE.NOT_SUPPORTED, config);
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const { addresses, sizes, rowOffsets } = rows.forNative();
    const codes = await this.#calls.run("putFrom", deadline, (id) =>
      addon.mooncakePutFrom(client, id, bytes, offsets, addresses, sizes, rowOffsets, config),
    );
    return { codes, reasons: reasons(keys.flat) };
  }

  async put(keys: KeyList, values: Values, options: PutOptions, deadline: Deadline): Promise<Codes> {
    const config = putConfig(options);
    if (typeof config === "string") return allFailed(keys.length, CODE.NOT_SUPPORTED, config);
    const codes = await this.#values.put(keys, values, config, deadline);
    return { codes, reasons: reasons(keys.flat) };
  }

  async getInto(keys: KeyList, rows: CheckedRows, deadline: Deadline): Promise<Sizes> {
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const { addresses, sizes, rowOffsets } = rows.forNative();
    const codes = await this.#calls.run("getInto", deadline, (id) =>
      addon.mooncakeGetInto(client, id, bytes, offsets, addresses, sizes, rowOffsets),
    );
    return { codes, reasons: reasons(keys.flat) };
  }

  async get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer> {
    return { ...(await this.#values.get(keys, deadline)), reasons: reasons(keys.flat) };
  }

  async exists(keys: KeyList, deadline: Deadline): Promise<Codes> {
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const codes = await this.#calls.run("exists", deadline, (id) =>
      addon.mooncakeExists(client, id, bytes, offsets),
    );
    return { codes, reasons: reasons(keys.flat) };
  }

  async size(keys: KeyList, deadline: Deadline): Promise<Sizes> {
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const codes = await this.#calls.run("size", deadline, (id) =>
      addon.mooncakeSize(client, id, bytes, offsets),
    );
    return { codes, reasons: reasons(keys.flat) };
  }

  async remove(keys: KeyList, force: boolean, deadline: Deadline): Promise<Codes> {
    const { addon, client } = this.#calls;
    const { bytes, offsets } = keys.flat;
    const codes = await this.#calls.run("remove", deadline, (id) =>
      addon.mooncakeRemove(client, id, bytes, offsets, force),
    );
    return { codes, reasons: reasons(keys.flat) };
  }

  async removeByRegex(pattern: string, force: boolean, deadline: Deadline): Promise<number> {
    const checked = masterPattern(pattern);
    // A NUL would end the pattern for the library, and the shorter one matches more.
    if (!checked.ok || checked.sent.includes("\0")) return CODE.INVALID_PARAMS;
    return this.#removeMany("removeByRegex", checked.sent, force, deadline);
  }

  removeAll(force: boolean, deadline: Deadline): Promise<number> {
    return this.#removeMany("removeAll", undefined, force, deadline);
  }

  async health(deadline: Deadline): Promise<BackendHealth> {
    const { addon, client } = this.#calls;
    const { health, answer, hostName } = await this.#calls.run("health", deadline, (id) =>
      addon.mooncakeHealth(client, id),
    );
    const master = this.#options.masterServerAddress;
    if (health === 1) return { code: 1, message: "the library says it is not set up" };
    if (health === CODE.OK && answer >= 0)
      return { code: 0, message: `${hostName} is connected to the master ${master}` };
    // The library's own check only says that something is wrong; the answer may say what.
    const { name, code, meaning } = storeCode(answer < 0 ? answer : CODE.RPC_FAIL);
    return { code: 2, message: `the master ${master} does not answer: ${name} (${code}, ${meaning})` };
  }

  async close(): Promise<void> {
    const { addon, client } = this.#calls;
    const deadline = new Deadline(CLOSE_MS);
    await this.#calls.run("close", deadline, (id) => addon.mooncakeClose(client, id));
    deadline.end();
    this.#forgetExit();
  }

  extras(): MooncakeNativeExtras {
    const { addon, client } = this.#calls;
    return {
      get hangingCalls() {
        return addon.mooncakeLost(client);
      },
    };
  }

  async #removeMany(
    operation: string,
    pattern: string | undefined,
    force: boolean,
    deadline: Deadline,
  ): Promise<number> {
    const { addon, client } = this.#calls;
    const codes = await this.#calls.run(operation, deadline, (id) =>
      addon.mooncakeRemoveMany(client, id, pattern, force),
    );
    return Number(codes[0]);
  }
}

/**
 * Only now the components are asked one by one, and what they say is added: a library may have a cluster of its own, of
 * which no master is known to the network.
 */
async function whySetupFailed(
  code: number,
  { masterServerAddress, metadataServer, globalSegmentSize, openDeadlineMs }: ResolvedMooncakeNativeOptions,
): Promise<MooncakeKvError> {
  const failure = setupFailure({
    code,
    master: masterServerAddress,
    metadataServer,
    globalSegmentSize,
    logTail: [],
    ...(code === CODE.RPC_TIMEOUT && { timeoutMs: openDeadlineMs }),
  });
  try {
    await probeMaster(parseMasterAddress(masterServerAddress)!, PROBE_MS);
    await probeMetadataServer(metadataServer, PROBE_MS);
    return failure;
  } catch (error) {
    return new MooncakeKvError(
      "ERR_STORE",
      `${failure.message}; ${(error as Error).message}`,
      { ...failure.details },
      { cause: error },
    );
  }
}

/** What the C interface takes, or why it can't. */
function putConfig(options: PutOptions): NativeMooncakePutConfig | string {
  if (options.softPinTtlMs !== undefined) return "Mooncake's C interface takes no time for a soft pin";
  if (options.groupIds !== undefined) return "Mooncake's C interface has no groups";
  const segment = options.preferredSegments?.find((name) => name.includes("\0"));
  if (segment !== undefined)
    return `Mooncake's C interface can't name the segment ${describe(segment)}: it ends at its NUL`;
  return {
    replicaNum: options.replicaNum ?? 1,
    softPin: options.withSoftPin ?? false,
    hardPin: options.withHardPin ?? false,
    preferredSegments: options.preferredSegments ?? [],
  };
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
