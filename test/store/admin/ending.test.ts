import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AdminStoreOptions } from "../../../src/store/admin/options.js";
import type { AdminStore } from "../../../src/store/open-store.js";
import type { CallOptions } from "../../../src/store/shared/call-options.js";
import { rejects, segmentsIn } from "../helpers.js";
import { adminStore } from "./admin-store.js";
import { closing } from "./closing.js";
import { type Answer, type FakeMaster, fakeMaster, keyAnswer } from "./fake-master.js";
import { type FakeOwner, fakeOwner, OWNER_ADDRESS, type OwnerBehaviour, statusWord } from "./fake-owner.js";

// How calls end: aborted, by their deadline, and while the store or its memory is closed. What they began ends with them.

const close = closing(test);
const memory = Uint8Array.from({ length: 1000 }, (_, index) => index);

interface World {
  readonly store: AdminStore;
  readonly master: FakeMaster;
  readonly owner: FakeOwner;
}

async function world(
  options: Partial<AdminStoreOptions>,
  behaviour: OwnerBehaviour,
  answer: (path: string) => Answer | undefined = () => undefined,
): Promise<World> {
  const owner = close(await fakeOwner(memory, behaviour));
  const object = keyAnswer([{ size: 100n, address: OWNER_ADDRESS, endpoint: owner.endpoint }]);
  const master = close(await fakeMaster(({ path }) => answer(path) ?? object));
  return { store: close(adminStore({ url: master.url, ...options })), master, owner };
}

/** An owner whose reads end when the test says so. */
function heldReads(): OwnerBehaviour & { readonly held: (() => void)[] } {
  const held: (() => void)[] = [];
  const onRead: OwnerBehaviour["onRead"] = (socket, { address, size }) => {
    const start = Number(address - OWNER_ADDRESS);
    socket.write(statusWord(0));
    held.push(() => socket.write(memory.subarray(start, start + Number(size))));
    return true;
  };
  return { held, onRead };
}

async function until(condition: () => boolean): Promise<void> {
  for (let wait = 0; !condition() && wait < 500; wait++) await sleep(5);
  assert.ok(condition(), String(condition));
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  promise.then(settle, settle);
  await sleep(20);
  return settled;
}

type Call = (store: AdminStore, options: CallOptions) => Promise<unknown>;

const CALLS: Readonly<Record<string, Call>> = {
  exists: (store, options) => store.exists(["k", "l"], options),
  size: (store, options) => store.size(["k"], options),
  replicas: (store, options) => store.replicas(["k"], options),
  get: (store, options) => store.get(["k", "l"], options),
  getInto: async (store, options) => {
    const arena = close(await store.createArena(200));
    return store.getInto(["k", "l"], segmentsIn(arena, [[[0, 100]], [[100, 100]]]), options);
  },
  usage: (store, options) => store.usage(options),
  segments: (store, options) => store.segments(options),
  list: (store, options) => store.list(options).next(),
  listBytes: (store, options) => store.listBytes(options).next(),
};

/** Aborts a call once something has begun, and waits for its end. */
async function abort(call: Call, store: AdminStore, begun: () => boolean, end: () => boolean): Promise<void> {
  const aborter = new AbortController();
  const reason = new Error("enough");
  const outcome = call(store, { signal: aborter.signal, deadlineMs: 60_000 }).then(
    () => undefined,
    (error: unknown) => error,
  );
  await until(begun);
  const start = performance.now();
  aborter.abort(reason);
  assert.is(await outcome, reason);
  assert.ok(performance.now() - start < 1_000, `${performance.now() - start} ms`);
  await until(end);
}

for (const [name, call] of Object.entries(CALLS))
  test(`${name} that is aborted while the master is silent ends, and its connections with it`, async () => {
    for (const answer of [
      "silence",
      { raw: Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), end: false },
    ] as const) {
      const { store, master } = await world({}, {}, () => answer);
      const begun = (): boolean => master.requests.length > 0;
      await abort(call, store, begun, () => master.open() === 0);
      const requests = master.requests.length;
      const error: unknown = await call(store, { signal: AbortSignal.abort("before") }).catch(
        (why: unknown) => why,
      );
      assert.is(error, "before");
      assert.is(master.requests.length, requests);
    }
  });

for (const name of ["get", "getInto"] as const)
  test(`${name} that is aborted while an owner is silent ends, and its connections with it`, async () => {
    const silent: readonly [OwnerBehaviour, (owner: FakeOwner) => boolean][] = [
      [{ handshake: "silence" }, (owner) => owner.handshakes() > 0],
      [{ onRead: () => true }, (owner) => owner.reads.length > 0],
      [heldReads(), (owner) => owner.reads.length > 0],
    ];
    for (const [behaviour, begun] of silent) {
      const { store, owner } = await world({}, behaviour);
      await abort(
        CALLS[name]!,
        store,
        () => begun(owner),
        () => owner.open() === 0,
      );
    }
  });

test("a call that has all its answers gives them, aborted or not", async () => {
  const aborter = new AbortController();
  const { store } = await world({}, {});
  const call = store.get(["k"], { signal: aborter.signal });
  const { codes } = await call;
  aborter.abort();
  assert.equal([...codes], [100n]);
});

test("a listing that is aborted between its keys gives no more of them", async () => {
  const { store, master } = await world({}, {}, () => ({ status: 200, body: "a\nb\nc\n" }));
  const aborter = new AbortController();
  const keys: string[] = [];
  let error: unknown;
  try {
    for await (const key of store.list({ signal: aborter.signal })) {
      keys.push(key);
      aborter.abort("enough");
    }
  } catch (thrown) {
    error = thrown;
  }
  assert.equal([keys, error], [["a"], "enough"]);
  await until(() => master.open() === 0);
});

test("a listing ends with the store, which does not wait for it", async () => {
  const begun = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na\nb\n");
  const { store, master } = await world({}, {}, () => ({ raw: begun, end: false }));
  const between = store.list();
  assert.is((await between.next()).value, "a");
  const waiting = store.listBytes();
  await waiting.next();
  await waiting.next();
  const next = waiting.next();
  await store.close();
  await rejects(() => next, "ERR_STORE", /list: the store is closed/);
  await rejects(() => between.next(), "ERR_STORE", /list: the store is closed/);
  await until(() => master.open() === 0);
});

test("after an abort the memory is nobody's any more", async () => {
  const behaviour = heldReads();
  const { store } = await world({}, behaviour);
  const arena = await store.createArena(100);
  arena.bytes.fill(0xee);
  const aborter = new AbortController();
  const call = store.getInto(["k"], segmentsIn(arena, [[[0, 100]]]), { signal: aborter.signal });
  await until(() => behaviour.held.length === 1);
  aborter.abort("enough");
  assert.is(await call.catch((error: unknown) => error), "enough");
  behaviour.held[0]!();
  await sleep(30);
  assert.ok(arena.bytes.every((byte) => byte === 0xee));
  await arena.close();
});

for (const [what, end] of [
  ["unregisterBuffer", (store: AdminStore, address: bigint) => store.unregisterBuffer(address)],
  ["close", (store: AdminStore) => store.close()],
] as const)
  test(`${what} waits for a read, also when another part of the call has failed`, async () => {
    const behaviour = heldReads();
    const { store } = await world({}, behaviour, (path) => (path.endsWith("=gone") ? "hang up" : undefined));
    const other = close(adminStore({ url: "http://127.0.0.1:1" }));
    const arena = close(await other.createArena(300));
    assert.is(await store.registerBuffer(arena.baseAddress, 300), 0);
    const rows = [[[0, 100]], [[100, 100]], [[200, 99]]] as const;
    const call = store.getInto(["gone", "k", "k"], segmentsIn(arena, rows));
    await until(() => behaviour.held.length === 1);
    const ended = end(store, arena.baseAddress);
    assert.equal([await isSettled(call), await isSettled(ended)], [false, false]);
    behaviour.held[0]!();
    assert.equal([...(await call).codes], [-900n, 100n, -600n]);
    await ended;
    assert.equal(arena.bytes.subarray(100, 200), memory.subarray(0, 100));
    assert.ok(arena.bytes.subarray(200).every((byte) => byte === 0));
  });

test("a deadline ends a read that another read of the call has outlived", async () => {
  const behaviour = heldReads();
  const { store, owner } = await world({}, behaviour);
  const arena = close(await store.createArena(200));
  const rows = segmentsIn(arena, [[[0, 100]], [[100, 100]]]);
  const call = store.getInto(["k", "l"], rows, { deadlineMs: 150 });
  await until(() => behaviour.held.length === 2);
  behaviour.held[0]!();
  const { codes } = await call;
  assert.equal([...codes].sort(), [-901n, 100n].sort());
  behaviour.held[1]!();
  await sleep(20);
  const late = codes[0] === 100n ? 100 : 0;
  assert.ok(arena.bytes.subarray(late, late + 100).every((byte) => byte === 0));
  await until(() => owner.open() <= 1);
});

test("a renewal that is not answered ends with its read", async () => {
  let queries = 0;
  const behaviour = heldReads();
  const { store, master } = await world({ leaseMs: 400 }, behaviour, () =>
    queries++ === 0 ? undefined : "silence",
  );
  const call = store.get(["k"]);
  await until(() => queries === 2);
  behaviour.held[0]!();
  assert.equal([...(await call).codes], [100n]);
  // The kept connection of the first query; that of the renewal is gone.
  await until(() => master.open() <= 1);
});

test("a renewal whose answer can't be believed decides nothing", async () => {
  let queries = 0;
  const behaviour = heldReads();
  const { store } = await world({ leaseMs: 2_000 }, behaviour, () =>
    queries++ === 0
      ? undefined
      : keyAnswer([{ size: 2n ** 64n - 1n, address: OWNER_ADDRESS, endpoint: "127.0.0.1:1" }]),
  );
  const call = store.get(["k"]);
  await until(() => queries === 2);
  await sleep(20);
  behaviour.held[0]!();
  assert.equal([...(await call).codes], [100n]);
});

test.run();
