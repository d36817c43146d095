import { SegmentTable } from "../../layout/segment-table.js";
import type { KvStore } from "../../store/kv-store.js";
import type { EmbeddedStore } from "../../store/open-store.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import { CODE } from "../../store/shared/codes.js";
import { openEmbeddedTestStore } from "../embedded-test-store.js";
import type { JsonObject } from "../vectors/handler.js";
import { flatKeys } from "./keys.js";
import {
  type ContractScenario,
  type ContractSetup,
  type ContractStep,
  clientOf,
  clientSetup,
} from "./scenario.js";
import { setupCode } from "./setup-arguments.js";
import type {
  ContractBackend,
  ContractBuffer,
  ContractClient,
  ContractProcesses,
  ContractPutSessions,
  ContractWorld,
  SetupArguments,
} from "./world.js";

/** Ops that need processes of their own to be stopped, killed or left alone. */
const PROCESS_OPS: Readonly<Record<string, string>> = {
  kill_master: "it kills the master",
  start_master: "it starts a master",
  stop_master: "it freezes the master",
  cont_master: "it freezes the master",
  stop_client: "it freezes a process",
  cont_client: "it freezes a process",
  bg: "it kills a process in the middle of a call",
};

/** The embedded store under the contract suite: all clients share one store, and its clock is the suite's. */
export const embeddedBackend: ContractBackend = {
  name: "embedded",

  unsupported({ setup, steps }: ContractScenario): string | undefined {
    if (Object.keys(setup.clients).some((name) => name.startsWith("O")))
      return "it has several owners, and an embedded store is one segment";
    for (const step of steps) {
      if (Object.hasOwn(PROCESS_OPS, step.op)) return PROCESS_OPS[step.op];
      if (clientOf(step).startsWith("O")) return "it speaks to the process that owns the memory";
      if (actsByHttp(step)) return "it acts through the admin port";
      const overrides = step["with"] as SetupArguments | undefined;
      if (overrides?.master !== undefined || overrides?.meta !== undefined)
        return "it sets a client up against another master or metadata server";
    }
    return undefined;
  },

  async open(setup: ContractSetup): Promise<ContractWorld> {
    return new EmbeddedWorld(setup);
  },
};

/** Whether an exchange with the admin port changes what later steps see; others can be left out. */
function actsByHttp(step: ContractStep): boolean {
  if (step.op !== "http") return false;
  if ((step["method"] ?? "GET") !== "GET") return true;
  const status = step["status"] ?? (step["response"] as JsonObject | undefined)?.["status"];
  return String(step["path"]).startsWith("/query_key") && status === 200;
}

/** The flags of a master that an embedded store has, by its own names. */
const FLAGS: Readonly<Record<string, string>> = {
  eviction_ratio: "evictionRatio",
  eviction_high_watermark_ratio: "evictionHighWatermarkRatio",
  put_start_discard_timeout_sec: "putStartDiscardTimeoutSec",
  put_start_release_timeout_sec: "putStartReleaseTimeoutSec",
  allow_evict_soft_pinned_objects: "allowEvictSoftPinnedObjects",
  default_kv_soft_pin_ttl: "defaultKvSoftPinTtl",
  max_kv_soft_pin_ttl: "maxKvSoftPinTtl",
};

class EmbeddedWorld implements ContractWorld {
  readonly store: EmbeddedStore;
  readonly setup: ContractSetup;
  readonly processes: ContractProcesses = {
    killClient: async (name) => {
      await this.#clients.get(name)?.close();
      this.#clients.delete(name);
    },
  };
  readonly #clients = new Map<string, EmbeddedClient>();
  readonly #memory: ContractBuffer[] = [];
  #started = 0;
  /** Time of transfers that is no whole millisecond yet. */
  #transferMs = 0;

  constructor(setup: ContractSetup) {
    this.setup = setup;
    const options: Record<string, unknown> = { clock: "manual", defaultKvLeaseTtl: setup.leaseTtlMs };
    for (const [flag, value] of Object.entries(setup.masterFlags))
      if (FLAGS[flag]) options[FLAGS[flag]] = value;
    const own = Object.keys(setup.clients).reduce((sum, name) => sum + clientSetup(setup, name).segment, 0);
    this.store = openEmbeddedTestStore(options, { capacity: own + (setup.owner ? setup.segmentBytes : 0) });
  }

  async startClient(name: string): Promise<ContractClient> {
    await this.#clients.get(name)?.close();
    const client = await EmbeddedClient.start(this, name, ++this.#started);
    this.#clients.set(name, client);
    return client;
  }

  async sleep(ms: number): Promise<void> {
    this.store.advanceClock(ms);
  }

  /** A put over TCP took 2 ms a MiB and 40 µs more: rounds of eviction fall between puts as they did then. */
  async beforeTransfer(bytes: number): Promise<void> {
    this.#transferMs += 0.04 + (2 * bytes) / (1 << 20);
    const whole = Math.floor(this.#transferMs);
    this.#transferMs -= whole;
    if (whole > 0) this.store.advanceClock(whole);
  }

  async segments(): Promise<{ used: number[]; capacity: number[] }> {
    const { used, capacity } = await this.store.usage();
    return { used: [Number(used)], capacity: [Number(capacity)] };
  }

  /** Memory that is not registered. */
  async allocate(bytes: number): Promise<ContractBuffer> {
    const arena = await this.store.createArena(bytes);
    await this.store.unregisterBuffer(arena.baseAddress);
    const buffer = { address: arena.baseAddress, bytes: arena.bytes, free: () => arena.close() };
    this.#memory.push(buffer);
    return buffer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
    for (const buffer of this.#memory) await buffer.free();
  }
}

class EmbeddedClient implements ContractClient {
  readonly arena: ContractBuffer;
  readonly sessions: ContractPutSessions;
  localBufferSize: number;
  readonly #world: EmbeddedWorld;
  readonly #name: string;
  readonly #regions = new Map<bigint, number>();
  #open = false;

  static async start(world: EmbeddedWorld, name: string, id: number): Promise<EmbeddedClient> {
    const { arena, register, manual } = clientSetup(world.setup, name);
    const client = new EmbeddedClient(world, name, id, await world.allocate(Math.max(arena, 1)));
    if (manual) return client;
    await client.setup({});
    if (register && arena > 0) await client.register(client.arena.address, arena);
    return client;
  }

  constructor(world: EmbeddedWorld, name: string, id: number, arena: ContractBuffer) {
    this.#world = world;
    this.#name = name;
    this.arena = arena;
    this.localBufferSize = clientSetup(world.setup, name).local;
    this.sessions = putSessions(world.store, id);
  }

  get store(): KvStore | undefined {
    return this.#open ? this.#world.store : undefined;
  }

  async setup(overrides: SetupArguments): Promise<number> {
    const { segment, local } = clientSetup(this.#world.setup, this.#name);
    const code = setupCode({ segment, local, ...overrides });
    if (code !== 0) return code;
    this.localBufferSize = overrides.local ?? local;
    this.#open = true;
    return 0;
  }

  async allocate(bytes: number): Promise<ContractBuffer> {
    const buffer = await this.#world.allocate(bytes);
    return {
      ...buffer,
      free: async () => {
        // A region over memory that is gone must not stay registered: nothing may touch it any more.
        const end = buffer.address + BigInt(bytes);
        for (const start of [...this.#regions.keys()])
          if (start >= buffer.address && start < end) await this.unregister(start);
        await buffer.free();
      },
    };
  }

  async register(address: bigint, bytes: number): Promise<number> {
    const code = await this.#world.store.registerBuffer(address, bytes);
    if (code === 0) this.#regions.set(address, bytes);
    return code;
  }

  async unregister(address: bigint): Promise<number> {
    if (!this.#regions.delete(address)) return CODE.INVALID_PARAMS;
    return this.#world.store.unregisterBuffer(address);
  }

  async close(): Promise<number> {
    for (const start of [...this.#regions.keys()]) await this.unregister(start);
    this.#open = false;
    return 0;
  }

  async renew(): Promise<void> {
    await this.close();
  }

  async health(): Promise<number> {
    return this.#open ? (await this.#world.store.health()).code : 1;
  }

  hostname(): string {
    return this.#open ? `127.0.0.1:${this.#name}` : "";
  }
}

function putSessions(store: EmbeddedStore, id: number): ContractPutSessions {
  const sessions = store.putSessions(id);
  return {
    start: async (keys, sizes, options: PutOptions) => [
      ...sessions.start(flatKeys(keys), BigUint64Array.from(sizes, BigInt), options),
    ],
    write: async (keys, ranges, targets) => {
      const table = SegmentTable.fromRows(
        ranges.map((row) => row.map(([address, size]) => ({ address, size: BigInt(size) }))),
      );
      const flat = BigUint64Array.from(targets.flat(), BigInt);
      return Array.from(sessions.write(flatKeys(keys), table, flat), Number);
    },
    end: async (keys) => [...sessions.end(flatKeys(keys))],
    revoke: async (keys) => [...sessions.revoke(flatKeys(keys))],
  };
}
