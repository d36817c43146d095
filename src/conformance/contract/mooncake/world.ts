import { setTimeout as sleep } from "node:timers/promises";
import { isMooncakeKvError } from "../../../errors.js";
import type { CreatedArena } from "../../../native/addon.js";
import { loadNative } from "../../../native/load.js";
import type { KvStore } from "../../../store/kv-store.js";
import { type MooncakeStore, openStore } from "../../../store/open-store.js";
import { CODE } from "../../../store/shared/codes.js";
import { type ContractSetup, clientSetup } from "../scenario.js";
import { setupCode } from "../setup-arguments.js";
import type {
  ContractBackend,
  ContractBuffer,
  ContractClient,
  ContractProcesses,
  ContractPutSessions,
  ContractWorld,
  SetupArguments,
} from "../world.js";
import { MooncakeCluster, type PythonClient } from "./cluster.js";
import type { MooncakeInstallation } from "./installation.js";

/** Mooncake's own patience, shortened: which code comes does not depend on it. */
const IMPATIENT = { MC_RPC_TIMEOUT_MS: "3000", MC_TCP_STATUS_TIMEOUT_SEC: "3" };

/** The real Mooncake under the contract suite: a master a scenario, and a sidecar a client, owners included. */
export function mooncakeBackend(installation: MooncakeInstallation): ContractBackend {
  return {
    name: "mooncake",
    unsupported: () => undefined,
    open: (setup) => MooncakeWorld.start(installation, setup),
  };
}

class MooncakeWorld implements ContractWorld {
  readonly cluster: MooncakeCluster;
  readonly setup: ContractSetup;
  readonly installation: MooncakeInstallation;
  readonly processes: Required<ContractProcesses> = {
    killClient: async (name) => {
      await this.#clients.get(name)?.kill();
      this.#clients.delete(name);
    },
    stopClient: async (name) => this.#clients.get(name)!.signal("SIGSTOP"),
    continueClient: async (name) => this.#clients.get(name)!.signal("SIGCONT"),
    killMaster: (signal) => this.cluster.kill("master", signal),
    startMaster: () => this.cluster.startMaster(),
    stopMaster: () => this.cluster.signal("master", "SIGSTOP"),
    continueMaster: () => this.cluster.signal("master", "SIGCONT"),
  };
  readonly #clients = new Map<string, MooncakeClient>();

  static async start(installation: MooncakeInstallation, setup: ContractSetup): Promise<MooncakeWorld> {
    const cluster = await MooncakeCluster.start(installation, {
      leaseTtlMs: setup.leaseTtlMs,
      masterFlags: setup.masterFlags,
      segmentBytes: 0,
    });
    const world = new MooncakeWorld(installation, setup, cluster);
    try {
      const owners = Object.keys(setup.clients).filter((name) => name.startsWith("O") && name !== "O");
      for (const name of [...(setup.owner ? ["O"] : []), ...owners]) await world.startClient(name);
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(installation: MooncakeInstallation, setup: ContractSetup, cluster: MooncakeCluster) {
    this.installation = installation;
    this.setup = setup;
    this.cluster = cluster;
  }

  async startClient(name: string): Promise<ContractClient> {
    const old = this.#clients.get(name);
    // An owner is up already when a step first names it.
    if (old && name.startsWith("O") && !old.named) {
      old.named = true;
      return old;
    }
    await old?.kill();
    const client = new MooncakeClient(this, name);
    this.#clients.set(name, client);
    await client.start();
    return client;
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms);
  }

  async segments(): Promise<{ used: number[]; capacity: number[] }> {
    const { body } = await this.http("/get_segments_detail");
    const { segments } = JSON.parse(body) as {
      segments: { allocator_used_bytes: number; allocator_capacity_bytes: number }[];
    };
    return {
      used: segments.map((segment) => segment.allocator_used_bytes),
      capacity: segments.map((segment) => segment.allocator_capacity_bytes),
    };
  }

  async http(path: string): Promise<{ status: number; body: string }> {
    const response = await fetch(`${this.cluster.adminUrl}${path}`);
    return { status: response.status, body: await response.text() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#clients.values(), (client) => client.kill()));
    await this.cluster[Symbol.asyncDispose]();
  }
}

class MooncakeClient implements ContractClient {
  arena: ContractBuffer;
  /** Whether a step has named it. */
  named = false;
  localBufferSize: number;
  readonly sessions: ContractPutSessions;
  readonly #world: MooncakeWorld;
  readonly #name: string;
  readonly #memory = new Set<CreatedArena>();
  #store: MooncakeStore | undefined;
  #twin: Promise<PythonClient> | undefined;

  constructor(world: MooncakeWorld, name: string) {
    this.#world = world;
    this.#name = name;
    const { arena, local } = clientSetup(world.setup, name);
    this.localBufferSize = local;
    this.arena = this.#makeMemory(Math.max(arena, 1));
    this.sessions = putSessions(
      () => this.#python(),
      (address, size) => this.#bytes(address, size),
    );
  }

  async start(): Promise<void> {
    const { manual, register, arena } = clientSetup(this.#world.setup, this.#name);
    if (manual) return;
    const code = await this.setup({});
    if (code !== CODE.OK) throw new Error(`client ${this.#name}: setup gave ${code}`);
    if (arena === 0) return;
    // Memory that the sidecar maps: what a user of the store has.
    const made = await this.#store!.createArena(arena);
    this.arena = { address: made.baseAddress, bytes: made.bytes, free: () => made.close() };
    if (!register) await this.#store!.unregisterBuffer(made.baseAddress);
  }

  get store(): KvStore | undefined {
    return this.#store;
  }

  async setup(overrides: SetupArguments): Promise<number> {
    const { segment, local, tenant } = clientSetup(this.#world.setup, this.#name);
    const refused = setupCode({ segment, local, ...overrides });
    if (refused !== CODE.OK) return refused;
    if (this.#store) return CODE.OK;
    try {
      this.#store = await openStore({
        backend: "mooncake",
        master: overrides.master ?? this.#world.cluster.masterAddress,
        metadataServer: overrides.meta ?? "P2PHANDSHAKE",
        localHostname: overrides.host ?? "127.0.0.1",
        protocol: overrides.proto ?? "tcp",
        globalSegmentSize: overrides.segment ?? segment,
        tenantId: tenant ?? "default",
        python: this.#world.installation.python,
        staging: "8MiB",
        deadlineMs: 30_000,
        openDeadlineMs: 10_000,
        environment: IMPATIENT,
      });
    } catch (error) {
      if (!isMooncakeKvError(error)) throw error;
      if (typeof error.details["code"] === "number") return error.details["code"];
      // What Mooncake answers depends on its host name: without a port it tries for 90 s first.
      return overrides.host?.includes(":") ? CODE.INVALID_PARAMS : CODE.INTERNAL_ERROR;
    }
    this.localBufferSize = overrides.local ?? local;
    return CODE.OK;
  }

  async allocate(bytes: number): Promise<ContractBuffer> {
    return this.#makeMemory(bytes);
  }

  async register(address: bigint, bytes: number): Promise<number> {
    return this.#store!.registerBuffer(address, bytes);
  }

  async unregister(address: bigint): Promise<number> {
    return this.#store!.unregisterBuffer(address);
  }

  async close(): Promise<number> {
    const store = this.#store;
    this.#store = undefined;
    await store?.close();
    return CODE.OK;
  }

  async renew(): Promise<void> {
    await this.close();
  }

  async health(): Promise<number> {
    return this.#store ? this.#store.clientHealth() : 1;
  }

  hostname(): string {
    return this.#store?.hostname ?? "";
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.#store!.sidecarPid!, signal);
  }

  /** Ends its process as SIGKILL does it. */
  async kill(): Promise<void> {
    const store = this.#store;
    this.#store = undefined;
    const twin = await this.#twin;
    await twin?.[Symbol.asyncDispose]();
    if (store) {
      if (store.sidecarPid !== undefined) process.kill(store.sidecarPid, "SIGKILL");
      // In the same turn: a store that is being closed replaces nothing.
      await store.close();
    }
    await this.arena.free();
    for (const memory of this.#memory) loadNative().arenaClose(memory.handle);
    this.#memory.clear();
  }

  /** Memory that no store knows. */
  #makeMemory(size: number): ContractBuffer {
    const created = loadNative().arenaCreate(size);
    this.#memory.add(created);
    return {
      address: created.baseAddress,
      bytes: new Uint8Array(created.buffer),
      free: async () => {
        if (!this.#memory.delete(created)) return;
        await this.#store?.unregisterBuffer(created.baseAddress);
        loadNative().arenaClose(created.handle);
      },
    };
  }

  #bytes(address: bigint, size: number): Uint8Array {
    const others = Array.from(this.#memory, ({ baseAddress, buffer }) => ({
      address: baseAddress,
      bytes: new Uint8Array(buffer),
    }));
    for (const memory of [this.arena, ...others]) {
      const offset = Number(address - memory.address);
      if (offset >= 0 && offset + size <= memory.bytes.length)
        return memory.bytes.subarray(offset, offset + size);
    }
    throw new Error(`nothing is known about the memory at ${address}`);
  }

  /** Puts in parts are nothing that a `KvStore` has: Mooncake's own client does them, in a process beside ours. */
  #python(): Promise<PythonClient> {
    this.#twin ??= this.#world.cluster.startClient();
    return this.#twin;
  }
}

function putSessions(
  python: () => Promise<PythonClient>,
  bytesAt: (address: bigint, size: number) => Uint8Array,
): ContractPutSessions {
  const texts = (keys: readonly Uint8Array[]): string[] => keys.map((key) => Buffer.from(key).toString());
  return {
    start: async (keys, sizes) => (await python()).call("batch_put_session_start", texts(keys), sizes),
    write: async (keys, ranges, targets) => {
      const client = await python();
      let at = 0;
      const offsets: number[][] = [];
      for (const row of ranges) {
        const places: number[] = [];
        for (const [address, size] of row) {
          await client.write(at, bytesAt(address, size));
          places.push(at);
          at += size;
        }
        offsets.push(places);
      }
      const sizes = ranges.map((row) => row.map(([, size]) => size));
      return client.call("batch_put_from_multi_buffer_ranges", texts(keys), offsets, sizes, targets);
    },
    end: async (keys) => (await python()).call("batch_put_session_end", texts(keys)),
    revoke: async (keys) => (await python()).call("batch_put_session_revoke", texts(keys)),
  };
}
