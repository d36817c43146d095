import { test } from "uvu";
import * as assert from "uvu/assert";
import { PendingLookups } from "../../../src/connector/scheduler/pending-lookups.js";
import { hashes } from "../../../src/testing/connector/worker-harness.js";

function source(hit: number) {
  let asked = 0;
  return {
    asked: () => asked,
    lookup: async () => {
      asked++;
      return { hitLength: hit, tailKeyBoundaries: [] };
    },
    reset: async () => true,
  };
}

test("null while the answer is pending, then the answer, once; asking again is a new question", async () => {
  const answers = source(32);
  const lookups = new PendingLookups(answers);
  assert.is(lookups.lookupAsync("a", 48, hashes(3)), null);
  assert.is(lookups.lookupAsync("a", 48, hashes(3)), null);
  await lookups.settled();
  assert.is(answers.asked(), 1);
  assert.is(lookups.lookupAsync("a", 48, hashes(3))!.hitLength, 32);
  assert.equal(lookups.pending, []);
  assert.is(lookups.lookupAsync("a", 48, hashes(3)), null);
  assert.is(answers.asked(), 2);
});

test("a lookup that rejects, throws, gives nothing or takes too long is a failure, and no miss", async () => {
  const sources = [
    () => Promise.reject(new Error("nobody there")),
    () => {
      throw new Error("nobody there");
    },
    async () => undefined,
    () => new Promise(() => {}),
  ];
  for (const lookup of sources) {
    const lookups = new PendingLookups({ ...source(0), lookup: lookup as never }, { timeoutMs: 5 });
    assert.is(lookups.lookupAsync("a", 48, hashes(3)), null);
    await lookups.settled();
    const answer = lookups.lookupAsync("a", 48, hashes(3))!;
    assert.is(answer.hitLength, 0);
    assert.instance(answer.failure!.error, Error);
  }
});

test("the time of a lookup is a whole number of milliseconds", () => {
  for (const timeoutMs of [0, 1.5, Number.NaN, -1, 2 ** 31, "5" as never])
    assert.throws(() => new PendingLookups(source(0), { timeoutMs }), /timeoutMs is .* whole number/);
});

test("a discarded request leaves nothing behind", async () => {
  const lookups = new PendingLookups(source(32));
  lookups.lookupAsync("a", 48, hashes(3));
  lookups.discard("a");
  await lookups.settled();
  assert.equal(lookups.pending, []);
  assert.is(await lookups.reset(), true);
});

test.run();
