import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkedHit } from "../../../src/connector/scheduler/checked-hit.js";
import { MooncakeStoreScheduler } from "../../../src/connector/scheduler/mooncake-store-scheduler.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import {
  CountingPool,
  FULL,
  HYBRID,
  output,
  request,
  scheduler,
  ToldClient,
} from "../../../src/testing/connector/scheduler-harness.js";

/** A scheduler whose client is not waited for for long, and what it warned of. */
function impatient(lookupMs: number = 15) {
  const warnings: unknown[] = [];
  const client = new ToldClient();
  const made = new MooncakeStoreScheduler({
    config: FULL,
    lookupClient: client,
    blockPool: new CountingPool(),
    timeLimits: { lookupMs, resetMs: 15 },
    logger: { warn: (_, details) => void warnings.push(details["problem"]) },
  });
  return { made, client, warnings };
}

const NO_HIT = [0, false] as const;

for (const hitLength of [Number.NaN, -16, 16.5, 24, 64, 1e9, Infinity, undefined, null, "16", 16n])
  test(`a hit of ${typeof hitLength} ${hitLength} of 48 tokens is refused, counted and logged`, () => {
    const { made, client, warnings } = impatient();
    client.reply = { hitLength: hitLength as number, tailKeyBoundaries: [] };
    assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), NO_HIT);
    assert.is(made.loadSpecs.size, 0);
    assert.equal([made.lookupCounts.refused, made.lookupCounts.misses, warnings], [1, 0, ["refused"]]);
  });

test("answers that are none at all are refused", async () => {
  const { made, client } = impatient();
  const answers = [undefined, 7, "16", Promise.reject(new Error("nobody's"))];
  for (const answer of answers) {
    client.reply = answer as never;
    assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), NO_HIT);
  }
  assert.is(made.lookupCounts.refused, answers.length);
});

test("a tail block is one of each group at most, between the end of the hit and that of its block", () => {
  const { settings } = scheduler(HYBRID).scheduler;
  const asked = request("r", 60, { hashBlockSize: 4 });
  const hit = (...tails: unknown[]) =>
    checkedHit(settings, asked, { hitLength: 20, tailKeyBoundaries: tails as never });
  const tail = (groupId: unknown, numTokens: unknown) => ({ groupId, numTokens });
  for (const right of [20, 24, 28, 32]) assert.is(hit(tail(0, 20), tail(1, right)).hitLength, 20);
  assert.is(hit().hitLength, 20, "the older form names none");
  for (const wrong of [
    [tail(2, 20)],
    [tail(-1, 20)],
    [tail("0", 20), tail(0, 20)],
    [tail(0, 20), tail(0, 24)],
    [tail(0, 16)],
    [tail(0, 36)],
    [tail(0, 22)],
    [tail(0, Number.NaN)],
    [tail(0, undefined)],
  ])
    assert.throws(
      () => hit(...wrong),
      (error: unknown) => isMooncakeKvError(error, "ERR_REQUEST") && /request r/.test(error.message),
    );
  const few = { ...asked, blockHashes: asked.blockHashes.slice(0, 4) };
  assert.throws(() => checkedHit(settings, few, { hitLength: 20, tailKeyBoundaries: [] }), /hashes for 16/);
});

test("a failure is no hit and no miss, whatever hit it comes with; so is a client that throws", () => {
  const { made, client, warnings } = impatient();
  client.reply = { hitLength: 32, tailKeyBoundaries: [], failure: { error: new Error("outage") } } as never;
  assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), NO_HIT);
  client.lookupAsync = () => {
    throw new Error("closed");
  };
  assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), NO_HIT);
  assert.equal(made.lookupCounts, { hits: 0, misses: 0, failed: 2, refused: 0, unanswered: 0 });
  assert.equal(warnings, ["failed", "failed"]);
});

test("a lookup that is never answered is waited for so long, given up, and not asked again", async () => {
  const { made, client, warnings } = impatient();
  client.reply = null;
  const asked = request("r", 48);
  assert.equal(made.getNumNewMatchedTokens(asked, 0), [null, false]);
  const before = performance.now();
  while (made.getNumNewMatchedTokens(asked, 0)[0] === null) {
    assert.ok(performance.now() - before < 1_000, "it is waited for for ever");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.equal([client.discarded, warnings, made.lookupCounts.unanswered], [["r"], ["unanswered"], 1]);
  const calls = client.calls;
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  assert.equal(made.getNumNewMatchedTokens(asked, 0), NO_HIT);
  assert.is(client.calls, calls);
  made.buildConnectorMeta(output({ finished: ["r"] }));
  assert.equal(made.getNumNewMatchedTokens(asked, 0), [32, true], "the next of this id is asked about");
});

test("an answer that comes between two steps counts, however long they are apart", async () => {
  const { made, client } = impatient(1);
  client.reply = null;
  made.getNumNewMatchedTokens(request("r", 48), 0);
  await new Promise((resolve) => setTimeout(resolve, 10));
  client.reply = { hitLength: 32, tailKeyBoundaries: [] };
  assert.equal(made.getNumNewMatchedTokens(request("r", 48), 0), [32, true]);
  assert.is(made.lookupCounts.hits, 1);
});

test("a reset that never settles, rejects or says anything but true has failed", async () => {
  const { made, client } = impatient();
  for (const reset of [
    () => new Promise<boolean>(() => {}),
    () => Promise.reject(new Error("closed")),
    () => 1 as never,
    () => {
      throw new Error("closed");
    },
  ]) {
    client.reset = reset as never;
    assert.is(await made.resetCache(), false);
  }
});

test.run();
