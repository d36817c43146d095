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
const listen = async (handlers: LookupHandlers, socketPath = address()) =>
  keep(await LookupKeyServer.listen(handlers, { socketPath }));
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
