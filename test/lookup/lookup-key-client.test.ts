import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  encodeLookupResponse,
  LookupKeyClient,
  type LookupTransport,
  ZeroMqLookupTransport,
} from "../../src/lookup/index.js";
import { checkAsync } from "../helpers/property.js";

const hashes = [Uint8Array.of(1), Uint8Array.of(2)];
const hit = (hitLength: number) => encodeLookupResponse({ hitLength, tailKeyBoundaries: [] });
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Answers by hand; fails where two requests are under way at once. */
class Hand implements LookupTransport {
  readonly sent: number[] = [];
  #reply: ((reply: Uint8Array) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;
  closed = false;

  request(frames: readonly Uint8Array[]): Promise<Uint8Array> {
    assert.is(this.#reply, undefined, "one request at a time");
    this.sent.push(Buffer.from(frames[1] ?? new Uint8Array(4)).readUInt32BE());
    return new Promise((resolve, reject) => {
      this.#reply = resolve;
      this.#fail = reject;
    });
  }

  get busy(): boolean {
    return this.#reply !== undefined;
  }

  async answer(reply: Uint8Array | Error): Promise<void> {
    const [resolve, reject] = [this.#reply!, this.#fail!];
    this.#reply = undefined;
    if (reply instanceof Error) reject(reply);
    else resolve(reply);
    await turn();
  }

  close(): void {
    this.closed = true;
  }
}

test("pending is null, a miss is 0 and final, and a discarded request leaves nothing", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport });
  assert.is(client.lookupAsync("a", 16, hashes), null);
  assert.is(client.lookupAsync("b", 32, hashes), null);
  await turn();
  assert.is(client.lookupAsync("a", 16, hashes), null);
  await transport.answer(hit(0));
  assert.equal(client.lookupAsync("a", 16, hashes), { hitLength: 0, tailKeyBoundaries: [] });
  assert.equal(client.pending, ["b"]);
  client.discard("b");
  client.discard("nobody");
  await transport.answer(hit(32));
  assert.equal([client.pending, transport.busy], [[], false]);
  assert.equal(transport.sent, [16, 32]);
});

test("a request that is discarded before it is sent is never sent", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport });
  client.lookupAsync("a", 1, hashes);
  const waiting = client.lookup("b", 2, hashes);
  client.lookupAsync("c", 3, hashes);
  await turn();
  client.discard("b");
  await transport.answer(hit(1));
  assert.is((await waiting).failure?.reason, "discarded");
  assert.equal(transport.sent, [1, 3]);
});

test("a reply that can't be read is a miss with a failure; the next request goes out", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport });
  for (const reply of [Uint8Array.of(0), Uint8Array.of(), Uint8Array.of(0, 0, 0, 1, 2)]) {
    const answer = client.lookup("a", 16, hashes);
    await turn();
    await transport.answer(reply);
    const { hitLength, failure } = await answer;
    assert.equal([hitLength, failure?.reason], [0, "reply"]);
  }
  const answer = client.lookup("a", 16, hashes);
  await turn();
  await transport.answer(hit(16));
  assert.equal(await answer, { hitLength: 16, tailKeyBoundaries: [] });
  assert.equal(client.counters, { requests: 4, unanswered: 0, badReplies: 3 });
});

test("a question that has no frames is not sent", async () => {
  const transport = new Hand();
  const answer = await new LookupKeyClient({ transport }).lookup("a", 2 ** 32, hashes);
  assert.equal([answer.hitLength, answer.failure?.reason, transport.sent], [0, "request", []]);
});

test("the deadline counts from the call, so that nobody waits behind a dead engine", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport, timeoutMs: 20 });
  const [first, second] = [client.lookup("a", 1, hashes), client.lookup("b", 2, hashes)];
  await new Promise((resolve) => setTimeout(resolve, 30));
  await transport.answer(new Error("nothing"));
  assert.is((await first).failure?.reason, "no-reply");
  assert.match((await second).failure!.error.message, /earlier requests/);
  assert.equal([transport.sent, client.counters.unanswered], [[1], 2]);
});

test("a reset without a reply is an error, since nobody knows what it did", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport });
  const answers: [Uint8Array, boolean][] = [
    [Uint8Array.of(1), true],
    [Uint8Array.of(0), false],
    [Uint8Array.of(1, 1), false],
  ];
  for (const [reply, expected] of answers) {
    const done = client.reset();
    await turn();
    await transport.answer(reply);
    assert.is(await done, expected);
  }
  const failed = client.reset().catch((error: unknown) => error);
  await turn();
  await transport.answer(new Error("gone"));
  assert.match(String(await failed), /gone/);
});

test("a closed client answers everything as a miss", async () => {
  const transport = new Hand();
  const client = new LookupKeyClient({ transport });
  const answers = [client.lookup("a", 1, hashes), client.lookup("b", 2, hashes)];
  await turn();
  const closing = client.close();
  await transport.answer(new Error("closed"));
  await closing;
  for (const answer of answers) assert.is((await answer).failure?.reason, "closed");
  assert.is((await client.lookup("c", 3, hashes)).failure?.reason, "closed");
  assert.ok(transport.closed);
});

test("in any order of calls, one request is under way, answers belong to their ids, and none is lost", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("ask" as const), id: fc.nat(3) }),
    fc.record({ kind: fc.constant("discard" as const), id: fc.nat(3) }),
    fc.record({ kind: fc.constant("reply" as const), id: fc.nat(3) }),
  );
  await checkAsync(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const transport = new Hand();
      const client = new LookupKeyClient({ transport });
      const waiting = new Set<string>();
      for (const { kind, id } of steps) {
        if (kind === "ask") {
          // The number of tokens names the request, and the reply repeats it.
          const answer = client.lookupAsync(String(id), id + 1, hashes);
          if (answer === null) waiting.add(String(id));
          else {
            assert.equal([answer.hitLength, answer.failure], [id + 1, undefined]);
            waiting.delete(String(id));
          }
        } else if (kind === "discard") {
          client.discard(String(id));
          waiting.delete(String(id));
        } else if (transport.busy) await transport.answer(hit(transport.sent.at(-1)!));
        await turn();
        assert.equal([...client.pending].sort(), [...waiting].sort());
      }
      for (let left = 0; left < 30 && transport.busy; left++)
        await transport.answer(hit(transport.sent.at(-1)!));
      for (const id of waiting) assert.is(client.lookupAsync(id, 9, hashes)?.hitLength, Number(id) + 1);
      assert.equal(client.pending, []);
    }),
    { numRuns: 100 },
  );
});

test("an address that can't be, or none, is refused at once", () => {
  for (const make of [
    () => new LookupKeyClient({}),
    () => new LookupKeyClient({ socketPath: "nonsense" }),
    () => new ZeroMqLookupTransport(`ipc:///${"x".repeat(200)}`),
  ])
    assert.throws(make, (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"));
});

test("options that can't be are refused", () => {
  for (const [options, pattern] of [
    [{ timeout: 5 }, /no option "timeout"/],
    [{ timeoutMs: Number.NaN }, /timeoutMs is NaN/],
    [{ form: "new" }, /form is "new"; it is one of current, middle, first/],
    [{ release: "0.33" }, /release is "0.33"/],
  ] as const)
    assert.throws(
      () => new LookupKeyClient({ socketPath: "ipc:///tmp/x", ...(options as object) }),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message),
    );
});

test.run();
