import { test } from "uvu";
import * as assert from "uvu/assert";
import { codecs } from "../../generated/typescript/all-releases.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { createLoadSpec, ReqMeta, RequestTracker } from "../../src/request/index.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_REQUEST") && pattern.test(error.message);

const range = (start: number, end: number) => Array.from({ length: end - start }, (_, i) => start + i);

function tracker(tokenLen: number, numSavedTokens = 0): RequestTracker {
  return new RequestTracker({
    reqId: "r",
    tokenLen,
    numSavedTokens,
    allocatedBlockIds: [[1, 2, 3]],
    tokenIds: range(0, tokenLen),
    prefillEndTokens: 37,
  });
}

const ready = createLoadSpec({ vllmCachedTokens: 0, kvpoolCachedTokens: 32, canLoad: true });

test("a step saves up to the last full block and moves the watermark", () => {
  const request = tracker(40, 16);
  const hashes = [Uint8Array.of(1)];
  const meta = ReqMeta.fromRequestTracker(request, {
    blockSize: 16,
    blockHashes: hashes,
    numPromptTokens: 37,
  });
  assert.equal(meta, {
    reqId: "r",
    tokenLenChunk: 32,
    blockIds: [[1, 2, 3]],
    blockHashes: hashes,
    canSave: true,
    loadSpec: null,
    tokenIds: range(16, 32),
    tokenIdsStart: 16,
    numPromptTokens: 37,
    prefillEndTokens: 37,
    storeJobId: null,
    boundaryPuts: null,
    completedTokenLen: 40,
    publishPartialTail: false,
  });
  assert.is(request.numSavedTokens, 32);
  assert.is(ReqMeta.fromRequestTracker(request, { blockSize: 16 }), null);
});

test("a load puts the save off", () => {
  const request = tracker(40);
  const meta = ReqMeta.fromRequestTracker(request, { blockSize: 16, loadSpec: ready })!;
  assert.equal([meta.canSave, meta.loadSpec, meta.tokenIds, request.numSavedTokens], [false, ready, null, 0]);
  const parked = { ...ready, canLoad: false };
  const waiting = ReqMeta.fromRequestTracker(request, { blockSize: 16, loadSpec: parked, skipSave: true })!;
  assert.equal([waiting.canSave, waiting.loadSpec], [false, null]);
});

test("the partial tail of the prompt is published once", () => {
  const request = tracker(21);
  const options = { blockSize: 16, savePartialTail: true, numPromptTokens: 21 };
  assert.is(ReqMeta.fromRequestTracker(request, options)!.publishPartialTail, true);
  assert.is(request.partialTailSent, true);
  assert.is(ReqMeta.fromRequestTracker(request, options), null);
});

test("the releases fill their own fields", () => {
  const old = ReqMeta.fromRequestTracker(tracker(40, 16), { blockSize: 16, isLastChunk: true }, "vllm-0.27")!;
  assert.equal([old.tokenIds, old.numPromptTokens, old.isLastChunk], [range(0, 40), 37, true]);
  assert.equal(Object.keys(old).includes("tokenIdsStart"), false);
  const mid = ReqMeta.fromRequestTracker(tracker(40, 16), { blockSize: 16 }, "vllm-0.31")!;
  assert.equal([mid.tokenIds, mid.tokenIdsStart, mid.numPromptTokens], [range(16, 32), 16, 37]);
  assert.equal(mid.boundaryStateOffloads, null);
});

test("the objects are the wire types of their release", () => {
  for (const release of ["vllm-0.27", "vllm-0.31", "vllm-0.33"] as const) {
    const meta = ReqMeta.fromRequestTracker(tracker(40), { blockSize: 16 }, release)!;
    const codec = codecs[release].ReqMeta as unknown as {
      toJson(value: unknown): unknown;
      fromJson(json: unknown): unknown;
    };
    assert.equal(codec.fromJson(codec.toJson(meta)), meta, release);
  }
});

test("token and block ids are copies", () => {
  const request = tracker(40);
  const meta = ReqMeta.fromRequestTracker(request, { blockSize: 16 })!;
  request.update([[9]]);
  request.tokenIds![0] = 99;
  assert.equal([meta.blockIds, meta.tokenIds![0]], [[[1, 2, 3]], 0]);
});

test("bad calls are refused and leave the tracker alone", () => {
  const request = tracker(40);
  const call = (options: object, release?: string) => () =>
    ReqMeta.fromRequestTracker(request, options as never, release as never);
  assert.throws(call({ blockSize: 0 }), ours(/blockSize is 0/));
  assert.throws(call({ blockSize: 16, savePartialTail: true }), ours(/needs numPromptTokens/));
  assert.throws(
    call({ blockSize: 16, isLastChunk: true }),
    ours(/"isLastChunk" is no option of release vllm-0.33/),
  );
  assert.throws(call({ blockSize: 16, savePartialTail: true }, "vllm-0.31"), ours(/"savePartialTail"/));
  assert.throws(call({ blockSize: 16 }, "vllm-0.99"), ours(/"vllm-0.99" is unknown.*vllm-0.33/));
  assert.is(request.numSavedTokens, 0);
});

test("a job can't be made that saves and loads, or has a field of another release", () => {
  const least = { reqId: "r", tokenLenChunk: 16, blockIds: [], blockHashes: [] };
  assert.is(ReqMeta.create(least).canSave, null);
  assert.throws(
    () => ReqMeta.create({ ...least, canSave: true, loadSpec: ready }),
    ours(/16.*32.*may do one/),
  );
  assert.throws(() => ReqMeta.create({ ...least, isLastChunk: true } as typeof least), ours(/"isLastChunk"/));
  assert.throws(() => ReqMeta.create({ reqId: "r" } as typeof least), ours(/needs the field tokenLenChunk/));
  assert.throws(() => ReqMeta.create({ ...least, tokenLenChunk: -1 }), ours(/tokenLenChunk is -1/));
});

test("a load spec has the fields of its release", () => {
  const least = { vllmCachedTokens: 1, kvpoolCachedTokens: 2, canLoad: false };
  assert.equal(createLoadSpec(least), { ...least, tokenLen: 0, tailKeyBoundaries: [] });
  assert.equal(createLoadSpec(least, "vllm-0.27"), { ...least, tokenLen: 0 });
  const late = { ...least, tailKeyBoundaries: [] };
  assert.throws(
    () => createLoadSpec(late as typeof least, "vllm-0.27"),
    ours(/no field "tailKeyBoundaries"/),
  );
  assert.throws(() => createLoadSpec({ ...least, kvpoolCachedTokens: Number.NaN }), ours(/NaN/));
  assert.throws(() => createLoadSpec({ ...least, canLoad: 1 as unknown as boolean }), ours(/true or false/));
});

test.run();
