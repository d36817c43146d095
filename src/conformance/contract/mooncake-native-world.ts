import { setTimeout as sleep } from "node:timers/promises";
import { isMooncakeKvError } from "../../errors.js";
import { loadNative } from "../../native/load.js";
import type { KvStore } from "../../store/kv-store.js";
import { type MooncakeNativeStore, openStore } from "../../store/open-store.js";
import { CODE } from "../../store/shared/codes.js";
import type { StoreKeys } from "../../store/shared/keys.js";
import { OtherBackendOnly } from "./member.js";
import { type ContractScenario, type ContractSetup, type ContractStep, clientSetup } from "./scenario.js";
import { setupCode } from "./setup-arguments.js";
import type {
  ContractBackend,
  ContractBuffer,
  ContractClient,
  ContractWorld,
  SetupArguments,
} from "./world.js";

/** What the C interface can't express, by op. */
const LACKING: readonly (readonly [op: RegExp, reason: string])[] = [
  [/upsert/, "the C interface has no upsert"],
  [/^batch_replica_clear$/, "the C interface has no way to drop a replica"],
  [/^put_session/, "the C interface has no puts in parts"],
  [/^(kill|start|stop|cont)_|^bg$/, "our library has no processes to do harm to"],
  [/^http$/, "our library has no admin port"],
  [/^alloc_stride$/, "the C interface does not tell what is used"],
];

/** The native store on our own library under the contract suite, in real time: each client is a store of its own. */
export function nativeBackend(library: string): ContractBackend {
  return {
    name: "mooncake-native with our library",
    unsupported: ({ setup, steps }: ContractScenario): string | undefined => {
      const segments = Object.values(setup.clients).filter(({ segment }) => (segment ?? 0) > 0).length;
      if (segments + (setup.owner ? 1 : 0) > 1) return "our library's cluster has one segment";
      // A read that outlives its lease (-707) writes its destination there, and leaves it as it was here.
      if (setup.leaseTtlMs === 0)
        return "no lease lasts, and a read that outlives its lease writes nothing here";
      for (const step of steps) {
        const reason = unsupportedStep(step);
        if (reason !== undefined) return reason;
      }
      return undefined;
    },
    open: (setup) => NativeWorld.open(library, setup),
  };
}

function unsupportedStep(step: ContractStep): string | undefined {
  for (const [op, reason] of LACKING) if (op.test(step.op)) return reason;
  const text = JSON.stringify(step);
  if (text.includes("\\u0000") || /"hex":"(?:..)*00/.test(text))
    return "the C interface ends a key at its first NUL";
  if (/"(soft_pin_ttl_ms|group_ids|preferred_segment|data_type)"/.test(text))
    return "the C interface has no such put option";
  const overrides = step["with"] as SetupArguments | undefined;
  if (overrides?.master !== undefined || overrides?.meta !== undefined)
    return "it sets a client up against another master or metadata server";
  for (const inner of [step["step"], ...((step["steps"] as ContractStep[] | undefined) ?? [])])
    if (inner !== undefined) {
      const reason = unsupportedStep(inner as ContractStep);
      if (reason !== undefined) return reason;
    }
  return undefined;
}

let worlds = 0;

/** Where our library's masters find their flags. */
const FLAGS_VARIABLE = "MOONCAKE_KV_MASTER_FLAGS";

class NativeWorld implements ContractWorld {
  readonly library: string;
  readonly setup: ContractSetup;
  /** Our library's clusters are told apart by it. */
  readonly master: string;
  readonly #flagsBefore: string | undefined;
  readonly #clients = new Map<string, NativeClient>();

  static async open(library: string, setup: ContractSetup): Promise<NativeWorld> {
    const flags = { ...setup.masterFlags, default_kv_lease_ttl: setup.leaseTtlMs };
    const flagsBefore = process.env[FLAGS_VARIABLE];
    process.env[FLAGS_VARIABLE] = Object.entries(flags)
      .map(([name, value]) => `${name}=${value}`)
      .join(",");
    const world = new NativeWorld(library, setup, `contract:${1000 + (worlds++ % 60_000)}`, flagsBefore);
    if (setup.owner) await world.startClient("O");
    return world;
  }

  constructor(library: string, setup: ContractSetup, master: string, flagsBefore: string | undefined) {
    this.library = library;
    this.setup = setup;
    this.master = master;
    this.#flagsBefore = flagsBefore;
  }

  async startClient(name: string): Promise<ContractClient> {
    await this.#clients.get(name)?.end();
    const client = await NativeClient.start(this, name);
    this.#clients.set(name, client);
    return client;
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms);
  }

  segments(): Promise<{ used: number[]; capacity: number[] }> {
    throw new OtherBackendOnly("the C interface does not tell what is used");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients.values()) await client.end();
    if (this.#flagsBefore === undefined) delete process.env[FLAGS_VARIABLE];
    else process.env[FLAGS_VARIABLE] = this.#flagsBefore;
  }
}

/** The store, but for `replicas`: the step is skipped, and only its lease is granted. */
function withoutReplicas(store: MooncakeNativeStore): KvStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "replicas")
        return async (keys: StoreKeys) => {
          await target.size(keys);
          throw new OtherBackendOnly("the C interface does not tell where replicas lie");
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

class NativeClient implements ContractClient {
  readonly arena: ContractBuffer;
  localBufferSize: number;
  readonly #world: NativeWorld;
  readonly #name: string;
  readonly #buffers: ContractBuffer[] = [];
  readonly #regions = new Set<bigint>();
  #store: MooncakeNativeStore | undefined;

  static async start(world: NativeWorld, name: string): Promise<NativeClient> {
    const { arena, register, manual } = clientSetup(world.setup, name);
    const client = new NativeClient(world, name, Math.max(arena, 1));
    if (manual) return client;
    const code = await client.setup({});
    if (code !== 0) throw new Error(`client ${name} can't be set up: ${code}`);
    if (register && arena > 0) await client.register(client.arena.address, arena);
    return client;
  }

  constructor(world: NativeWorld, name: string, arenaBytes: number) {
    this.#world = world;
    this.#name = name;
    this.localBufferSize = clientSetup(world.setup, name).local;
    this.arena = this.#memory(arenaBytes);
  }

  get store(): KvStore | undefined {
    return this.#store && withoutReplicas(this.#store);
  }

  async setup(overrides: SetupArguments): Promise<number> {
    const { segment, local } = clientSetup(this.#world.setup, this.#name);
    const wanted = {
      segment: overrides.segment ?? segment,
      local: overrides.local ?? local,
      host: overrides.host ?? "127.0.0.1",
      proto: overrides.proto ?? "tcp",
      ...(overrides.meta !== undefined && { meta: overrides.meta }),
      ...(overrides.master !== undefined && { master: overrides.master }),
    };
    // What the options of our store already refuse, with the code that the library would give.
    const refused = setupCode(wanted);
    if (refused !== 0) return refused;
    if (this.#store) return 0;
    try {
      this.#store = await openStore({
        backend: "mooncake-native",
        library: this.#world.library,
        master: this.#world.master,
        localHostname: wanted.host,
        protocol: wanted.proto,
        globalSegmentSize: wanted.segment,
        localBufferSize: Math.max(wanted.local, 1),
      });
    } catch (error) {
      const code = isMooncakeKvError(error, "ERR_STORE") ? error.details["storeCode"] : undefined;
      if (typeof code !== "number") throw error;
      return code;
    }
    this.localBufferSize = wanted.local;
    return 0;
  }

  async allocate(bytes: number): Promise<ContractBuffer> {
    const buffer = this.#memory(bytes);
    return {
      ...buffer,
      free: async () => {
        const end = buffer.address + BigInt(bytes);
        for (const start of this.#regions)
          if (start >= buffer.address && start < end) await this.unregister(start);
        await buffer.free();
      },
    };
  }

  async register(address: bigint, bytes: number): Promise<number> {
    const code = (await this.#store?.registerBuffer(address, bytes)) ?? CODE.INVALID_PARAMS;
    if (code === 0) this.#regions.add(address);
    return code;
  }

  async unregister(address: bigint): Promise<number> {
    this.#regions.delete(address);
    return (await this.#store?.unregisterBuffer(address)) ?? CODE.INVALID_PARAMS;
  }

  async close(): Promise<number> {
    const store = this.#store;
    this.#store = undefined;
    this.#regions.clear();
    await store?.close();
    return 0;
  }

  async renew(): Promise<void> {
    await this.close();
  }

  async health(): Promise<number> {
    return this.#store ? (await this.#store.health()).code : 1;
  }

  hostname(): string {
    return this.#store ? `127.0.0.1:${this.#name}` : "";
  }

  /** The end of the client and its memory. */
  async end(): Promise<void> {
    await this.close();
    for (const buffer of this.#buffers) await buffer.free();
  }

  /** Memory that is not registered. */
  #memory(bytes: number): ContractBuffer {
    const addon = loadNative();
    const { handle, buffer, baseAddress } = addon.arenaCreate(bytes);
    const memory = {
      address: baseAddress,
      bytes: new Uint8Array(buffer),
      free: async () => addon.arenaClose(handle),
    };
    this.#buffers.push(memory);
    return memory;
  }
}
