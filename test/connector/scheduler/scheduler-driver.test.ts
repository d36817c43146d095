import { test } from "uvu";
import * as assert from "uvu/assert";
import { schedulerEventCodec } from "../../../generated/typescript/index.js";
import { SchedulerDriver } from "../../../src/connector/scheduler/scheduler-driver.js";
import type { SchedulerEvent } from "../../../src/connector/scheduler/scheduler-events.js";
import { type ErrorCode, isMooncakeKvError } from "../../../src/errors.js";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import { hashOf, scheduler } from "../../../src/testing/connector/scheduler-harness.js";

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

test("an event that came as JSON does what the same event in memory does", () => {
  const change = {
    type: "RequestChanged",
    req_id: "a",
    num_prompt_tokens: 32,
    new_block_hashes: ["0a", "0b"],
  } as const;
  const step = {
    type: "BuildConnectorMeta",
    scheduled_new_reqs: [{ req_id: "a", block_ids: [[1, 2]], num_computed_tokens: 0 }],
    num_scheduled_tokens: [["a", 32]],
    block_tables: [{ req_id: "a", block_ids: [[1, 2]] }],
  };
  const { driver: driven, pool } = driver();
  const parsed = (json: object) => schedulerEventCodec.fromJson(JSON.parse(JSON.stringify(json)));
  driven.apply(parsed(change));
  driven.apply({ type: "UpdateStateAfterAlloc", reqId: "a", blockIds: [[1, 2]], numExternalTokens: 0 });
  const meta = driven.apply(parsed(step)) as MooncakeStoreConnectorMetadata;
  assert.equal(meta.requests[0]!.blockHashes, [Uint8Array.of(10), Uint8Array.of(11)]);
  assert.equal([...pool.references.keys()], [1, 2]);
});

test("an event is copied: what its sender does with it later does not matter", () => {
  const { driver: driven } = driver();
  const hash = Uint8Array.of(1, 2);
  const hashes = [hash];
  driven.apply({ type: "RequestChanged", reqId: "a", numPromptTokens: 16, newBlockHashes: hashes });
  hash.fill(0);
  hashes.length = 0;
  assert.equal(driven.requests.get("a")!.blockHashes, [Uint8Array.of(1, 2)]);
});

test("a member that is undefined is left out", () => {
  const { driver: driven } = driver();
  driven.apply({
    type: "RequestChanged",
    reqId: "a",
    numPromptTokens: 16,
    numTokens: undefined,
    newTokenIds: undefined,
  });
  assert.is(driven.requests.get("a")!.numTokens, 16);
  driven.apply({ type: "BuildConnectorMeta", blockTables: undefined });
});

const NEW = { type: "RequestChanged", reqId: "x", numPromptTokens: 1 };
const STEP = { type: "BuildConnectorMeta" };
const refused: readonly [string, unknown, RegExp][] = [
  ["no type", {}, /at \$\.type: undefined is refused/],
  ["an unknown type", { type: "constructor" }, /at \$\.type: "constructor" is refused/],
  ["nothing", null, /at \$: null is refused/],
  ["text", "ResetCache", /at \$: "ResetCache" is refused/],
  ["a request without a name", { ...NEW, reqId: "" }, /\$\.req_id: "" is refused/],
  ["a name that is a number", { ...NEW, reqId: 7 }, /\$\.req_id: 7 is refused/],
  ["a prompt of -1 tokens", { ...NEW, numPromptTokens: -1 }, /\$\.num_prompt_tokens: -1 is refused/],
  ["half a token", { ...NEW, newTokenIds: [0.5] }, /\$\.new_token_ids\[0\]: 0\.5 is refused/],
  ["a hash that is text", { ...NEW, newBlockHashes: ["ab"] }, /new_block_hashes\[\]: "ab" is refused/],
  ["no list of hashes", { ...NEW, newBlockHashes: {} }, /not iterable/],
  [
    "reports of half a rank",
    { type: "UpdateConnectorOutput", completedSaves: new Map([[0, 0.5]]) },
    /\$\.completed_saves\[0\]\[1\]: 0\.5 is refused/,
  ],
  ["reports that are no map", { type: "UpdateConnectorOutput", completedSaves: { 0: 1 } }, /not iterable/],
  [
    "a step with a block id below 0",
    { ...STEP, blockTables: [{ reqId: "x", blockIds: [[-1]] }] },
    /\$\.block_tables\[0\]\.block_ids\[0\]\[0\]: -1 is refused/,
  ],
  ["tokens that are no map", { ...STEP, numScheduledTokens: { x: 1 } }, /not iterable/],
  [
    "a cached request that does not say whether it resumes",
    { ...STEP, scheduledCachedReqs: [{ reqId: "x", newBlockIds: null, numComputedTokens: 0 }] },
    /\$\.scheduled_cached_reqs\[0\].*resumed/,
  ],
];
for (const [name, event, message] of refused)
  test(`refused by the schema: ${name}`, () => refuses(event, "ERR_SCHEMA", message));

test("refused by the driver: a request that is not known", () => {
  const event = { type: "GetNumNewMatchedTokens", reqId: "x", numComputedTokens: 0 };
  refuses(event, "ERR_REQUEST", /"x" is not known/);
});

test("refused by the driver: a new request without its prompt", () => {
  refuses({ type: "RequestChanged", reqId: "x" }, "ERR_REQUEST", /must say its numPromptTokens/);
});

function refuses(event: unknown, code: ErrorCode, message: RegExp): void {
  const { driver: driven } = driver();
  assert.throws(
    () => driven.apply(event as SchedulerEvent),
    (error: unknown) => {
      assert.ok(isMooncakeKvError(error, code), String(error));
      assert.match(error.message, message);
      return true;
    },
  );
  assert.is(driven.requests.size, 0);
}

test.run();
