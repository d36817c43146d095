import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes, type BlockHashSequence } from "../../src/hash/index.js";
import {
  LOOKUP_FRAME_FORMS,
  type LookupHandlers,
  LookupKeyClient,
  LookupKeyServer,
  type LookupKeyServerOptions,
  type LookupProblem,
  lookupSocketPath,
} from "../../src/lookup/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";

// Real sockets, in a folder of their own; everything is closed in the end, or the test would not end.

const test = suite("lookup sockets");
let folder = "";
const open: { close(): unknown }[] = [];

test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), "mkv-"));
});
test.after.each(async () => {
  for (const each of open.splice(0)) await each.close();
  await rm(folder, { recursive: true });
});

const address = (name = "s") => `ipc://${folder}/${name}`;
const keep = <T extends { close(): unknown }>(resource: T): T => {
  open.push(resource);
  return resource;
};
const listen = async (
  handlers: LookupHandlers,
  socketPath = address(),
  options: Partial<LookupKeyServerOptions> = {},
) => keep(await LookupKeyServer.listen(handlers, { socketPath, ...options }));
const connect = (options: Partial<ConstructorParameters<typeof LookupKeyClient>[0]> = {}) =>
  keep(new LookupKeyClient({ socketPath: address(), ...options }));

const hashes = new BlobBlockHashes(
  Uint8Array.from({ length: 96 }, (_, i) => i),
  32,
);
/** Every hash is a hit of 16 tokens. */
const counting = {
  lookup: (_tokens: number, blockHashes: BlockHashSequence) => ({
    hitLength: blockHashes.length * 16,
    tailKeyBoundaries: [{ groupId: 0, numTokens: blockHashes.length * 16 }],
  }),
};

test("every form of the question reaches the handler", async () => {
  const server = await listen(counting);
  for (const form of LOOKUP_FRAME_FORMS) {
    const answer = await connect({ form }).lookup("r", 64, hashes);
    assert.equal(answer, {
      hitLength: 48,
      tailKeyBoundaries: form === "current" ? [{ groupId: 0, numTokens: 48 }] : [],
    });
  }
  assert.is(server.counters.hits, 3);
});

test("many lookups at once come back in order, each to its own id", async () => {
  await listen(counting);
  const client = connect();
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => client.lookup(`r${i}`, i, hashes.slice(0, i % 4))),
  );
  assert.equal(
    answers.map(({ hitLength }) => hitLength),
    Array.from({ length: 50 }, (_, i) => (i % 4) * 16),
  );
});

test("after a timeout the socket is a new one, and a late reply is not taken for the next", async () => {
  let slow = true;
  await listen({
    lookup: async (numTokens) => {
      if (slow) await new Promise((resolve) => setTimeout(resolve, 120));
      slow = false;
      return { hitLength: numTokens, tailKeyBoundaries: [] };
    },
  });
  const client = connect({ timeoutMs: 50 });
  const first = await client.lookup("a", 1, hashes);
  assert.equal([first.hitLength, first.failure?.reason], [0, "no-reply"]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await client.lookup("b", 2, hashes), { hitLength: 2, tailKeyBoundaries: [] });
});

test("without a server a lookup is unknown, not 0, and finds the server once there is one", async () => {
  const client = connect({ timeoutMs: 60 });
  assert.is((await client.lookup("a", 1, hashes)).failure?.reason, "no-reply");
  await listen(counting);
  assert.is(
    (await keep(new LookupKeyClient({ socketPath: address() })).lookup("a", 1, hashes)).hitLength,
    48,
  );
});

test("a handler that throws, garbage and a reset leave the server alive", async () => {
  const server = await listen({
    lookup: (numTokens) => {
      if (numTokens === 13) throw new Error("boom");
      return { hitLength: 16, tailKeyBoundaries: [] };
    },
    removeAll: () => {},
  });
  const client = connect();
  assert.equal(await client.lookup("a", 13, hashes), { hitLength: 0, tailKeyBoundaries: [] });
  const { Request } = await loadZeroMq();
  const raw = keep(new Request({ linger: 0 }));
  raw.connect(address());
  for (const [frames, reply] of [
    [["lookup"], "00000000"],
    [["lookup", "x", "y"], "00000000"],
    [["nonsense"], "00"],
    [["", "", ""], "00"],
  ] as const) {
    await raw.send([...frames]);
    assert.is((await raw.receive())[0]!.toString("hex"), reply);
  }
  assert.ok(await client.reset());
  assert.is((await client.lookup("b", 1, hashes)).hitLength, 16);
  assert.equal(server.counters, {
    lookups: 1,
    hits: 1,
    malformed: 2,
    unknown: 2,
    failedLookups: 1,
    resets: 1,
    failedResets: 0,
  });
});

test("an asker that goes away before its answer does not stop the server", async () => {
  let asked = 0;
  await listen({
    lookup: async () => {
      asked++;
      await new Promise((resolve) => setTimeout(resolve, 30));
      return { hitLength: 16, tailKeyBoundaries: [] };
    },
  });
  const hasty = connect();
  const lost = hasty.lookup("a", 1, hashes);
  while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  await hasty.close();
  assert.is((await lost).failure?.reason, "closed");
  assert.is((await connect().lookup("b", 1, hashes)).hitLength, 16);
});

test("a second server on a socket somebody answers at is refused, with what to do", async () => {
  const socketPath = lookupSocketPath({ rpcBasePath: folder, hostname: "h" });
  await listen(counting, socketPath);
  const error = await LookupKeyServer.listen(counting, { socketPath }).catch((caught: unknown) => caught);
  assert.ok(isMooncakeKvError(error, "ERR_CONFIG"));
  assert.match((error as Error).message, /lookup_rpc_port/);
  assert.is(
    (await connect({ socketPath }).lookup("a", 1, hashes)).hitLength,
    48,
    "the first one still answers",
  );
});

test("the file of an ended server is replaced, a file that is no socket is kept", async () => {
  const { Reply } = await loadZeroMq();
  const ended = new Reply({ linger: 0 });
  await ended.bind(address("old"));
  ended.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await listen(counting, address("old"));
  assert.is((await connect({ socketPath: address("old") }).lookup("a", 1, hashes)).hitLength, 48);

  await writeFile(join(folder, "notes"), "mine");
  const error = await LookupKeyServer.listen(counting, { socketPath: address("notes") }).catch(
    (caught: unknown) => caught,
  );
  assert.ok(isMooncakeKvError(error, "ERR_CONFIG"));
  assert.ok(existsSync(join(folder, "notes")));
});

test("a closed server leaves no file, and closing twice is fine", async () => {
  const server = await LookupKeyServer.listen(counting, { socketPath: address("gone") });
  assert.ok(existsSync(join(folder, "gone")));
  await server.close();
  await server.close();
  assert.not(existsSync(join(folder, "gone")));
});

test("a server closes under a handler that never ends", async () => {
  let asked = false;
  const server = await LookupKeyServer.listen(
    {
      lookup: () => {
        asked = true;
        return new Promise(() => {});
      },
    },
    { socketPath: address("stuck"), timeoutMs: 300 },
  );
  const lost = connect({ socketPath: address("stuck"), timeoutMs: 100 }).lookup("a", 1, hashes);
  while (!asked) await new Promise((resolve) => setTimeout(resolve, 2));
  await server.close();
  assert.is((await lost).failure?.reason, "no-reply");
});

test("a reset that hangs holds no lookup up, and a server closes under it", async () => {
  let resetting = () => {};
  const begun = new Promise<void>((resolve) => {
    resetting = resolve;
  });
  const removeAll = () => {
    resetting();
    return new Promise(() => {});
  };
  let told = "";
  const onProblem = ({ message }: LookupProblem) => {
    told = message;
  };
  const server = await listen({ ...counting, removeAll }, address(), { onProblem });
  const reset = connect({ timeoutMs: 60_000 })
    .reset()
    .catch((error: unknown) => error);
  await begun;
  for (const id of ["a", "b"]) assert.is((await connect().lookup(id, 1, hashes)).hitLength, 48);
  await server.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(told, "the server was closed before the reset", "no timer keeps the process alive for it");
  for (const each of open.splice(0)) await each.close();
  assert.ok(isMooncakeKvError(await reset, "ERR_LOOKUP"));
});

/** A list of `size` bytes that repeats one element, as the older forms have it. */
function packed(size: number, element: readonly number[]): Uint8Array {
  const count = Math.floor((size - 5) / element.length);
  const list = Buffer.alloc(5 + count * element.length);
  list[0] = 0xdd;
  list.writeUInt32BE(count, 1);
  list.fill(Uint8Array.from(element), 5);
  return list;
}

test("24 MiB of empty texts are refused fast, and the next lookup is answered", async () => {
  const problems: string[] = [];
  await listen(counting, address(), { onProblem: ({ message }) => problems.push(message) });
  const { Request } = await loadZeroMq();
  const raw = keep(new Request({ linger: 0 }));
  raw.connect(address());
  for (const size of [8, 24]) {
    const started = performance.now();
    await raw.send(["lookup", Uint8Array.of(0, 0, 0, 16), packed(size * 2 ** 20, [0xa0])]);
    assert.is((await raw.receive())[0]!.toString("hex"), "00000000");
    assert.ok(performance.now() - started < 2_000);
  }
  assert.equal(problems.length, 2);
  assert.is((await connect().lookup("a", 1, hashes)).hitLength, 48);
});

test("who sends more than a message may have is cut off, and others are answered", async () => {
  const server = await listen(counting, address(), { maxMessageBytes: 1_000 });
  const many = new BlobBlockHashes(new Uint8Array(1_024), 32);
  const large = connect({ timeoutMs: 200 }).lookup("a", 1, many);
  assert.is((await connect().lookup("b", 1, many.slice(0, 31))).hitLength, 31 * 16);
  assert.is((await large).failure?.reason, "no-reply");
  assert.is(server.counters.lookups, 1);
});

test("a reply that is too large is no reply", async () => {
  const { Reply } = await loadZeroMq();
  const socket = keep(new Reply({ linger: 0 }));
  await socket.bind(address("large"));
  const asked = socket.receive().then(() => socket.send(new Uint8Array(2 ** 16 + 4)));
  const { failure } = await connect({ socketPath: address("large"), timeoutMs: 200 }).lookup("a", 1, hashes);
  await asked;
  assert.is(failure?.reason, "no-reply");
});

test("who asks without the envelope of a request socket is answered without one", async () => {
  await listen(counting);
  const { Dealer } = await loadZeroMq();
  const dealer = keep(new Dealer({ linger: 0 }));
  dealer.connect(address());
  await dealer.send(["nonsense"]);
  assert.equal(
    (await dealer.receive()).map((frame) => frame.toString("hex")),
    ["00"],
  );
  await dealer.send(["hop", "", "nonsense"]);
  assert.equal(
    (await dealer.receive()).map((frame) => frame.toString("hex")),
    [Buffer.from("hop").toString("hex"), "", "00"],
  );
});

test("options that can't be are refused before anything is bound", async () => {
  for (const [options, pattern] of [
    [{ maxMessageBytes: 0 }, /maxMessageBytes is 0/],
    [{ maxMessageByte: 5 }, /no option "maxMessageByte"/],
    [{ resetTimeoutMs: Number.NaN }, /resetTimeoutMs is NaN/],
  ] as const) {
    const error = await listen(counting, address("never"), options as object).catch(
      (thrown: unknown) => thrown,
    );
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message), String(error));
    assert.not(existsSync(join(folder, "never")));
  }
});

test("an address that can't be bound is refused", async () => {
  for (const socketPath of [
    `ipc://${folder}/no/such/folder/s`,
    "tcp://256.1.1.1:1",
    `ipc:///${"x".repeat(120)}`,
  ]) {
    const error = await LookupKeyServer.listen(counting, { socketPath }).catch((caught: unknown) => caught);
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), socketPath);
  }
});

test.run();
