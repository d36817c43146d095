import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  ExistenceTable,
  type KvCacheGroupSpec,
  MooncakeStoreCoordinator,
  UNKNOWN,
} from "../../src/coordinator/index.js";
import {
  masksOnlyShrinkWork,
  moreBlocksNeverShortenAHit,
  theLookupMaskLosesNothing,
} from "../../src/testing/laws/coordinator-laws.js";
import { check } from "../helpers/property.js";
import { C, coordinatorOf, F, M, marked, ours, table, text, upTo, W } from "./cases.js";

const everything = ExistenceTable.everything;

test("a hit of one group ends at its first missing block", () => {
  const coordinator = coordinatorOf([F(16)], 16);
  const hit = (stored: number[]) => coordinator.findLongestCacheHit(64, table(4, [stored]));
  assert.is(hit([0, 1, 2, 3]).hitLength, 64);
  assert.equal(text(hit([0, 1, 2, 3]).masks), ["TTTT"]);
  assert.equal([hit([0, 1]).hitLength, text(hit([0, 1]).masks)], [32, ["TT"]]);
  assert.equal([hit([]).hitLength, text(hit([]).masks)], [0, [""]]);
  assert.equal(hit([0, 1, 3]).limitedBy, [0]);
});

test("a sliding window needs only its last blocks", () => {
  const hit = coordinatorOf([W(16, 32)], 16).findLongestCacheHit(64, everything(4));
  assert.equal([hit.hitLength, text(hit.masks)], [64, ["FFTT"]]);
});

test("a hole in one group shortens the hit of all", () => {
  const coordinator = coordinatorOf([F(16), W(16, 32)], 16);
  assert.is(coordinator.findLongestCacheHit(64, table(4, [upTo(4), upTo(4)])).hitLength, 64);
  const holed = coordinator.findLongestCacheHit(64, table(4, [[0, 2, 3], upTo(4)]));
  assert.equal([holed.hitLength, text(holed.masks), holed.limitedBy], [16, ["T", "T"], [0]]);
});

test("groups of several block sizes over one hash block size", () => {
  const coordinator = coordinatorOf([F(16), F(32)], 16);
  assert.is(coordinator.findLongestCacheHit(64, table(4, [upTo(4), [1, 3]])).hitLength, 64);
});

test("blocks before the attention chunk of the next token count as computed", () => {
  const chunked: KvCacheGroupSpec = {
    kvCacheSpec: { kind: "chunked_local", blockSize: 4, attentionChunkSize: 8 },
  };
  const coordinator = coordinatorOf([chunked], 4);
  const hit = (maxLength: number) => coordinator.findLongestCacheHit(maxLength, table(4, [[2]]));
  assert.equal([hit(15).hitLength, text(hit(15).masks)], [12, ["FFT"]]);
  assert.equal([hit(16).hitLength, text(hit(16).masks)], [16, ["FFFF"]]);
});

test("a recurrent state stands for everything before it", () => {
  const hit = coordinatorOf([M(16)], 16).findLongestCacheHit(80, table(5, [[1, 3]]));
  assert.equal([hit.hitLength, text(hit.masks)], [64, ["FFFT"]]);
});

test("speculative decoding drops a block of the lookup, not of the load", () => {
  const full = coordinatorOf([F(16)], 16, { useEagle: true });
  assert.is(full.findLongestCacheHit(64, table(4, [upTo(4)])).hitLength, 48);
  assert.equal(text(full.loadMask(4, 48)), ["TTT"]);
  const hybrid = coordinatorOf([F(16), W(16, 32)], 16, { useEagle: true });
  assert.is(hybrid.findLongestCacheHit(64, table(4, [upTo(4), upTo(4)])).hitLength, 48);
  assert.equal(text(hybrid.loadMask(4, 48)), ["TTT", "FTT"]);
});

test("store masks keep what a hit at a common boundary needs", () => {
  const store = (groups: KvCacheGroupSpec[], hash: number, tokens: number) =>
    text(coordinatorOf(groups, hash).storeMask(tokens));
  assert.equal(store([F(16)], 16, 64), [null]);
  assert.equal(store([F(16), W(16, 32)], 16, 0), [null, null]);
  assert.equal(store([F(32), W(8, 8)], 8, 64), [null, "FFFTFFFT"]);
  assert.equal(store([F(32), W(8, 16)], 8, 64), [null, "FFTTFFTT"]);
  assert.equal(store([F(64), W(64, 128)], 64, 256), [null, null]);
  assert.equal(store([W(16, 32), W(16, 32)], 16, 64), [null, null]);
  const times = (count: number, piece: string) => piece.repeat(count);
  assert.equal(store([F(256), W(64, 128), W(64, 512), W(4, 16), W(8, 64)], 4, 512), [
    null,
    times(2, "FFTT"),
    null,
    times(2, times(60, "F") + times(4, "T")),
    times(2, times(24, "F") + times(8, "T")),
  ]);
});

test("retention thins store masks out, replay boundaries keep what a resend needs", () => {
  const kept = (retentionInterval: number | null, prompt: number | null, useEagle = false, tokens = 128) =>
    marked(
      coordinatorOf([F(32), W(8, 8)], 8, { retentionInterval, useEagle }).storeMask(tokens, 0, prompt)[1],
    );
  assert.equal(kept(null, null), [3, 7, 11, 15]);
  assert.equal(kept(64, null), [7, 15]);
  assert.equal(kept(0, null), []);
  assert.equal(kept(0, 100), [11]);
  assert.equal(kept(64, 100), [7, 11, 15]);
  assert.equal(kept(0, 128), [11]);
  assert.equal(kept(null, null, true, 64), [3, 4, 7]);
  // vllm-0.33 keeps the boundary at which a speculative engine really resumes, one block below.
  assert.equal(kept(0, 100, true), [7, 8]);
});

test("Mamba states are never stored by position", () => {
  const masks = coordinatorOf([F(16), M(16)], 16).storeMask(64, 16);
  assert.equal(text(masks), [null, "FFF"]);
  assert.equal(text(coordinatorOf([F(16), M(16)], 16).lookupMask(64)), [null, null]);
});

test("a window whose tail is sparse is asked about and loaded only there", () => {
  const coordinator = coordinatorOf([F(64), W(16, 33)], 16);
  assert.equal(marked(coordinator.lookupMask(128)[1]), [2, 3, 6, 7]);
  assert.equal(marked(coordinator.loadMask(8, 128)[1]), [6, 7]);
});

test("tokens retained below a window belong to it", () => {
  const retained: KvCacheGroupSpec = {
    kvCacheSpec: { kind: "swa", blockSize: 16, slidingWindow: 16, extraRetainedTokens: 16 },
  };
  const coordinator = coordinatorOf([retained, W(16, 32)], 16);
  assert.is(coordinator.specGroups.length, 1);
  assert.equal(text(coordinator.loadMask(4, 64)), ["FFTT", "FFTT"]);
});

test("scratch groups take no part", () => {
  const coordinator = coordinatorOf([F(16), C(7)], 16, { schedulerBlockSize: 16 });
  const hit = coordinator.findLongestCacheHit(32, table(2, [[0, 1], []]));
  assert.equal([hit.hitLength, text(hit.masks)], [32, ["TT", ""]]);
});

test("an engine's configuration becomes a coordinator over the groups that are stored", () => {
  const coordinator = MooncakeStoreCoordinator.fromKvCacheConfig({
    kvCacheGroups: [F(16), { ...F(8), enableKvTransfer: false }, C(4), M(64)],
    schedulerBlockSize: 64,
    hashBlockSize: 16,
    cacheHitAlignmentTokens: 16,
    dcpWorldSize: 4,
  });
  assert.equal(
    coordinator.kvCacheGroups.map(({ kvCacheSpec }) => [kvCacheSpec.kind, kvCacheSpec.blockSize]),
    [
      ["full", 64],
      ["mamba", 64],
    ],
  );
  assert.is(coordinator.alignmentTokens, 16);
  assert.equal([...coordinator.mambaGroupIds], [1]);
});

test("what vLLM asserts is an error that says what would be right", () => {
  const make = (groups: KvCacheGroupSpec[], schedulerBlockSize: number, hashBlockSize: number) => () =>
    new MooncakeStoreCoordinator({ kvCacheGroups: groups, schedulerBlockSize, hashBlockSize });
  assert.throws(make([F(16)], 16, 15), ours("ERR_CONFIG", /group 0, 16 is no multiple of hashBlockSize 15/));
  assert.throws(make([F(16), F(32)], 16, 16), ours("ERR_CONFIG", /schedulerBlockSize 16 .* group 1, 32/));
  assert.throws(make([C(16)], 24, 16), ours("ERR_CONFIG", /schedulerBlockSize 24 .* hashBlockSize 16/));
  assert.throws(make([F(16)], 16, 0), ours("ERR_CONFIG", /hashBlockSize is 0/));
  assert.throws(
    make([{ kvCacheSpec: { kind: "cross", blockSize: 16 } }], 16, 16),
    ours("ERR_CONFIG", /cross attention/),
  );
  assert.throws(make(undefined as never, 16, 16), ours("ERR_CONFIG", /kvCacheGroups is undefined/));
  assert.throws(make([null as never], 16, 16), ours("ERR_CONFIG", /group 0 is of kind undefined/));

  const window = coordinatorOf([W(16, 32)], 16);
  assert.throws(
    () => window.findLongestCacheHit(80, table(4, [[2, 3]])),
    ours("ERR_LOOKUP", /5 blocks of 16/),
  );
  assert.throws(() => window.findLongestCacheHit(-1, everything(4)), ours("ERR_LOOKUP", /maxLength is -1/));
  assert.throws(() => window.storeMask(31), ours("ERR_LOOKUP", /round down to 16/));
  assert.throws(
    () => window.findLongestCacheHit(64, ExistenceTable.filled(1, 4, UNKNOWN)),
    ours("ERR_LOOKUP", /hash 2 is not known/),
  );
  const chunked: KvCacheGroupSpec = {
    kvCacheSpec: { kind: "chunked_local", blockSize: 16, attentionChunkSize: 32 },
  };
  assert.throws(
    () => coordinatorOf([chunked], 16, { useEagle: true }).findLongestCacheHit(96, everything(6)),
    ours("ERR_LOOKUP", /speculative/),
  );
  assert.throws(
    () => coordinatorOf([F(32), chunked], 16).findLongestCacheHit(96, everything(6)),
    ours("ERR_LOOKUP", /blocks of 16 tokens.*32; both must be equal/),
  );
});

test("law: masks only shrink work", () => check(masksOnlyShrinkWork()));
test("law: more stored blocks never shorten a hit", () => check(moreBlocksNeverShortenAHit()));
test("law: the lookup mask loses nothing", () => check(theLookupMaskLosesNothing()));

test.run();
