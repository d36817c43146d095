import { createServer } from "node:net";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AdminStore } from "../../../src/store/open-store.js";
import { checkAsync } from "../../helpers/property.js";
import { rejects, segmentsIn } from "../helpers.js";
import { adminStore } from "./admin-store.js";
import { closing } from "./closing.js";
import { type Answer, fakeMaster, keyAnswer } from "./fake-master.js";
import { descriptorFrame, fakeOwner, OWNER_ADDRESS, type OwnerBehaviour, statusWord } from "./fake-owner.js";

// Servers that break every rule: no call crashes, hangs, or writes where it may not.

const close = closing(test);
const memory = Uint8Array.from({ length: 1000 }, (_, index) => index);

const storeOf = async (
  answer: Answer | ((path: string) => Answer),
  deadlineMs = 10_000,
): Promise<AdminStore> => {
  const master = close(
    await fakeMaster(({ path }) => (typeof answer === "function" ? answer(path) : answer)),
  );
  return close(adminStore({ url: master.url, deadlineMs }));
};

/** A store whose objects all are the 1,000 bytes of an owner that behaves like this. */
async function readFrom(behaviour: OwnerBehaviour, deadlineMs = 10_000): Promise<AdminStore> {
  const owner = close(await fakeOwner(memory, behaviour));
  return storeOf(keyAnswer([{ size: 1000n, address: OWNER_ADDRESS, endpoint: owner.endpoint }]), deadlineMs);
}

const raw = (text: string, end = true): Answer => ({ raw: Buffer.from(text), end });

test("a master that says nonsense fails every call with a code and a reason", async () => {
  const answers: readonly [Answer, number, RegExp][] = [
    ["hang up", -900, /failed/],
    [raw("what?\r\n\r\n"), -900, /failed/],
    [raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), -900, /failed|too early/],
    [{ status: 200, body: "" }, -900, /no JSON: it ends too early/],
    [{ status: 200, body: "[[[[" }, -900, /no JSON/],
    [{ status: 200, body: "[".repeat(10_000) }, -900, /nested more than/],
    [{ status: 200, body: "null" }, -900, /should be an object/],
    [{ status: 200, body: '{"success":true}' }, -900, /has undefined where data/],
    [{ status: 200, body: '{"success":true,"data":5}' }, -900, /where data should be/],
    [
      { status: 200, body: '{"success":false,"error_code":-1011,"error_message":"STANDBY"}' },
      -1011,
      /"STANDBY"/,
    ],
    [{ status: 503, body: '{"success":false,"error_code":-1011,"error_message":"X"}' }, -1011, /"X"/],
    [{ status: 503, body: "503 Service Unavailable" }, -900, /status 503: "503 Service/],
    [{ status: 302, body: "" }, -900, /status 302/],
    [{ status: 500, body: '{"error_code":7,"error_message":1}' }, -900, /status 500/],
    [{ status: 400, body: '{"success":false,"error":"No keys"}' }, -600, /"No keys"/],
  ];
  for (const [answer, code, reason] of answers) {
    const store = await storeOf(answer);
    for (const result of [
      await store.exists(["k"]),
      await store.size(["k"]),
      await store.replicas(["k"]),
      await store.get(["k"]),
    ]) {
      assert.is(Number(result.codes[0]), code, `${result.operation}: ${JSON.stringify(answer)}`);
      assert.match(result.failures()[0]!.reason!, reason);
    }
    assert.is((await store.health()).code, 2);
    await rejects(() => store.segments(), "ERR_STORE", /segments: .*\(code -/);
    await rejects(() => store.usage(), "ERR_STORE", /usage: /);
  }
});

test("odd fields of good JSON are refused, not used", async () => {
  const entry = (values: string): Answer => ({
    status: 200,
    body: `{"success":true,"data":{"k":{"ok":true,"error":null,"values":${values}}}}`,
  });
  for (const values of [
    '[{"size_":-1,"buffer_address_":1,"protocol_":"tcp","transport_endpoint_":"h:1"}]',
    '[{"size_":1.5,"buffer_address_":1,"protocol_":"tcp","transport_endpoint_":"h:1"}]',
    '[{"size_":18446744073709551616,"buffer_address_":1,"protocol_":"tcp","transport_endpoint_":"h:1"}]',
    '[{"size_":"1","buffer_address_":1,"protocol_":"tcp","transport_endpoint_":"h:1"}]',
    "[{}]",
    "[null]",
    "{}",
  ]) {
    const store = await storeOf(entry(values));
    assert.is((await store.exists(["k"])).codes[0], -900, values);
  }
  const codes: readonly [string, number][] = [
    ['{"ok":true,"values":[]}', -702],
    ['{"ok":true}', -702],
    ['{"ok":true,"disk_values":[{"object_size":3,"file_path":"/x"}]}', 1],
    ['{"ok":false,"error":"LEASE_EXPIRED"}', -707],
    ['{"ok":false,"error":"OK"}', -1],
    ['{"ok":false,"error":"SOMETHING_NEW"}', -1],
    ['{"ok":false,"error":null}', -1],
    ["{}", -1],
  ];
  for (const [value, code] of codes) {
    const store = await storeOf({ status: 200, body: `{"success":true,"data":{"k":${value}}}` });
    assert.is((await store.exists(["k"])).codes[0], code, value);
  }
  const other = await storeOf({ status: 200, body: '{"success":true,"data":{"other":{"ok":true}}}' });
  const result = await other.exists(["k", "__proto__"]);
  assert.equal([...result.codes], [-1, -1]);
  assert.match(result.failures()[0]!.reason!, /leaves the key out/);
});

test("an answer without end is cut off at the limit", async () => {
  const chunk = Buffer.alloc(1 << 20, "x");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
      const more = (): void => {
        while (!socket.destroyed && socket.write(chunk));
        socket.once("drain", more);
      };
      more();
    });
  });
  close({ close: () => server.close() });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const store = close(adminStore({ url: `http://127.0.0.1:${port}`, deadlineMs: 10_000 }));
  const result = await store.exists(["k"]);
  assert.is(result.codes[0], -10);
  assert.match(result.failures()[0]!.reason!, /larger than \d+ bytes/);
});

test("a master that says nothing costs the deadline, and no more", async () => {
  for (const answer of [
    "silence",
    raw("HTTP/1.1 200 OK\r\nContent-Le", false),
    raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", false),
  ] as const) {
    const store = await storeOf(answer, 60);
    const start = performance.now();
    const keys = Array.from({ length: 1_000 }, (_, index) => `k${index}`);
    const [exists, get, size] = await Promise.all([
      store.exists(keys),
      store.get(keys),
      store.size(["a"], { deadlineMs: 30 }),
    ]);
    assert.ok(performance.now() - start < 5_000);
    assert.ok(exists.codes.every((code) => code === -901));
    assert.ok(get.codes.every((code) => code === -901n));
    assert.is(size.codes[0], -901n);
    assert.match(size.failures()[0]!.reason!, /within the deadline of 30 ms/);
    assert.is((await store.health()).code, 2);
  }
  const closed = close(adminStore({ url: "http://127.0.0.1:1" }));
  assert.is((await closed.exists(["k"])).codes[0], -900);
  assert.match((await closed.health()).message, /http:\/\/127\.0\.0\.1:1 failed/);
});

test("places that can't be are refused", async () => {
  for (const [size, endpoint, code] of [
    [10n, "127.0.0.1:99999", -1012n],
    [10n, `${"h".repeat(400)}:9`, -1012n],
    [10n, "127.0.0.1:1", -800n],
    [10n, "no such host.invalid:80", -1012n],
  ] as const) {
    const store = await storeOf(keyAnswer([{ size, address: 1n, endpoint }]));
    assert.equal([...(await store.get(["k"])).codes], [code], `${size} ${endpoint}`);
  }
});

test("an owner whose handshake is odd gives a code and a reason", async () => {
  const length = (bytes: bigint): Buffer => {
    const frame = Buffer.alloc(9, 1);
    frame.writeBigUInt64LE(bytes);
    return frame;
  };
  const cases: readonly [OwnerBehaviour, bigint, RegExp][] = [
    [{ handshake: "hang up" }, -800n, /closed the connection|can't be reached/],
    [{ handshake: "silence" }, -901n, /deadline of 150 ms/],
    [{ handshake: Buffer.from("HTTP/1.1 400 Bad Request") }, -800n, /does not speak Mooncake's handshake/],
    [{ handshake: length(2n ** 62n) }, -800n, /does not speak/],
    [{ handshake: length(0n) }, -800n, /does not speak/],
    [{ handshake: length(50n) }, -901n, /deadline/],
    [{ handshake: descriptorFrame("not json") }, -800n, /is no JSON/],
    [{ handshake: descriptorFrame("[1]") }, -800n, /is no object/],
    [{ descriptor: { tcp_data_port: 0 } }, -800n, /tcp_data_port 0n/],
    [{ descriptor: { tcp_data_port: 70_000 } }, -800n, /tcp_data_port 70000n/],
    [{ descriptor: { tcp_data_port: "x" } }, -800n, /tcp_data_port "x"/],
    [{ descriptor: { tcp_data_port: 1 } }, -800n, /data port 127\.0\.0\.1:1 failed/],
  ];
  for (const [behaviour, code, reason] of cases) {
    const store = await readFrom(behaviour, code === -901n ? 150 : 10_000);
    const result = await store.get(["k"]);
    assert.equal([...result.codes], [code], String(reason));
    assert.match(result.failures()[0]!.reason!, reason);
  }
  const anywhere = await readFrom({ descriptor: { tcp_data_host: "0.0.0.0" } });
  assert.equal((await anywhere.get(["k"])).values[0], memory);
});

test("an owner whose data port is odd gives a code and a reason", async () => {
  const send = (...bytes: Uint8Array[]): OwnerBehaviour => ({
    onRead(socket) {
      for (const part of bytes) socket.write(part);
      return true;
    },
  });
  const cases: readonly [OwnerBehaviour, bigint, RegExp][] = [
    [send(statusWord(1)), -800n, /refuses the address/],
    [send(statusWord(7)), -800n, /refuses the address/],
    [send(statusWord(0, 0)), -800n, /version 2 of Mooncake's TCP transport/],
    [send(), -901n, /deadline/],
    [send(statusWord(0), memory.subarray(1)), -901n, /deadline/],
    [
      {
        onRead(socket) {
          socket.end(Buffer.concat([statusWord(0), memory.subarray(1)]));
          return true;
        },
      },
      -800n,
      /closed the connection/,
    ],
  ];
  for (const [behaviour, code, reason] of cases) {
    const store = await readFrom(behaviour, code === -901n ? 150 : 10_000);
    const result = await store.get(["k"]);
    assert.equal([...result.codes], [code], String(reason));
    assert.match(result.failures()[0]!.reason!, reason);
  }
  // More than was asked for: this read is whole, and the connection is not used again.
  const more = await readFrom(send(statusWord(0), memory, memory));
  for (let i = 0; i < 3; i++) assert.equal((await more.get(["k"])).values[0], memory);
});

test("nothing is written after a call has ended", async () => {
  let late: (() => void) | undefined;
  const store = await readFrom(
    {
      onRead(socket) {
        socket.write(statusWord(0));
        socket.write(memory.subarray(0, 300));
        late = () => socket.write(memory.subarray(300));
        return true;
      },
    },
    80,
  );
  const arena = await store.createArena(1000);
  arena.bytes.fill(0xee);
  const { codes } = await store.getInto(["k"], segmentsIn(arena, [[[0, 1000]]]));
  assert.equal([...codes], [-901n]);
  late!();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.ok(arena.bytes.subarray(300).every((byte) => byte === 0xee));
  await arena.close();
});

test("any bytes as an answer of the master, and any as an answer of an owner, end in codes", async () => {
  let body: Uint8Array = new Uint8Array(0);
  const master = close(await fakeMaster(() => ({ status: 200, body })));
  const store = close(adminStore({ url: master.url, deadlineMs: 10_000 }));
  const tokens = [
    '{"success":true,"data":',
    "{",
    "}",
    "[",
    "]",
    '"k"',
    ":",
    ",",
    '"ok":true',
    "1",
    "-1",
    "null",
    "\\",
    '"',
  ];
  const text = fc
    .array(fc.constantFrom(...tokens), { maxLength: 12 })
    .map((parts) => Buffer.from(parts.join("")));
  await checkAsync(
    fc.asyncProperty(fc.oneof(text, fc.uint8Array()), async (bytes) => {
      body = bytes;
      const results = [await store.exists(["k"]), await store.size(["k"]), await store.get(["k"])];
      for (const { codes } of results) assert.is.not(codes.length, 0);
      await store.health();
      await store.segments().catch(() => {});
    }),
    { numRuns: 150 },
  );

  let answer: Uint8Array = new Uint8Array(0);
  const behaviour: OwnerBehaviour = {
    onRead(socket) {
      socket.end(answer);
      return true;
    },
  };
  const reading = await readFrom(behaviour);
  await checkAsync(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), fc.boolean(), async (bytes, accepted) => {
      answer = accepted ? Buffer.concat([statusWord(0), bytes]) : bytes;
      const { codes, values } = await reading.get(["k"]);
      if (accepted && bytes.length >= 1000) assert.equal(values[0], bytes.slice(0, 1000));
      else assert.is(codes[0], -800n);
    }),
    { numRuns: 60 },
  );
});

test("listing keys streams: memory stays small, and a listing can be left", async () => {
  let written = 0;
  let gone = false;
  const lines = Buffer.from("some-key-of-twenty-b\n".repeat(50_000));
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("close", () => {
      gone = true;
    });
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n");
      const more = (): void => {
        let room = true;
        while (room && !socket.destroyed) {
          room = socket.write(lines);
          written += lines.length;
        }
        socket.once("drain", more);
      };
      more();
    });
  });
  close({ close: () => server.close() });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const store = close(adminStore({ url: `http://127.0.0.1:${port}` }));
  let count = 0;
  for await (const key of store.list()) {
    assert.is(key, "some-key-of-twenty-b");
    if (++count === 10) await new Promise((resolve) => setTimeout(resolve, 100));
    if (count === 100) break;
  }
  // What the sockets of the system hold, not what the server could send.
  assert.ok(written < 40 << 20, `${written} bytes were sent`);
  for (let i = 0; i < 100 && !gone; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(gone, "the connection is closed");
});

test("keys come over any split of the stream; a bad stream is an error", async () => {
  const collect = async (store: AdminStore, deadlineMs = 10_000): Promise<string[]> => {
    const keys: string[] = [];
    for await (const key of store.list({ deadlineMs })) keys.push(key);
    return keys;
  };
  const master = close(
    await fakeMaster(async ({ path }) => {
      if (path !== "/get_all_keys") return { status: 404, body: "" };
      return { status: 200, body: "one\n\nключ\nlast" };
    }),
  );
  assert.equal(await collect(close(adminStore({ url: master.url }))), ["one", "", "ключ", "last"]);
  for (const [answer, message] of [
    ["silence", /no answer within the deadline of 200 ms \(code -901\)/],
    [raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\none\ntw", false), /deadline.*-901/],
    [raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\none\ntw"), /code -900/],
    [{ status: 503, body: "x" }, /status 503/],
    ["hang up", /code -900/],
  ] as const) {
    const store = await storeOf(answer);
    await rejects(() => collect(store, message.source.includes("901") ? 200 : 10_000), "ERR_STORE", message);
  }
  const bytes = await storeOf({ status: 200, body: Uint8Array.of(0xff, 0x0a, 0x61, 0x0a) });
  const listed: Uint8Array[] = [];
  for await (const key of bytes.listBytes()) listed.push(Uint8Array.from(key));
  assert.equal(listed, [Uint8Array.of(0xff), Uint8Array.of(0x61)]);
});

test.run();
