import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AdminStore } from "../../../src/store/open-store.js";
import { rejects, segmentsIn } from "../helpers.js";
import { adminStore } from "./admin-store.js";
import { closing } from "./closing.js";
import { costOf } from "./cost.js";
import { type Answer, fakeMaster, keyAnswer } from "./fake-master.js";
import { descriptorFrame, fakeOwner, OWNER_ADDRESS, statusWord } from "./fake-owner.js";
import { decodedKeys } from "./recorded.js";

// What a master or an owner sends costs no more than what was asked for, and is not believed when it can't be true.

const close = closing(test);

/** Far more than any answer may cost, and far less than what the answers here would. */
const LONGEST_TURN = 200;
const MOST_GROWN = 192 << 20;

const storeOf = async (answer: (path: string) => Answer, deadlineMs = 20_000): Promise<AdminStore> => {
  const master = close(await fakeMaster(({ path }) => answer(path)));
  return close(adminStore({ url: master.url, deadlineMs }));
};

async function cheaply(what: string, work: () => Promise<unknown>): Promise<void> {
  const { longestTurn, grown } = await costOf(work);
  assert.ok(longestTurn < LONGEST_TURN, `${what}: blocked for ${longestTurn} ms`);
  assert.ok(grown < MOST_GROWN, `${what}: grew by ${grown >> 20} MiB`);
}

/** JSON of some size that is mostly many small values. */
const floods = (bytes: number): Buffer[] =>
  ["{},", "1,", "[],", '"",', "null,"].map((value) =>
    Buffer.from(
      `{"success":true,"data":{"k":{"ok":true,"values":[${value.repeat(bytes / value.length)}1]}}}`,
    ),
  );

for (const [name, bytes, code] of [
  ["larger than any answer for one key", 16 << 20, -10],
  ["as large as an answer for one key may be", 16 << 10, -900],
] as const)
  test(`a flood of values ${name} costs nothing`, async () => {
    for (const body of floods(bytes)) {
      const store = await storeOf(() => ({ status: 200, body }));
      await cheaply(String(body.subarray(0, 60)), async () => {
        for (const result of [
          await store.exists(["k"]),
          await store.size(["k"]),
          await store.replicas(["k"]),
          await store.get(["k"]),
        ])
          assert.is(Number(result.codes[0]), code, result.failures()[0]!.reason);
      });
    }
  });

test("a flood of values in the answer for many keys costs no more than those keys", async () => {
  const keys = Array.from({ length: 256 }, (_, index) => `key-${index}`);
  for (const body of floods(4 << 20)) {
    const store = await storeOf(() => ({ status: 200, body }));
    await cheaply(String(body.subarray(0, 60)), async () => {
      const { codes } = await store.exists(keys);
      assert.ok(codes.every((code) => code === -900));
    });
  }
});

test("a flood of values in the other answers of a master costs nothing", async () => {
  for (const [bytes, code] of [
    [16 << 20, -10],
    [(4 << 20) - 100, -900],
  ] as const)
    for (const value of ["{},", "1,"]) {
      const body = Buffer.from(`{"segments":[${value.repeat(bytes / value.length)}1]}`);
      const store = await storeOf(() => ({ status: 200, body }));
      await cheaply(`${bytes} bytes of ${value}`, async () => {
        await rejects(() => store.segments(), "ERR_STORE", new RegExp(`code ${code}`));
        await rejects(() => store.usage(), "ERR_STORE", new RegExp(`code ${code}`));
        assert.is((await store.health()).code, 2);
      });
    }
});

test("an answer in chunks of one byte costs nothing", async () => {
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const bytes = Buffer.from(`${head}${"1\r\n \r\n".repeat(2 << 20)}0\r\n\r\n`);
  const store = await storeOf(() => ({ raw: bytes, end: true }));
  await cheaply("chunks", async () => {
    assert.equal([...(await store.exists(["k"])).codes], [-10]);
    await rejects(() => store.segments(), "ERR_STORE", /ends too early/);
  });
});

test("metrics are read as they come, whatever they are", async () => {
  const segments = { status: 200, body: '{"segments":[]}' };
  for (const line of ["\n", "a 1\n", "valid_get_nums_ 1\n", "# HELP\n", "x"]) {
    const body = Buffer.alloc(4 << 20, line);
    const store = await storeOf((path) => (path === "/metrics" ? { status: 200, body } : segments));
    await cheaply(JSON.stringify(line), async () => {
      const counters = line.startsWith("valid") ? { hits: 1n } : undefined;
      assert.equal((await store.usage()).counters, counters);
    });
    const larger = Buffer.alloc((4 << 20) + 1, line);
    const other = await storeOf((path) => (path === "/metrics" ? { status: 200, body: larger } : segments));
    await cheaply(JSON.stringify(line), () => rejects(() => other.usage(), "ERR_STORE", /code -10/));
  }
});

test("a listing of very many keys leaves others their turn", async () => {
  const store = await storeOf(() => ({ status: 200, body: Buffer.alloc(400_000, "\n") }));
  await cheaply("list", async () => {
    let keys = 0;
    for await (const key of store.list()) keys += key === "" ? 1 : 0;
    assert.is(keys, 400_000);
  });
  const endless = await storeOf(() => ({ status: 200, body: Buffer.alloc((16 << 20) + (1 << 18), "x") }));
  await cheaply("a key without end", () =>
    rejects(
      async () => {
        for await (const _ of endless.list()) assert.unreachable();
      },
      "ERR_STORE",
      /a key of more than/,
    ),
  );
});

test("the descriptor of an owner is bounded, too", async () => {
  for (const body of [`[${"{},".repeat(340_000)}1]`, `[${"1,".repeat(510_000)}1]`]) {
    const owner = close(await fakeOwner(new Uint8Array(0), { handshake: descriptorFrame(body) }));
    const answer = keyAnswer([{ size: 10n, address: OWNER_ADDRESS, endpoint: owner.endpoint }]);
    const store = await storeOf(() => answer);
    await cheaply("descriptor", async () => {
      const result = await store.get(["k"]);
      assert.equal([...result.codes], [-800n]);
      assert.match(result.failures()[0]!.reason!, /more than \d+ values/);
    });
  }
});

const entry = (size: bigint, address = 1n): string =>
  `{"ok":true,"error":null,"values":[{"size_":${size},"buffer_address_":${address},"protocol_":"tcp","transport_endpoint_":"h:1"}]}`;

test("a size or an address that can't be fails its key, with the reason, and no other", async () => {
  for (const [size, address] of [
    [2n ** 63n, 1n],
    [2n ** 64n - 1n, 1n],
    [2n ** 64n, 1n],
    [10n ** 30n, 1n],
    [-1n, 1n],
    [0n, 1n],
    [10n, 2n ** 64n - 9n],
    [10n, -1n],
  ] as const) {
    const body = `{"success":true,"data":{"good":${entry(7n)},"odd":${entry(size, address)}}}`;
    const batch = await storeOf(() => ({ status: 200, body }));
    const keys = ["good", "odd"];
    assert.equal([...(await batch.exists(keys)).codes], [1, -900], `${size} ${address}`);
    assert.equal([...(await batch.size(keys)).codes], [7n, -900n]);
    const replicas = await batch.replicas(keys);
    assert.equal([...replicas.codes], [1, -900]);
    assert.equal(replicas.replicas[1], []);
    assert.match(replicas.failures()[0]!.reason!, /where (size_|buffer_address_) should be/);
    const one = await storeOf(() => keyAnswer([{ size, address, endpoint: "127.0.0.1:1" }]));
    const got = await one.get(["k"]);
    assert.equal([...got.codes], [-900n]);
    const arena = close(await one.createArena(16));
    assert.equal([...(await one.getInto(["k"], segmentsIn(arena, [[[0, 10]]]))).codes], [-900n]);
  }
  const disk = `{"ok":true,"disk_values":[{"object_size":${2n ** 64n - 1n},"file_path":"/x"}]}`;
  const stored = await storeOf(() => ({ status: 200, body: `{"success":true,"data":{"k":${disk}}}` }));
  assert.equal([...(await stored.size(["k"])).codes], [-900n]);
});

test("keys of an answer that nobody asked for are not looked at", async () => {
  const others = Array.from({ length: 100 }, (_, index) => `"other-${index}":[[1]]`).join(",");
  const store = await storeOf(() => ({
    status: 200,
    body: `{"success":true,"data":{${others},"k":${entry(5n)},"z":7}}`,
  }));
  assert.equal([...(await store.size(["k"])).codes], [5n]);
});

test("a key that begins with a byte order mark is found", async () => {
  const store = await storeOf((path) => {
    const data = decodedKeys(path).map((key) => `${JSON.stringify(key)}:${entry(5n)}`);
    return {
      status: 200,
      body: `{"success":true,"data":{${data.join(",").replaceAll("\ufeff", "\\uFEFF")}}}`,
    };
  });
  const keys = ["\ufeffk", "k", "\ufeff", "\ufeff\ufeffk"];
  assert.equal([...(await store.exists(keys)).codes], [1, 1, 1, 1]);
  assert.equal([...(await store.size(keys)).codes], [5n, 5n, 5n, 5n]);
});

test("memory for a value is taken when its bytes come, not when it is announced", async () => {
  const owner = close(
    await fakeOwner(new Uint8Array(0), {
      onRead(socket) {
        socket.write(statusWord(0));
        socket.write(new Uint8Array(1000));
        return true;
      },
    }),
  );
  let size = 2n ** 40n;
  const store = await storeOf(() => keyAnswer([{ size, address: 4096n, endpoint: owner.endpoint }]));
  const huge = await store.get(["k"]);
  assert.equal([...huge.codes], [-600n]);
  assert.match(huge.failures()[0]!.reason!, /1099511627776 bytes is too large/);
  assert.is(owner.reads.length, 0);
  size = 3n << 30n;
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const look = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }, 5);
  const keys = Array.from({ length: 4 }, (_, index) => `k${index}`);
  const { codes } = await store.get(keys, { deadlineMs: 300 });
  clearInterval(look);
  assert.ok(codes.every((code) => code === -901n));
  assert.is(owner.reads.length, 4);
  assert.ok(most < 96 << 20, `${most >> 20} MiB`);
});

test("an owner that never stops sending is cut off", async () => {
  const memory = new Uint8Array(1000).fill(7);
  let sent = 0;
  const owner = close(
    await fakeOwner(memory, {
      onRead(socket) {
        socket.write(statusWord(0));
        const more = (): void => {
          while (!socket.destroyed && socket.write(memory)) sent += memory.length;
          socket.once("drain", more);
        };
        more();
        return true;
      },
    }),
  );
  const answer = keyAnswer([{ size: 1000n, address: OWNER_ADDRESS, endpoint: owner.endpoint }]);
  const store = await storeOf(() => answer);
  await cheaply("endless", async () => {
    assert.equal((await store.get(["k"])).values[0], memory);
  });
  for (let wait = 0; owner.open() > 0 && wait < 200; wait++)
    await new Promise((resolve) => setTimeout(resolve, 5));
  assert.is(owner.open(), 0);
  assert.ok(sent < 64 << 20, `${sent} bytes`);
});

test.run();
