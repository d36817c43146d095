import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  mambaPrefillCheckpointPosition,
  reachableBlockMask,
  replayBoundaries,
  validatePrefixCacheRetentionInterval,
} from "../../../src/coordinator/index.js";
import { F, M, marked, ours, W } from "../cases.js";

const SIZES = [
  [8, 2],
  [16, 4],
  [64, 16],
  [128, 8],
  [512, 32],
  [1536, 128],
] as const;
const PROMPTS = [1, 2, 7, 8, 9, 15, 63, 64, 65, 127, 512, 513, 1984, 2020, 4096, 12289];

test("a speculative engine resumes one block below, at a whole block, inside the prompt", () => {
  for (const [block] of SIZES)
    for (const prompt of PROMPTS)
      for (const boundary of replayBoundaries(prompt, block, true)) {
        assert.is(boundary % block, 0);
        assert.ok(boundary === 0 || boundary + block <= prompt);
      }
  const at = (prompt: number) => replayBoundaries(prompt, 32, true);
  assert.equal([at(127), at(128), at(160), at(100), at(32)], [[64], [64, 96], [96, 128], [64], [0]]);
});

test("without speculation the last token is what remains", () => {
  assert.equal(replayBoundaries(100, 32, false), [99]);
  assert.equal(replayBoundaries(0, 32, false), [-1]);
});

test("the Mamba checkpoint of a prefill leaves something to compute", () => {
  const position = (tokens: number, drop: boolean, lookahead?: number) =>
    mambaPrefillCheckpointPosition(tokens, 4, drop, lookahead);
  assert.equal([position(12, false), position(13, false), position(13, true)], [8, 12, 8]);
  assert.equal([position(1, true), position(14, false, 3)], [0, 8]);
});

test("a retention interval must fit the scheduler and have something to thin out", () => {
  const validate = validatePrefixCacheRetentionInterval;
  for (const interval of [null, 0]) validate(interval, 16, [F(16)]);
  validate(64, 32, [F(32), W(8, 8)]);
  assert.throws(() => validate(64, 16, [F(16)]), ours("ERR_CONFIG", /no effect/));
  assert.throws(() => validate(48, 32, [F(32), M(32)]), ours("ERR_CONFIG", /48 is no multiple/));
  assert.throws(() => validate(-32, 32, [M(32)]), ours("ERR_CONFIG", /retentionInterval is -32/));
});

test("a Mamba group keeps one state a segment and one a boundary", () => {
  const mask = (retentionInterval: number | null, reachableBoundaries: number[] = [], startBlock = 0) =>
    reachableBlockMask({
      spec: M(16).kvCacheSpec,
      startBlock,
      endBlock: 8,
      alignmentTokens: 16,
      retentionInterval,
      reachableBoundaries,
    });
  assert.is(mask(null), undefined);
  assert.is(mask(16), undefined);
  assert.equal(marked(mask(48)), [2, 5]);
  assert.equal(marked(mask(48, [], 3)), [2]);
  assert.equal(marked(mask(0, [99, -1])), [5]);
});

test("the last unfinished segment of a window is kept, unless a block is dropped anyway", () => {
  const mask = (finalSegmentEndBlock: number | null, useEagle = false) =>
    marked(
      reachableBlockMask({
        spec: W(8, 9).kvCacheSpec,
        startBlock: 0,
        endBlock: 10,
        alignmentTokens: 32,
        useEagle,
        finalSegmentEndBlock,
      }),
    );
  assert.equal(mask(null), [3, 7]);
  assert.equal(mask(10), [3, 7, 9]);
  assert.equal(mask(10, true), [3, 4, 7, 8]);
});

test("a window in blocks of another size than the alignment keeps everything", () => {
  const spec = W(24, 24).kvCacheSpec;
  const mask = (alignmentTokens: number | null, dcpWorldSize?: number) =>
    reachableBlockMask({ spec, startBlock: 0, endBlock: 4, alignmentTokens, dcpWorldSize });
  assert.equal([mask(null), mask(32), mask(48, 4)], [undefined, undefined, undefined]);
  assert.equal(marked(mask(48)), [1, 3]);
  assert.equal(marked(mask(96, 2)), [1, 3]);
});

test("numbers that are none are refused", () => {
  const blocks = { spec: W(8, 8).kvCacheSpec, startBlock: 0, endBlock: 4, alignmentTokens: 8 };
  const refused = (bad: object, pattern: RegExp) =>
    assert.throws(() => reachableBlockMask({ ...blocks, ...bad }), ours("ERR_LOOKUP", pattern));
  refused({ startBlock: -1 }, /startBlock is -1/);
  refused({ endBlock: Number.NaN }, /endBlock is NaN/);
  refused({ alignmentTokens: 0 }, /alignmentTokens is 0/);
  refused({ retentionInterval: -16 }, /retentionInterval is -16/);
  refused({ dcpWorldSize: 0 }, /dcpWorldSize is 0/);
  refused({ reachableBoundaries: [0.5] }, /reachableBoundaries is 0.5/);
  assert.throws(() => replayBoundaries(-1, 16, false), ours("ERR_LOOKUP", /numPromptTokens is -1/));
  assert.throws(() => replayBoundaries(1, 0, true), ours("ERR_LOOKUP", /schedulerBlockSize is 0/));
});

test.run();
