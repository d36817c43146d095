import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AdminStoreOptions } from "../../../src/store/admin/options.js";
import { CheckedStore } from "../../../src/store/checked-store.js";
import { EmbeddedBackend } from "../../../src/store/embedded/embedded-backend.js";
import type { AdminStore } from "../../../src/store/open-store.js";
import { fillPattern, rawSegments, rejects, segmentsIn } from "../helpers.js";
import { adminStore } from "./admin-store.js";
import { closing } from "./closing.js";
import { type Answer, type FakeMaster, fakeMaster, keyAnswer, keyError } from "./fake-master.js";
import { type FakeOwner, fakeOwner, OWNER_ADDRESS, type OwnerBehaviour, statusWord } from "./fake-owner.js";

// Reading objects from an owner of memory that this file plays, over real sockets.

const close = closing(test);
const memory = new Uint8Array(40 << 20);
fillPattern(memory, 7);

interface World {
  readonly store: AdminStore;
  readonly master: FakeMaster;
  readonly owner: FakeOwner;
}

/** Objects by key: offset and size in the owner's memory. */
const OBJECTS: Readonly<Record<string, readonly [offset: number, size: number]>> = {
  small: [0, 100],
  "a,b": [100, 10],
  middle: [4096, 300_000],
  large: [1 << 20, 35 << 20],
};

async function world(
  options: Partial<AdminStoreOptions> = {},
  behaviour: OwnerBehaviour = {},
  answer: (key: string, owner: FakeOwner) => Answer | undefined = () => undefined,
): Promise<World> {
  const owner = close(await fakeOwner(memory, behaviour));
  const master = close(
    await fakeMaster(({ path }) => {
      const key = path.slice("/query_key?key=".length);
      const object = OBJECTS[key];
      const special = answer(key, owner);
      if (special) return special;
      if (object === undefined) return keyError(-704, "OBJECT_NOT_FOUND");
      const [offset, size] = object;
      return keyAnswer([
        { size: BigInt(size), address: OWNER_ADDRESS + BigInt(offset), endpoint: owner.endpoint },
      ]);
    }),
  );
  return { store: close(adminStore({ url: master.url, ...options })), master, owner };
}

const bytesOf = (key: string): Uint8Array => {
  const [offset, size] = OBJECTS[key]!;
  return memory.subarray(offset, offset + size);
};

test("an object is spread over several segments, byte for byte, and nothing else is written", async () => {
  const { store } = await world();
  const arena = close(await store.createArena(1 << 20));
  arena.bytes.fill(0xee);
  const rows = [
    [
      [10, 60],
      [500, 0],
      [200, 40],
    ],
    [[4096, 300_000]],
  ] as const;
  const { codes } = (await store.getInto(["small", "middle"], segmentsIn(arena, rows))).throwIfFailed();
  assert.equal([...codes], [100n, 300_000n]);
  const small = bytesOf("small");
  assert.equal(arena.bytes.subarray(10, 70), small.subarray(0, 60));
  assert.equal(arena.bytes.subarray(200, 240), small.subarray(60));
  assert.equal(Buffer.compare(arena.bytes.subarray(4096, 304_096), bytesOf("middle")), 0);
  for (const [from, to] of [
    [0, 10],
    [70, 200],
    [240, 4096],
    [304_096, 1 << 20],
  ])
    assert.ok(
      arena.bytes.subarray(from, to).every((byte) => byte === 0xee),
      `[${from}, ${to})`,
    );
});

test("a large object is read in pieces over one connection", async () => {
  const { store, owner } = await world();
  const { values } = (await store.get(["large"])).throwIfFailed();
  assert.is(Buffer.compare(values[0]!, bytesOf("large")), 0);
  assert.equal(
    owner.reads.map(({ size }) => size),
    [16n << 20n, 16n << 20n, 3n << 20n],
  );
  assert.is(owner.dataConnections(), 1);
});

test("every key has its own code, and a wrong size writes nothing", async () => {
  const { store, owner } = await world({}, {}, (key) =>
    key === "half" ? keyError(-703, "REPLICA_IS_NOT_READY") : undefined,
  );
  const arena = close(await store.createArena(4096));
  arena.bytes.fill(0xee);
  const keys = ["small", "small", "absent", "half", "", "a b", "a,b", "small"];
  const sizes = [99, 101, 100, 100, 100, 100, 10, 0];
  const result = await store.getInto(
    keys,
    segmentsIn(
      arena,
      sizes.map((size) => [[0, size]]),
    ),
  );
  assert.equal([...result.codes], [-600n, -800n, -704n, -703n, -704n, -600n, 10n, -600n]);
  assert.equal(arena.bytes.subarray(0, 10), bytesOf("a,b"));
  assert.ok(arena.bytes.subarray(10).every((byte) => byte === 0xee));
  assert.is(owner.reads.length, 1);
  assert.match(result.failures()[0]!.reason!, /the object has 100 bytes, its segments 99/);
  assert.match(result.failures().find(({ key }) => key === "a b")!.reason!, /no key with a space/);
});

test("a key that occurs several times is read once, and fills every destination of its size", async () => {
  const { store, owner, master } = await world();
  const arena = close(await store.createArena(4096));
  const rows = [
    [[0, 100]],
    [
      [200, 1],
      [300, 99],
    ],
    [[500, 50]],
    [[600, 100]],
  ] as const;
  const { codes } = await store.getInto(["small", "small", "small", "small"], segmentsIn(arena, rows));
  assert.equal([...codes], [100n, 100n, -600n, 100n]);
  for (const start of [0, 600]) assert.equal(arena.bytes.subarray(start, start + 100), bytesOf("small"));
  assert.is(arena.bytes[200], bytesOf("small")[0]);
  assert.equal(arena.bytes.subarray(300, 399), bytesOf("small").subarray(1));
  assert.is(owner.reads.length, 1);
  assert.is(master.requests.length, 1);
  const { values } = await store.get(["small", "small"]);
  values[0]!.fill(0);
  assert.equal(values[1], bytesOf("small"));
});

test("memory that is not this store's is refused before any byte is read", async () => {
  const { store, owner } = await world();
  const arena = close(await store.createArena(4096));
  const base = arena.baseAddress;
  const result = await store.getInto(
    ["small", "small", "small", "small", "small", "absent"],
    rawSegments([
      [[0n, 100n]],
      [[base - 1n, 100n]],
      [[base + 4000n, 100n]],
      [[2n ** 64n - 50n, 100n]],
      [
        [base, 99n],
        [base + 4096n, 1n],
      ],
      [[0n, 100n]],
    ]),
  );
  assert.equal([...result.codes], [-600n, -600n, -600n, -600n, -600n, -704n]);
  assert.match(result.failures()[0]!.reason!, /no memory of an arena or buffer of this store/);
  assert.is(owner.reads.length, 0);
});

test("memory of another store is written once it is registered", async () => {
  const { store } = await world();
  const embedded = close(CheckedStore.over(new EmbeddedBackend({ capacity: 1 << 20 })));
  const arena = close(await embedded.createArena(8192));
  const row = segmentsIn(arena, [[[8000, 100]]]);
  assert.equal([...(await store.getInto(["small"], row)).codes], [-600n]);
  assert.is(await store.registerBuffer(arena.baseAddress, arena.size), 0);
  assert.is(await store.registerBuffer(arena.baseAddress + 100n, 10), -600);
  assert.equal([...(await store.getInto(["small"], row)).codes], [100n]);
  assert.equal(arena.bytes.subarray(8000, 8100), bytesOf("small"));
  assert.is(await store.unregisterBuffer(arena.baseAddress + 1n), -600);
  assert.is(await store.unregisterBuffer(arena.baseAddress), 0);
  assert.equal([...(await store.getInto(["small"], row)).codes], [-600n]);
  assert.is(await store.registerBuffer(0n, 100), -600);
  assert.is(await store.registerBuffer(arena.baseAddress, 0), -600);
  assert.is(await store.registerBuffer(4096n, 100), -600);
  assert.is(await store.registerBuffer(2n ** 64n - 1n, 2), -600);
  await rejects(() => store.registerBuffer(-1n, 2), "ERR_STORE", /the address is -1n/);
});

test("an arena that is closed during a read waits for the read", async () => {
  let finish: (() => void) | undefined;
  const { store } = await world(
    {},
    {
      onRead(socket, { address, size }) {
        const start = Number(address - OWNER_ADDRESS);
        socket.write(statusWord(0));
        finish = () => socket.write(memory.subarray(start, start + Number(size)));
        return true;
      },
    },
  );
  const arena = await store.createArena(100);
  const call = store.getInto(["small"], segmentsIn(arena, [[[0, 100]]]));
  while (finish === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
  let closed = false;
  const closingArena = arena.close().then(() => {
    closed = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.not(closed);
  finish();
  assert.equal([...(await call).codes], [100n]);
  await closingArena;
  assert.is(arena.bytes.length, 0);
});

test("connections are kept, and one that the owner closed meanwhile is replaced", async () => {
  const { store, owner, master } = await world();
  for (let i = 0; i < 3; i++) (await store.get(["small"])).throwIfFailed();
  assert.equal([owner.dataConnections(), owner.handshakes(), master.connections()], [1, 1, 1]);
  owner.dropConnections();
  (await store.get(["small"])).throwIfFailed();
  assert.is(owner.dataConnections(), 2);
});

test("reads run side by side, as many as allowed", async () => {
  let running = 0;
  let most = 0;
  const { store } = await world(
    { concurrency: 3 },
    {
      onRead(socket, { address, size }) {
        most = Math.max(most, ++running);
        setTimeout(() => {
          running--;
          const start = Number(address - OWNER_ADDRESS);
          socket.write(statusWord(0));
          socket.write(memory.subarray(start, start + Number(size)));
        }, 15);
        return true;
      },
    },
    (key, owner) =>
      keyAnswer([{ size: 10n, address: OWNER_ADDRESS + BigInt(key), endpoint: owner.endpoint }]),
  );
  const keys = Array.from({ length: 10 }, (_, index) => String(index * 10));
  const { values } = (await store.get(keys)).throwIfFailed();
  for (const [index, value] of values.entries())
    assert.equal(value, memory.subarray(index * 10, index * 10 + 10));
  assert.is(most, 3);
});

test("another replica is read when the first one's owner is gone", async () => {
  const gone = await fakeOwner(memory);
  await gone.close();
  const { store } = await world({}, {}, (_key, owner) =>
    keyAnswer([
      { size: 50n, address: 1n, endpoint: "host:1", protocol: "rdma" },
      { size: 50n, address: OWNER_ADDRESS, endpoint: gone.endpoint },
      { size: 50n, address: OWNER_ADDRESS + 5n, endpoint: owner.endpoint },
    ]),
  );
  const { values } = (await store.get(["k"])).throwIfFailed();
  assert.equal(values[0], memory.subarray(5, 55));
});

test("anything but a plain TCP replica is refused with the reason", async () => {
  const answers: Readonly<Record<string, readonly [Answer, RegExp]>> = {
    rdma: [
      keyAnswer([{ size: 1n, address: 1n, endpoint: "h:1", protocol: "rdma" }]),
      /served with protocol "rdma"; only plain TCP/,
    ],
    disk: [keyAnswer([]), /no replica in memory/],
    odd: [keyAnswer([{ size: 1n, address: 1n, endpoint: "nowhere" }]), /"nowhere" is no host:port/],
  };
  const { store } = await world({}, {}, (key) => answers[key]?.[0]);
  const result = await store.get(Object.keys(answers));
  assert.equal([...result.codes], [-1012n, -1012n, -1012n]);
  for (const { key, reason } of result.failures()) assert.match(reason!, answers[key]![1]);
  assert.throws(() => result.throwIfFailed(), /NOT_SUPPORTED .*"rdma".*only plain TCP/);
});

test("an owner that does not serve TCP as today is refused with the reason", async () => {
  for (const [descriptor, reason] of [
    [{ protocol: "rdma" }, /has protocol "rdma"; only plain TCP/],
    [{ tcp_proto_version: 1 }, /tcp_proto_version 1n; only version 2/],
  ] as const) {
    const { store } = await world({}, { descriptor });
    const result = await store.get(["small"]);
    assert.equal([...result.codes], [-1012n]);
    assert.match(result.failures()[0]!.reason!, reason);
  }
});

test("a lease is renewed during a long read, and a read that outlives its lease says so", async () => {
  let renewals = 0;
  const slowly = (ms: number): OwnerBehaviour => ({
    onRead(socket, { address, size }) {
      const start = Number(address - OWNER_ADDRESS);
      socket.write(statusWord(0));
      setTimeout(() => socket.write(memory.subarray(start, start + Number(size))), ms);
      return true;
    },
  });
  const renewed = await world({ leaseMs: 600 }, slowly(2_000), () => {
    renewals++;
    return undefined;
  });
  (await renewed.store.get(["small"])).throwIfFailed();
  assert.ok(renewals >= 4, `${renewals} queries`);

  let queries = 0;
  const moved = await world({ leaseMs: 600 }, slowly(900), (_key, owner) =>
    keyAnswer([{ size: 100n, address: OWNER_ADDRESS + BigInt(queries++), endpoint: owner.endpoint }]),
  );
  const result = await moved.store.get(["small"]);
  assert.equal([...result.codes], [-707n]);

  let asked = 0;
  const gone = await world({ leaseMs: 600 }, slowly(900), () =>
    asked++ === 0 ? undefined : keyError(-704, "OBJECT_NOT_FOUND"),
  );
  assert.equal([...(await gone.store.get(["small"])).codes], [-707n]);
});

test("calls that write are not supported, and say why", async () => {
  const { store, master } = await world();
  const arena = close(await store.createArena(64));
  const row = segmentsIn(arena, [[[0, 64]]]);
  for (const result of [
    await store.putFrom(["k"], row),
    await store.upsertFrom(["k"], row),
    await store.put(["k"], [new Uint8Array(1)]),
    await store.upsert(["k"], [new Uint8Array(1)]),
    await store.remove(["k"]),
  ]) {
    assert.equal([...result.codes], [-1012]);
    assert.throws(() => result.throwIfFailed(), /can only be read/);
  }
  assert.equal([await store.removeAll(), await store.removeByRegex(".*")], [-1012, -1012]);
  assert.is(master.requests.length, 0);
});

test("a closed store lets calls finish and refuses later ones; its arenas stay", async () => {
  const { store } = await world();
  const arena = close(await store.createArena(300_000));
  const call = store.getInto(["middle"], segmentsIn(arena, [[[0, 300_000]]]));
  await store.close();
  assert.equal([...(await call).codes], [300_000n]);
  assert.is(Buffer.compare(arena.bytes, bytesOf("middle")), 0);
  await rejects(() => store.get(["small"]), "ERR_STORE", /get: the store is closed/);
  await rejects(() => store.exists(["small"]), "ERR_STORE", /closed/);
  await rejects(() => store.createArena(1), "ERR_STORE", /closed/);
  await rejects(() => store.segments(), "ERR_STORE", /closed/);
  await rejects(async () => store.list().next(), "ERR_STORE", /closed/);
  await store.close();
});

test("bad options and bad arguments are refused with the reason", async () => {
  const { store } = await world();
  for (const url of ["ftp://h:1", "http://u:secret@h:1", "http://h:1?x=1", "h:1", 5])
    assert.throws(() => adminStore({ url: url as string }), /is written http:\/\/host:9003/);
  assert.throws(
    () => adminStore({ url: "http://u:secret@h:1" }),
    (error: Error) => !JSON.stringify([error.message, error]).includes("secret"),
  );
  assert.throws(() => adminStore({ url: "http://h:1", concurrency: 0 }), /concurrency is 0/);
  assert.throws(() => adminStore({ url: "http://h:1", leaseMs: "x" }), /leaseMs is "x"/);
  for (const bytes of [0, -1, 1.5, 2 ** 40])
    await rejects(() => store.createArena(bytes), "ERR_STORE", /the size is/);
  await rejects(() => store.get(["k"], { deadlineMs: -1 }), "ERR_STORE", /deadlineMs is -1/);
  assert.equal([...(await store.get(["small"], { deadlineMs: 0 })).codes], [-901n]);
  assert.equal([...(await store.get(["small"], { deadlineMs: 2 ** 40 })).codes], [100n]);
  const arena = close(await store.createArena(1));
  await rejects(() => store.getInto(["k"], segmentsIn(arena, [])), "ERR_STORE", /1 keys but 0 rows/);
});

test.run();
