import { createReadStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type ContractBackend,
  type ContractClient,
  type ContractScenario,
  type ContractWorld,
  parseScenario,
  runScenario,
} from "../../../src/conformance/contract/index.js";
import type { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { mooncakeBackend } from "../../../src/conformance/contract/mooncake/world.js";
import type { SegmentTable } from "../../../src/layout/segment-table.js";
import type { KvStore } from "../../../src/store/kv-store.js";
import type { AdminStore } from "../../../src/store/open-store.js";
import type { StoreKeys } from "../../../src/store/shared/keys.js";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { adminStore } from "./admin-store.js";

// The contract suite for what an admin store can do: the real Mooncake writes, and every read goes over the master's HTTP
// interface and the owner's TCP port. What exists and how large it is is asked both ways, and must agree.

const mooncake = findMooncake();

/**
 * The recordings come from an idle machine. On a busy one the master may evict, 10 ms after a put that fills it, what the next
 * step still finds in the recording.
 */
const ATTEMPTS = 8;
const LANES = 2;

const READS = /^(get|batch_get|is_exist|batch_is_exist)/;

function unsupported({ setup, steps }: ContractScenario): string | undefined {
  if (!steps.some(({ op }) => READS.test(op))) return "it reads nothing";
  if (steps.length > 60) return "it is about something else, at length";
  if (setup.leaseTtlMs === 0) return "no lease lasts";
  const text = JSON.stringify(steps, (name, value: unknown) => (name === "note" ? undefined : value));
  if (/"op":"(stop|cont|kill)_|"op":"bg"/.test(text)) return "what happens then is in real-master.test.ts";
  if (/\\u0000|\\n|\\t|"hex"|"[^"]*[ &][^"]*"/.test(text)) return "the interface can't carry such keys";
  if (text.includes('"setup_call"') || text.includes('"crash"'))
    return "it is about clients that are not set up";
  return undefined;
}

const backend = (real: ContractBackend): ContractBackend => ({
  name: "mooncake-admin",
  unsupported,
  async open(setup): Promise<ContractWorld> {
    const world = await real.open(setup);
    const { cluster } = world as unknown as { cluster: MooncakeCluster };
    const admin = adminStore({ url: cluster.adminUrl, leaseMs: setup.leaseTtlMs });
    return {
      startClient: async (name) => reading(await world.startClient(name), admin),
      sleep: (ms) => world.sleep(ms),
      segments: () => world.segments(),
      http: (path) => world.http!(path),
      async [Symbol.asyncDispose]() {
        await admin.close();
        await world[Symbol.asyncDispose]();
      },
    };
  },
});

/** A client whose store reads through the admin store. */
async function reading(client: ContractClient, admin: AdminStore): Promise<ContractClient> {
  if (client.store) await admin.registerBuffer(client.arena.address, client.arena.bytes.length);
  const stores = new WeakMap<KvStore, KvStore>();
  return new Proxy(client, {
    get(target, name) {
      if (name === "store") {
        const { store } = target;
        if (store && !stores.has(store)) stores.set(store, readThrough(store, admin));
        return store && stores.get(store);
      }
      const value: unknown = Reflect.get(target, name, target);
      if (name === "register")
        return async (address: bigint, bytes: number) => {
          await admin.registerBuffer(address, bytes);
          return target.register(address, bytes);
        };
      if (name === "unregister")
        return async (address: bigint) => {
          await admin.unregisterBuffer(address);
          return target.unregister(address);
        };
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function readThrough(store: KvStore, admin: AdminStore): KvStore {
  const agreeing = (name: "exists" | "size") => async (keys: StoreKeys) => {
    const own = await admin[name](keys);
    const real = await store[name](keys);
    // A key with a comma can't be asked for.
    const refused = (index: number): boolean => own.codes[index] === -600 || own.codes[index] === -600n;
    assert.equal(
      Array.from(own.codes, Number).filter((_, index) => !refused(index)),
      Array.from(real.codes, Number).filter((_, index) => !refused(index)),
      `${name} of the admin interface and of Mooncake's client`,
    );
    return real;
  };
  const replaced: Partial<KvStore> = {
    getInto: (keys: StoreKeys, segments: SegmentTable) => admin.getInto(keys, segments),
    get: (keys: StoreKeys) => admin.get(keys),
    exists: agreeing("exists") as KvStore["exists"],
    size: agreeing("size") as KvStore["size"],
  };
  return new Proxy(store, {
    get(target, name) {
      const own = replaced[name as keyof KvStore];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("scenarios that read, with the admin store as the reader", async () => {
  const lines = createInterface({
    input: createReadStream(join("test", "vectors", "mooncake_contract.jsonl")),
  });
  const scenarios: ContractScenario[] = [];
  for await (const line of lines) {
    const scenario = parseScenario(line);
    if (scenario && unsupported(scenario) === undefined) scenarios.push(scenario);
  }
  assert.ok(scenarios.length >= 20, `${scenarios.length} scenarios`);
  if (!mooncake) {
    console.log(`${scenarios.length} scenarios are for where Mooncake's wheel is`);
    return;
  }
  const admin = backend(mooncakeBackend(mooncake));
  const failures: string[] = [];
  const queue = [...scenarios];
  const lane = async (): Promise<void> => {
    for (let scenario = queue.shift(); scenario !== undefined; scenario = queue.shift()) {
      let failure: unknown;
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        ({ failure } = await runScenario(scenario, admin));
        if (failure === undefined) break;
      }
      if (failure !== undefined) failures.push(JSON.stringify(failure));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  assert.is(failures.length, 0, failures.join("\n"));
  console.log(`${scenarios.length} scenarios`);
});

test.run();
