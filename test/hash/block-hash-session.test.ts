import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlockHasher } from "../../src/hash/block-hasher.js";
import { hashRequest, tokenIds } from "../../src/testing/arbitraries/hash-arbitraries.js";
import { splitsDoNotMatter } from "../../src/testing/laws/hash-laws.js";
import { check, checkAsync } from "../helpers/property.js";

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const hasher = new BlockHasher({ blockSize: 4 });

async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  return undefined;
}

test("a session takes the prompt in and hashes it when told", () => {
  const session = hasher.session({ promptTokenIds: range(0, 9) });
  assert.equal([session.numTokens, session.hashes.length], [9, 0]);
  assert.is(session.advance(), 2);
  assert.is(session.advance(), 0);
  assert.equal(session.hashes.toHex(), hasher.hash(range(0, 9)).toHex());
});

test("appending hashes what became full and never a partial tail", () => {
  const session = hasher.session();
  assert.equal(
    [3, 1, 7, 0, 1, 8].map((count) => session.append(new Uint32Array(count))),
    [0, 1, 1, 0, 1, 2],
  );
  assert.equal(session.hashes.toHex(), hasher.hash(new Uint32Array(20)).toHex());
});

test("a list of hashes is a snapshot", () => {
  const session = hasher.session({ promptTokenIds: range(0, 8) });
  session.advance();
  const before = session.hashes;
  const texts = before.toHex();
  for (let step = 0; step < 40; step++) {
    const now = session.hashes;
    const known = now.toHex();
    session.append(range(step, step + 5));
    assert.equal(now.toHex(), known);
  }
  assert.equal([before.length, before.toHex()], [2, texts]);
  const tokens = [...range(0, 8), ...range(0, 40).flatMap((step) => range(step, step + 5))];
  assert.equal(session.hashes.toHex(), hasher.hash(tokens).toHex());
  assert.equal(session.hashes.slice(0, 2).toHex(), texts);
});

test("tokens are copied: a buffer may be used again", () => {
  const tokens = Uint32Array.from(range(0, 6));
  const session = hasher.session({ promptTokenIds: tokens });
  tokens.fill(9);
  session.append([6, 7]);
  assert.equal(session.hashes.toHex(), hasher.hash(range(0, 8)).toHex());
});

test("a bad token leaves the session as it was", async () => {
  const session = hasher.session({ promptTokenIds: [0, 1, 2] });
  assert.throws(
    () => session.append([3, -1]),
    (error: unknown) => isMooncakeKvError(error, "ERR_HASH") && /token 4 is -1/.test(error.message),
  );
  assert.ok(isMooncakeKvError(await rejection(session.appendAsync([3, 0.5])), "ERR_HASH"));
  assert.equal([session.numTokens, session.hashes.length], [3, 0]);
  session.append([3]);
  assert.equal(session.hashes.toHex(), hasher.hash([0, 1, 2, 3]).toHex());
});

test("one call works at a time: others are refused until an asynchronous one has ended", async () => {
  const tokens = range(0, 4 * 2000);
  const refused = (error: unknown) =>
    isMooncakeKvError(error, "ERR_HASH") && /still hashing/.test(error.message);
  for (const start of ["advanceAsync", "appendAsync"] as const) {
    const session = hasher.session({ promptTokenIds: start === "advanceAsync" ? tokens : [] });
    const pending = start === "advanceAsync" ? session.advanceAsync() : session.appendAsync(tokens);
    assert.throws(() => session.append(range(0, 40)), refused);
    assert.throws(() => session.append([]), refused);
    assert.throws(() => session.advance(), refused);
    await new Promise(setImmediate);
    assert.ok(refused(await rejection(session.advanceAsync())));
    assert.ok(refused(await rejection(session.appendAsync(range(0, 40)))));
    assert.equal([session.numTokens, session.hashes.length < 2000], [8000, true]);
    assert.is(await pending, 2000);
    assert.is(session.append(range(0, 40)), 10);
    assert.equal(session.hashes.toHex(), hasher.hash([...tokens, ...range(0, 40)]).toHex());
  }
});

test("after an abort the session goes on, and an aborted signal adds no tokens", async () => {
  const tokens = range(0, 4 * 2000);
  const session = hasher.session();
  const controller = new AbortController();
  const pending = rejection(session.appendAsync(tokens, controller.signal));
  controller.abort(new Error("enough"));
  assert.is(((await pending) as Error).message, "enough");
  assert.is(((await rejection(session.appendAsync(tokens, controller.signal))) as Error).message, "enough");
  assert.is(session.numTokens, 8000);
  const before = session.hashes.length;
  assert.is(session.advance(), 2000 - before);
  assert.equal(session.hashes.toHex(), hasher.hash(tokens).toHex());
});

test("look-ahead tokens delay a block until they are there, and enter its hash", () => {
  const ahead = new BlockHasher({ blockSize: 4, numHashLookaheadTokens: 2 });
  const session = ahead.session({ promptTokenIds: range(0, 5) });
  assert.equal(
    [session.advance(), session.append([5]), session.append(range(6, 9)), session.append([9])],
    [0, 1, 0, 1],
  );
  const first = ahead.hashBlock(null, range(0, 4), [null, 4, 5]);
  const second = ahead.hashBlock(first, range(4, 8), [null, 8, 9]);
  assert.equal(
    session.hashes.toHex(),
    [first, second].map((hash) => Buffer.from(hash).toString("hex")),
  );
});

test("law: appending in any split is hashing at once", () => {
  check(splitsDoNotMatter(hasher));
  check(
    splitsDoNotMatter(new BlockHasher({ blockSize: 3, algorithm: "sha256_cbor", numHashLookaheadTokens: 2 })),
  );
});

test("law: asynchronous is synchronous", async () => {
  await checkAsync(
    fc.asyncProperty(hashRequest(), tokenIds(), async (request, more) => {
      const [now, later] = [hasher.session(request), hasher.session(request)];
      const counts = [now.advance(), now.append(more)];
      assert.equal([await later.advanceAsync(), await later.appendAsync(more)], counts);
      assert.equal(later.hashes.toHex(), now.hashes.toHex());
      assert.equal((await hasher.hashAsync(request)).toHex(), hasher.hash(request).toHex());
    }),
  );
});

test("hashing 200,000 tokens asynchronously lets other work run, with the same hashes", async () => {
  const tokens = Uint32Array.from({ length: 200_000 }, (_, index) => (index * 2_654_435_761) % 201_088);
  const wide = new BlockHasher({ blockSize: 16 });
  let turns = 0;
  let ticks = 0;
  let running = true;
  const turn = () => {
    turns++;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  const timer = setInterval(() => ticks++, 1);
  const hashes = await wide.hashAsync(tokens);
  running = false;
  clearInterval(timer);
  assert.ok(turns >= 20, `${turns} turns of the event loop while hashing`);
  assert.ok(ticks >= 2, `${ticks} timers fired while hashing`);
  assert.is(hashes.length, 12_500);
  assert.ok(Buffer.from(hashes.blob).equals(wide.hash(tokens).blob));
});

test("a signal that is already aborted stops the work before it begins", async () => {
  const session = hasher.session({ promptTokenIds: range(0, 8) });
  const reason = new Error("no longer wanted");
  assert.is(await rejection(session.advanceAsync(AbortSignal.abort(reason))), reason);
  assert.is(session.hashes.length, 0);
  assert.is(await rejection(hasher.hashAsync([1, 2, 3, 4], { signal: AbortSignal.abort(reason) })), reason);
});

test("an abort under way ends the work soon, and the session can go on", async () => {
  const tokens = Uint32Array.from({ length: 100_000 }, (_, index) => index);
  const session = hasher.session({ promptTokenIds: tokens });
  const control = new AbortController();
  setImmediate(() => control.abort());
  const error = await rejection(session.advanceAsync(control.signal));
  assert.is((error as Error).name, "AbortError");
  const done = session.hashes.length;
  assert.ok(done > 0 && done < 5_000, `${done} of 25,000 blocks`);
  assert.is(session.advance(), 25_000 - done);
  assert.ok(Buffer.from(session.hashes.blob).equals(hasher.hash(tokens).blob));
});

test.run();
