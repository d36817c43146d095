import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  decodeLookupResponse,
  encodeLookupRequest,
  encodeLookupResponse,
  encodeResetRequest,
  LOOKUP_MSG,
  type LookupHandlers,
  type LookupProblem,
  LookupResponder,
  RESP_ERR,
  RESP_OK,
} from "../../src/lookup/index.js";
import { checkAsync } from "../helpers/property.js";

const hashes = [Uint8Array.of(1, 2), Uint8Array.of(3, 4)];
const found = { hitLength: 24, tailKeyBoundaries: [{ groupId: 0, numTokens: 28 }] };
const miss = { hitLength: 0, tailKeyBoundaries: [] };
const question = encodeLookupRequest({ numTokens: 32, blockHashes: hashes });

function responder(handlers: LookupHandlers, timeoutMs?: number) {
  const problems: LookupProblem[] = [];
  return {
    problems,
    responder: new LookupResponder(handlers, { timeoutMs, onProblem: (problem) => problems.push(problem) }),
  };
}

test("a reply is the length and the boundaries; vllm-0.27 gets the length alone", async () => {
  for (const [release, length] of [
    ["vllm-0.33", 12],
    ["vllm-0.31", 12],
    ["vllm-0.27", 4],
  ] as const) {
    const reply = await new LookupResponder({ lookup: () => found }, { release }).respond(question);
    assert.is(reply.length, length);
    assert.equal(decodeLookupResponse(reply, release), {
      hitLength: 24,
      tailKeyBoundaries: release === "vllm-0.27" ? [] : found.tailKeyBoundaries,
    });
  }
});

test("the older forms get the length alone", async () => {
  for (const form of ["middle", "first"] as const) {
    const { responder: it } = responder({ lookup: async () => found });
    const reply = await it.respond(encodeLookupRequest({ numTokens: 32, blockHashes: hashes }, form));
    assert.equal([...reply], [0, 0, 0, 24]);
    assert.is(it.counters.hits, 1);
  }
});

test("a handler that throws, rejects or gives nonsense is a miss, counted and told", async () => {
  const bad: LookupHandlers["lookup"][] = [
    () => {
      throw new Error("boom");
    },
    () => Promise.reject(new Error("boom")),
    () => undefined as never,
    () => ({ hitLength: -1, tailKeyBoundaries: [] }),
    () => ({ hitLength: 2 ** 32, tailKeyBoundaries: [] }),
    () => ({ hitLength: 1, tailKeyBoundaries: [{ groupId: 0.5, numTokens: 1 }] }),
  ];
  for (const lookup of bad) {
    const { responder: it, problems } = responder({ lookup });
    assert.equal(decodeLookupResponse(await it.respond(question)), miss);
    assert.equal([it.counters.failedLookups, it.counters.lookups], [1, 0]);
    assert.equal(
      problems.map(({ reason }) => reason),
      ["lookup-failed"],
    );
  }
});

test("a handler that does not end is a miss after the deadline", async () => {
  const { responder: it, problems } = responder({ lookup: () => new Promise(() => {}) }, 20);
  assert.equal(decodeLookupResponse(await it.respond(question)), miss);
  assert.equal([it.counters.failedLookups, problems[0]?.reason], [1, "lookup-timeout"]);
});

test("a listener that throws costs nobody an answer", async () => {
  const it = new LookupResponder(
    { lookup: () => found },
    {
      onProblem: () => {
        throw new Error("listener");
      },
    },
  );
  assert.equal(await it.respond([LOOKUP_MSG]), encodeLookupResponse(miss));
  assert.is(it.counters.malformed, 1);
});

test("a reset drains before it removes; without a handler, or when one fails, it is refused", async () => {
  const calls: string[] = [];
  const lookup = () => found;
  const drainSends = async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    calls.push("drained");
  };
  const removeAll = () => void calls.push("removed");
  const reset = (handlers: LookupHandlers) => new LookupResponder(handlers).respond(encodeResetRequest());
  assert.equal(await reset({ lookup, drainSends, removeAll }), RESP_OK);
  assert.equal(calls, ["drained", "removed"]);
  assert.equal(await reset({ lookup, removeAll }), RESP_OK);
  assert.equal(await reset({ lookup }), RESP_ERR);
  assert.equal(await reset({ lookup, removeAll: () => Promise.reject(new Error("no")) }), RESP_ERR);
});

test("any frames get one reply that the asker can read", async () => {
  const frame = fc.oneof(fc.uint8Array({ maxLength: 8 }), fc.constant(LOOKUP_MSG), fc.constant(question[3]!));
  await checkAsync(
    fc.asyncProperty(fc.array(frame, { maxLength: 5 }), async (frames) => {
      const { responder: it, problems } = responder({ lookup: () => found });
      const reply = await it.respond(frames);
      if (reply.length === 1) assert.equal(reply, RESP_ERR);
      else assert.ok([0, 24].includes(decodeLookupResponse(reply).hitLength));
      const { lookups, malformed, unknown, failedResets } = it.counters;
      assert.is(lookups + malformed + unknown + failedResets, 1);
      assert.is(problems.length, 1 - lookups);
    }),
    { numRuns: 300 },
  );
});

test("a status byte is no count, and a reply of another length is refused", () => {
  for (const [reply, code] of [
    [[1], "ERR_LOOKUP"],
    [[0], "ERR_LOOKUP"],
    [[], "ERR_SCHEMA"],
    [[0, 0, 0], "ERR_SCHEMA"],
    [[0, 0, 0, 1, 0], "ERR_SCHEMA"],
  ] as const)
    for (const release of ["vllm-0.27", "vllm-0.33"] as const)
      assert.throws(
        () => decodeLookupResponse(Uint8Array.from(reply), release),
        (error: unknown) => isMooncakeKvError(error, code),
      );
});

test.run();
