import { test } from "uvu";
import * as assert from "uvu/assert";
import { SchedulerDriver } from "../../src/connector/scheduler-driver.js";
import type { SchedulerEvent } from "../../src/connector/scheduler-events.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { hashOf, scheduler } from "./helpers/scheduler.js";

function driver() {
  const made = scheduler({ enableKvEvents: true });
  return { ...made, driver: new SchedulerDriver(made.scheduler) };
}

test("the life of a request as plain events", async () => {
  const { driver: driven, pool, client } = driver();
  const tokens = Array.from({ length: 40 }, (_, index) => index);
  driven.apply({
    type: "RequestChanged",
    reqId: "a",
    numPromptTokens: 40,
    newBlockHashes: [hashOf(1, 0), hashOf(1, 1)],
    newTokenIds: tokens,
  });
  assert.equal(driven.apply({ type: "GetNumNewMatchedTokens", reqId: "a", numComputedTokens: 0 }), [
    0,
    false,
  ]);
  const blockIds = [[1, 2, 3]];
  driven.apply({ type: "UpdateStateAfterAlloc", reqId: "a", blockIds, numExternalTokens: 0 });
  const { requests } = driven.apply({
    type: "BuildConnectorMeta",
    scheduledNewReqs: [{ reqId: "a", blockIds, numComputedTokens: 0 }],
    numScheduledTokens: new Map([["a", 40]]),
    blockTables: [{ reqId: "a", blockIds }],
  });
  assert.equal([requests[0]!.tokenLenChunk, requests[0]!.tokenIds], [32, tokens.slice(0, 32)]);
  assert.is(requests[0]!.blockHashes.length, 2);
  driven.apply({
    type: "RequestChanged",
    reqId: "a",
    numTokens: 41,
    numComputedTokens: 40,
    newTokenIds: [7],
  });
  assert.is(driven.requests.get("a")!.numTokens, 41);
  assert.equal(driven.apply({ type: "RequestFinished", reqId: "a", blockIds }), [false, null]);
  const offloads = [{ groupId: 1, blockId: 9, numTokens: 32 }];
  assert.is(driven.apply({ type: "RegisterFinishedPartialTail", reqId: "a", blockIds, offloads }), false);
  driven.apply({ type: "UpdateConnectorOutput", completedSaves: new Map([[0, 1]]) });
  assert.is(pool.references.size, 0);
  driven.apply({ type: "BuildConnectorMeta", finishedReqIds: ["a"] });
  assert.equal([driven.requests.size, client.discarded], [0, ["a"]]);
  assert.is(await driven.apply({ type: "ResetCache" }), true);
});

const refused: readonly [string, unknown, RegExp][] = [
  ["no type", {}, /is no scheduler event/],
  ["nothing", null, /is no scheduler event/],
  [
    "an unknown request",
    { type: "GetNumNewMatchedTokens", reqId: "x", numComputedTokens: 0 },
    /"x" is not known/,
  ],
  [
    "a new request without its prompt",
    { type: "RequestChanged", reqId: "x" },
    /must say its numPromptTokens/,
  ],
  [
    "a prompt of -1 tokens",
    { type: "RequestChanged", reqId: "x", numPromptTokens: -1 },
    /numPromptTokens is -1/,
  ],
  [
    "a hash that is text",
    { type: "RequestChanged", reqId: "x", numPromptTokens: 1, newBlockHashes: ["ab"] },
    /new block hash 0/,
  ],
  [
    "reports of half a rank",
    { type: "UpdateConnectorOutput", completedSaves: new Map([[0, 0.5]]) },
    /ranks is 0.5/,
  ],
];
for (const [name, event, message] of refused)
  test(`refused: ${name}`, () => {
    const { driver: driven } = driver();
    assert.throws(
      () => driven.apply(event as SchedulerEvent),
      (error: unknown) => isMooncakeKvError(error, "ERR_REQUEST") && message.test(error.message),
    );
    assert.is(driven.requests.size, 0);
  });

test.run();
