import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ExistsAnswers, LookupOptions } from "../../../src/coordinator/index.js";
import { MooncakeKvError } from "../../../src/errors.js";
import { coordinatorOf, F, hashes, key, M, ours, prefixes, upTo, W } from "../cases.js";

// An outage is a failure and never a miss: what counts as an answer, and when a missing one matters.

const coordinator = coordinatorOf([F(16)], 16);
const options = { numTokens: 65, blockHashes: hashes(4), keyPrefixes: prefixes(1) };
const ask = (answers: unknown, more: Partial<LookupOptions> = {}) =>
  coordinator.lookup({ ...options, exists: async () => answers as ExistsAnswers, ...more });

test("exactly 1 exists, exactly 0 is absent, and whatever else is said is no answer", async () => {
  assert.is((await ask([1, 1, 1, 1])).hitLength, 64);
  assert.equal(await ask(Int32Array.of(1, 1, 0, 1)), {
    hitLength: 32,
    tailKeyBoundaries: [{ groupId: 0, numTokens: 32 }],
    limitedBy: [0],
    keysAsked: 4,
    questions: 1,
  });
  for (const junk of [-1, -900, -704, 2, 0.5, Number.NaN, true, false, "1", "0", 1n, 0n, null, undefined, {}])
    for (const answers of [[1, junk, 1, 1], { codes: [1, junk, 1, 1] }]) {
      const { hitLength, tailKeyBoundaries, failure } = await ask(answers);
      assert.equal([hitLength, tailKeyBoundaries, failure?.reason], [0, [], "store"], String(junk));
    }
});

test("a failure says which key was answered with what, and how many keys were", async () => {
  const { failure, keysAsked, questions } = await ask([1, -900, 0, -1]);
  assert.is(failure!.error.code, "ERR_LOOKUP");
  assert.is(
    failure!.error.message,
    `the store answered -900 for 2 of 4 keys, the first of them "${key(0, 1)}"; the answer to whether a key exists is 1 or 0`,
  );
  assert.equal(failure!.error.details, { storeCode: -900, failed: 2, keys: 4, key: key(0, 1) });
  assert.equal([keysAsked, questions], [4, 1]);
});

test("what the store says of its failure is the error", async () => {
  const said = new MooncakeKvError("ERR_STORE", "nobody answers at h:1");
  const result = (throwIfFailed: () => unknown) => ({ codes: [1, -900, 1, 1], throwIfFailed });
  const thrown = (error: unknown) => () => {
    throw error;
  };
  assert.is((await ask(result(thrown(said)))).failure?.error, said);
  const foreign = (await ask(result(thrown(new TypeError("x"))))).failure!.error;
  assert.match(foreign.message, /answered -900/);
  assert.instance(foreign.cause, TypeError);
  assert.match((await ask(result(() => undefined))).failure!.error.message, /answered -900/);
});

test("the answers may be used again as soon as they were taken", async () => {
  const codes = Int32Array.of(1, 1, 1, 1);
  let asked = 0;
  const { failure } = await coordinator.lookup({
    ...options,
    windows: { first: 2 },
    exists: () => {
      codes.fill(asked++ === 0 ? 1 : -900);
      const given = codes.subarray(0, 2);
      setImmediate(() => codes.fill(7));
      return given;
    },
  });
  assert.match(failure!.error.message, /answered -900 for 2 of 2 keys/);
});

test("a hit that ends before the key without an answer stands, and no question follows", async () => {
  const { hitLength, failure, questions } = await ask([1, 0, -900, -900]);
  assert.equal([hitLength, failure, questions], [16, undefined, 1]);
  const missed = await ask([0, -900, -900, -900]);
  assert.equal([missed.hitLength, missed.failure], [0, undefined]);
});

test("a block that one rank does not have is absent, whatever another one fails to say", async () => {
  const keyPrefixes = prefixes(1, 2);
  const answers = [1, 1, 1, 1, -900, 0, 1, 1];
  const { hitLength, failure } = await ask(answers, { keyPrefixes });
  assert.equal([hitLength, failure], [32, undefined]);
  answers.splice(4, 2, 0, -900);
  assert.is((await ask(answers, { keyPrefixes })).hitLength, 32);
  answers[4] = 1;
  assert.is((await ask(answers, { keyPrefixes })).failure?.reason, "store");
});

test("a window that is whole does not need the blocks before it", async () => {
  const window = coordinatorOf([W(16, 33)], 16);
  const exists = (keys: { readonly length: number }) =>
    Array.from({ length: keys.length }, (_, index) => (index < keys.length - 2 ? -900 : 1));
  const { hitLength, failure } = await window.lookup({ ...options, exists });
  assert.equal([hitLength, failure], [64, undefined]);
});

test("a group that fails after another one has limited the hit to nothing is not asked", async () => {
  const hybrid = coordinatorOf([F(16), M(16)], 16);
  const lookup = (full: number, mamba: number) =>
    hybrid.lookup({
      ...options,
      keyPrefixes: prefixes(2),
      exists: (keys) => keys.toArray().map((name) => (name.includes("@group:0@") ? full : mamba)),
    });
  assert.equal((await lookup(0, -900)).failure, undefined);
  assert.is((await lookup(1, -900)).failure?.reason, "store");
  assert.is((await lookup(-900, 1)).failure?.reason, "store");
});

test("a store that is out is asked once, whatever the length of the prompt", async () => {
  const { questions, keysAsked, failure } = await coordinator.lookup({
    numTokens: 160_001,
    blockHashes: hashes(10_000),
    keyPrefixes: prefixes(1),
    exists: (keys) => upTo(keys.length).map(() => -900),
  });
  assert.equal([questions, keysAsked, failure?.reason], [1, 64, "store"]);
});

test("a key without an answer is not asked about again", async () => {
  const windows = coordinatorOf([W(12, 39)], 12, { schedulerBlockSize: 24, useEagle: true });
  const asked: string[] = [];
  await windows.lookup({
    numTokens: 360,
    blockHashes: hashes(30),
    keyPrefixes: prefixes(1),
    windows: { first: 8, growth: 1 },
    exists: (keys) => keys.toArray().map((name) => [1, 0, 1, -900][(asked.push(name) - 1) % 4]!),
  });
  assert.ok(asked.length > 8);
  assert.is(new Set(asked).size, asked.length);
});

test("a lookup without a function that asks is refused, and no outage", async () => {
  for (const exists of [undefined, 1, {}]) {
    const error = await coordinator
      .lookup({ ...options, exists } as never)
      .catch((thrown: unknown) => thrown);
    assert.ok(ours("ERR_LOOKUP", /^exists is /)(error));
  }
});

test("a signal ends a lookup that nobody answers, as a failure", async () => {
  const controller = new AbortController();
  const silent = coordinator.lookup({
    ...options,
    signal: controller.signal,
    exists: () => {
      queueMicrotask(() => controller.abort(new Error("enough")));
      return new Promise(() => {});
    },
  });
  const { hitLength, failure } = await silent;
  assert.equal([hitLength, failure?.reason], [0, "store"]);
  assert.match(failure!.error.message, /could not be asked: enough/);
  let asked = false;
  const exists = () => {
    asked = true;
    return [1, 1, 1, 1];
  };
  assert.is(
    (await coordinator.lookup({ ...options, signal: controller.signal, exists })).failure?.reason,
    "store",
  );
  assert.not(asked);
  const { signal } = new AbortController();
  assert.is((await coordinator.lookup({ ...options, signal, exists })).hitLength, 64);
});

test.run();
