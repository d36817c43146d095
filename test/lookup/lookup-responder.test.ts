import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { LookupResult } from "../../src/coordinator/index.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { lookupError } from "../../src/lookup/errors.js";
import {
  decodeLookupResponse,
  encodeLookupRequest,
  encodeLookupResponse,
  encodeResetRequest,
  LOOKUP_MSG,
  type LookupHandlers,
  type LookupProblem,
  LookupResponder,
  type LookupResponderOptions,
  RESP_ERR,
  RESP_OK,
} from "../../src/lookup/index.js";
import { checkAsync } from "../helpers/property.js";

const hashes = [Uint8Array.of(1, 2), Uint8Array.of(3, 4)];
const found = { hitLength: 24, tailKeyBoundaries: [{ groupId: 0, numTokens: 28 }] };
const miss = { hitLength: 0, tailKeyBoundaries: [] };
const question = encodeLookupRequest({ numTokens: 32, blockHashes: hashes });

function responder(handlers: LookupHandlers, options: LookupResponderOptions = {}) {
  const problems: LookupProblem[] = [];
  const onProblem = (problem: LookupProblem) => void problems.push(problem);
  return { problems, responder: new LookupResponder(handlers, { ...options, onProblem }) };
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
  const { responder: it, problems } = responder({ lookup: () => new Promise(() => {}) }, { timeoutMs: 20 });
  assert.equal(decodeLookupResponse(await it.respond(question)), miss);
  assert.equal([it.counters.failedLookups, problems[0]?.reason], [1, "lookup-timeout"]);
});

test("a result with a failure is a miss on the wire, counted as failed and told", async () => {
  const error = lookupError("the store answered -900");
  for (const failure of [
    { reason: "store", error },
    { reason: "search", error },
  ] as const) {
    // What a coordinator's lookup gives.
    const result: LookupResult = { ...miss, keysAsked: 4, questions: 1, limitedBy: [], failure };
    const { responder: it, problems } = responder({ lookup: async () => result });
    assert.equal(decodeLookupResponse(await it.respond(question)), miss);
    assert.equal([it.counters.failedLookups, it.counters.lookups], [1, 0]);
    assert.equal(problems, [{ reason: "lookup-failed", message: "the store answered -900" }]);
  }
  const { responder: it } = responder({ lookup: () => ({ ...found, failure: { error } }) });
  assert.equal(decodeLookupResponse(await it.respond(question)), miss, "a hit beside a failure is none");
});

test("a listener that throws or rejects costs nobody an answer, and not the process", async () => {
  for (const onProblem of [
    () => {
      throw new Error("listener");
    },
    () => Promise.reject(new Error("listener")) as never,
  ]) {
    const it = new LookupResponder({ lookup: () => found }, { onProblem });
    assert.equal(await it.respond([LOOKUP_MSG]), encodeLookupResponse(miss));
    assert.is(it.counters.malformed, 1);
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test("a reset drains before it removes; without a handler, or when one fails, it is refused", async () => {
  const calls: string[] = [];
  const lookup = () => found;
  const drainSends = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    calls.push("drained");
  };
  const removeAll = () => void calls.push("removed");
  const reset = (handlers: LookupHandlers) => new LookupResponder(handlers).respond(encodeResetRequest());
  assert.equal(await reset({ lookup, drainSends, removeAll }), RESP_OK);
  assert.equal(calls, ["drained", "removed"]);
  assert.equal(await reset({ lookup, removeAll }), RESP_OK);
  assert.equal(await reset({ lookup }), RESP_ERR);
  assert.equal(await reset({ lookup, removeAll: () => Promise.reject(new Error("no")) }), RESP_ERR);
  const broken = () => Promise.reject(new Error("no"));
  assert.equal(await reset({ lookup, drainSends: broken, removeAll }), RESP_ERR);
  assert.is(calls.length, 3, "what could not be drained is not removed");
});

test("a reset is done where removeAll gives nothing, true or a count, and whatever else it gives is a failure", async () => {
  const reset = async (removed: unknown) => {
    const { responder: it, problems } = responder({ lookup: () => found, removeAll: async () => removed });
    return { reply: await it.respond(encodeResetRequest()), it, problems };
  };
  for (const removed of [undefined, true, 0, 7, 0n, 12n])
    assert.equal((await reset(removed)).reply, RESP_OK, String(removed));
  for (const removed of [-900, -1, -1n, false, null, Number.NaN, Infinity, 0.5, "0", {}]) {
    const { reply, it, problems } = await reset(removed);
    assert.equal(reply, RESP_ERR, String(removed));
    assert.equal([it.counters.resets, it.counters.failedResets], [1, 1]);
    assert.is(problems[0]!.reason, "reset-failed");
    assert.match(problems[0]!.message, /^removeAll gave /);
  }
});

test("a reset that does not end fails in time, and nothing is removed after that", async () => {
  for (const hangs of ["drainSends", "removeAll"] as const) {
    const signals: AbortSignal[] = [];
    let goOn = () => {};
    let removed = 0;
    const handlers: LookupHandlers = {
      lookup: () => found,
      drainSends: ({ signal }) => {
        signals.push(signal);
        return hangs === "drainSends" ? new Promise<void>((resolve) => (goOn = resolve)) : undefined;
      },
      removeAll: () => {
        removed++;
        return hangs === "removeAll" ? new Promise(() => {}) : 1;
      },
    };
    const { responder: it, problems } = responder(handlers, { resetTimeoutMs: 20 });
    const pending = it.respond(encodeResetRequest());
    assert.not(signals[0]!.aborted);
    assert.equal(decodeLookupResponse(await it.respond(question)), found, "lookups go on");
    assert.equal(await it.respond(encodeResetRequest()), RESP_ERR, "one reset at a time");
    assert.equal(await pending, RESP_ERR);
    assert.equal(
      problems.map(({ reason }) => reason),
      ["reset-failed", "reset-timeout"],
    );
    assert.match(problems[1]!.message, /longer than 20 ms/);
    assert.ok(signals[0]!.aborted);
    goOn();
    await new Promise((resolve) => setImmediate(resolve));
    assert.is(removed, hangs === "removeAll" ? 1 : 0);
    const again = it.respond(encodeResetRequest());
    goOn();
    assert.equal(await again, hangs === "removeAll" ? RESP_ERR : RESP_OK, "a later reset is tried anew");
  }
});

test("a reset that ends in time is not aborted", async () => {
  let told: AbortSignal | undefined;
  const removeAll: LookupHandlers["removeAll"] = ({ signal }) => {
    told = signal;
  };
  await new LookupResponder({ lookup: () => found, removeAll }).respond(encodeResetRequest());
  assert.not(told!.aborted);
});

test("a responder that is closed waits for nobody", async () => {
  const never = () => new Promise<never>(() => {});
  const { responder: it, problems } = responder({ lookup: never, removeAll: never });
  const replies = [it.respond(question), it.respond(encodeResetRequest())];
  it.close();
  assert.equal(await Promise.all(replies), [encodeLookupResponse(miss), RESP_ERR]);
  assert.equal(problems, [
    { reason: "lookup-timeout", message: "the server was closed before the answer" },
    { reason: "reset-timeout", message: "the server was closed before the reset" },
  ]);
});

test("handlers and options that can't be are refused", () => {
  const lookup = () => found;
  for (const [handlers, options, pattern] of [
    [undefined, {}, /no function "lookup"/],
    [{}, {}, /no function "lookup"/],
    [{ lookup }, { timeout: 5 }, /no option "timeout"; there are release, timeoutMs/],
    [{ lookup }, { timeoutMs: Number.NaN }, /timeoutMs is NaN/],
    [{ lookup }, { timeoutMs: 0 }, /timeoutMs is 0/],
    [{ lookup }, { timeoutMs: 2 ** 31 }, /timeoutMs is 2147483648/],
    [{ lookup }, { resetTimeoutMs: "5" }, /resetTimeoutMs is "5"/],
    [{ lookup }, { release: "vllm-9" }, /release is "vllm-9"; it is one of vllm-0\.27/],
    [{ lookup }, { onProblem: 5 }, /onProblem is 5/],
    [{ lookup }, null, /options of a lookup responder are null/],
  ] as const)
    assert.throws(
      () => new LookupResponder(handlers as never, options as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message),
    );
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
