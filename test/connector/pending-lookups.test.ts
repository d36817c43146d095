import { test } from "uvu";
import * as assert from "uvu/assert";
import { PendingLookups } from "../../src/connector/pending-lookups.js";
import { hashes } from "./helpers/worker.js";

function source(hit: number | Error) {
  let asked = 0;
  return {
    asked: () => asked,
    lookup: async () => {
      asked++;
      if (hit instanceof Error) throw hit;
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

test("a failed lookup is a miss", async () => {
  const lookups = new PendingLookups(source(new Error("nobody there")));
  lookups.lookupAsync("a", 48, hashes(3));
  await lookups.settled();
  assert.is(lookups.lookupAsync("a", 48, hashes(3))!.hitLength, 0);
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
