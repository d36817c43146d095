import { CODE } from "../../store/shared/codes.js";
import type { JsonValue } from "../vectors/handler.js";
import { keyList } from "./keys.js";
import { type ClientOp, OtherBackendOnly } from "./member.js";
import { putOptions } from "./replicate-config.js";
import { fillPlace, numbers, segmentRows } from "./step-arguments.js";
import type { ContractClient, SetupArguments } from "./world.js";

/** The ops about a client itself: its memory, its life, and puts in parts. */
export const CLIENT_OPS: Readonly<Record<string, ClientOp>> = {
  register: async (step, { client, memory }) => {
    if (!client.store) return { result: { rc: CODE.INVALID_PARAMS } };
    const { address, size } = memory.place(step["off"], Number(step["size"]));
    const rc = await client.register(address, size);
    if (rc === 0) memory.registered(address, size);
    return { result: { rc } };
  },
  unregister: async (step, { client, memory }) => {
    if (!client.store) return { result: { rc: CODE.INVALID_PARAMS } };
    const { address } = memory.place(step["off"], 0);
    const rc = await client.unregister(address);
    if (rc === 0) memory.unregistered(address);
    return { result: { rc } };
  },
  alloc: async (step, { memory }) => {
    await memory.allocate(String(step["buf"]), Number(step["size"]));
    return { result: { rc: 0 } };
  },
  free: async (step, { memory }) => {
    await memory.free(String(step["buf"]));
    return { result: { rc: 0 } };
  },
  setup_call: async (step, { client }) => ({
    result: { rc: await client.setup((step["with"] ?? {}) as SetupArguments) },
  }),
  new_store: async (_, { client, memory }) => {
    await client.renew();
    memory.nothingRegistered();
    return { result: { rc: 0 } };
  },
  close: async (_, { client, memory }) => {
    const rc = await client.close();
    memory.nothingRegistered();
    return { result: { rc } };
  },
  health: async (_, { client }) => ({ result: { rc: await client.health() } }),
  hostname: async (_, { client }) => ({ result: { value: client.hostname() } }),
  fill: async (step, { memory }) => {
    fillPlace(memory.place(step["off"], Number(step["size"])), Number(step["seed"]));
    return { result: { rc: 0 } };
  },
  put_session_start: async (step, { client }) => {
    const options = putOptions(step["config"]);
    const keys = keyList(step["keys"]);
    if (typeof options === "number") return { result: { rcs: keys.map(() => options) } };
    return { result: { rcs: await sessionsOf(client).start(keys, numbers(step["sizes"]), options) } };
  },
  put_session_write: async (step, { client, memory }) => {
    const rows = segmentRows(step, memory, false) ?? [];
    let seed = Number(step["fill"] ?? 0);
    if (step["fill"] !== undefined) for (const place of rows.flat()) fillPlace(place, seed++);
    const ranges = rows.map((row) => row.map(({ address, size }) => [address, size] as const));
    const targets = (step["dst"] as readonly JsonValue[]).map(numbers);
    return { result: { rcs: await sessionsOf(client).write(keyList(step["keys"]), ranges, targets) } };
  },
  put_session_end: async (step, { client }) => ({
    result: { rcs: await sessionsOf(client).end(keyList(step["keys"])) },
  }),
  put_session_revoke: async (step, { client }) => ({
    result: { rcs: await sessionsOf(client).revoke(keyList(step["keys"])) },
  }),
};

function sessionsOf(client: ContractClient): NonNullable<ContractClient["sessions"]> {
  if (!client.sessions) throw new OtherBackendOnly("it has no puts in parts");
  return client.sessions;
}
