import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import { isMooncakeKvError } from "../../errors.js";
import { RELEASES, type Release } from "../../release.js";
import { createLoadSpec } from "../../request/load-spec.js";
import { type FromRequestTrackerOptions, ReqMeta } from "../../request/req-meta.js";
import { RequestTracker } from "../../request/request-tracker.js";
import fc from "../fast-check.js";

// Laws of request tracking. Each function returns a fast-check property.

/** One scheduler step of a request: tokens that are computed, and what the scheduler wants. */
interface AnyStep {
  readonly newTokens: number;
  readonly load: "none" | "known" | "ready";
  readonly skipSave: boolean;
  readonly reset: boolean;
  readonly tail: boolean;
}

/** What one step came to. */
interface Outcome {
  readonly savedBefore: number;
  readonly tracker: RequestTracker;
  readonly meta: ReqMeta<Release> | null;
}

/** Steps of one request in any release. */
export function requestLife(): FastCheck.Arbitrary<{
  readonly release: Release;
  readonly blockSize: number;
  readonly steps: readonly AnyStep[];
}> {
  return fc.record({
    release: fc.constantFrom(...RELEASES),
    blockSize: fc.constantFrom(1, 2, 8, 16),
    steps: fc.array(
      fc.record({
        newTokens: fc.nat(40),
        load: fc.constantFrom("none", "known", "ready"),
        skipSave: fc.boolean(),
        reset: fc.nat(9).map((n) => n === 0),
        tail: fc.boolean(),
      }),
      { maxLength: 12 },
    ),
  });
}

/** Between two resets the saved watermark never falls, never passes the tokens, and lies on a block end. */
export function savedWatermarkNeverFalls(): FastCheck.IProperty<unknown[]> {
  return forEveryStep(({ savedBefore, tracker }, blockSize) => {
    assert.ok(tracker.numSavedTokens >= savedBefore);
    assert.ok(tracker.numSavedTokens <= tracker.tokenLen);
    assert.equal(tracker.numSavedTokens % blockSize, 0);
  });
}

/** A job that saves carries the tokens from the old watermark to the new one; in vllm-0.27 all of them. */
export function tokenIdsAreTheSavedRange(): FastCheck.IProperty<unknown[]> {
  return forEveryStep(({ savedBefore, tracker, meta }) => {
    if (!meta?.canSave || !tracker.tokenIds?.length) return;
    assert.equal(meta.tokenLenChunk, tracker.numSavedTokens);
    if (!("tokenIdsStart" in meta)) return assert.deepEqual(meta.tokenIds, tracker.tokenIds);
    assert.equal(meta.tokenIdsStart, savedBefore);
    assert.deepEqual(meta.tokenIds, tracker.tokenIds.slice(savedBefore, meta.tokenLenChunk));
  });
}

/** No job both saves and loads; one that could is refused. A step that does neither moves nothing. */
export function neverSavesAndLoads(): FastCheck.IProperty<unknown[]> {
  return forEveryStep(({ savedBefore, tracker, meta }, _blockSize, release) => {
    assert.ok(!(meta?.canSave && meta.loadSpec));
    if (!meta?.canSave) assert.equal(tracker.numSavedTokens, savedBefore);
    const loadSpec = createLoadSpec({ vllmCachedTokens: 0, kvpoolCachedTokens: 16, canLoad: true }, release);
    if (meta?.canSave)
      assert.throws(
        () => ReqMeta.create<Release>({ ...meta, loadSpec }, release),
        (error) => isMooncakeKvError(error, "ERR_REQUEST"),
      );
  });
}

/** What happens to the tracker later does not reach a job that was made before. */
export function jobsAreSnapshots(): FastCheck.IProperty<unknown[]> {
  const jobs: { meta: ReqMeta<Release>; text: string }[] = [];
  const text = (meta: ReqMeta<Release>) => JSON.stringify(meta);
  return forEveryStep(({ meta }, _blockSize, _release, first) => {
    if (first) jobs.length = 0;
    for (const job of jobs) assert.equal(text(job.meta), job.text);
    if (meta) jobs.push({ meta, text: text(meta) });
  });
}

function forEveryStep(
  check: (outcome: Outcome, blockSize: number, release: Release, first: boolean) => void,
): FastCheck.IProperty<unknown[]> {
  return fc.property(requestLife(), ({ release, blockSize, steps }) => {
    const tracker = new RequestTracker({ reqId: "r", tokenLen: 0, allocatedBlockIds: [[]] });
    for (const [index, step] of steps.entries()) {
      if (step.reset) {
        tracker.reset();
        tracker.allocatedBlockIds = [[]];
      }
      tracker.tokenIds ??= [];
      for (let i = 0; i < step.newTokens; i++) tracker.tokenIds.push(tracker.tokenLen + i);
      tracker.tokenLen += step.newTokens;
      tracker.update([Array.from({ length: step.newTokens }, (_, i) => i)]);
      const savedBefore = tracker.numSavedTokens;
      const meta = ReqMeta.fromRequestTracker<Release>(tracker, options(step, blockSize, release), release);
      check({ savedBefore, tracker, meta }, blockSize, release, index === 0);
    }
  });
}

function options(step: AnyStep, blockSize: number, release: Release): FromRequestTrackerOptions<Release> {
  const loadSpec =
    step.load === "none"
      ? null
      : createLoadSpec(
          { vllmCachedTokens: 0, kvpoolCachedTokens: 8, canLoad: step.load === "ready" },
          release,
        );
  const tail = release === "vllm-0.33" && step.tail ? { savePartialTail: true, numPromptTokens: 13 } : {};
  return { blockSize, loadSpec, skipSave: step.skipSave, ...tail } as FromRequestTrackerOptions<Release>;
}
