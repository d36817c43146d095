import { test } from "uvu";
import * as assert from "uvu/assert";
import { LookupSession } from "../../../src/coordinator/index.js";
import { BlobBlockHashes } from "../../../src/hash/blob-block-hashes.js";
import {
  aHitIsAlignedAndBelowThePrompt,
  aHitLoadsOnlyStoredBlocks,
  anyAnswersEndALookup,
  moreBlocksNeverShortenALookup,
  theOrderOfGroupsDoesNotMatter,
  windowsNeverChangeTheAnswer,
} from "../../../src/testing/laws/coordinator-laws.js";
import { check } from "../../helpers/property.js";
import { C, coordinatorOf, F, hashes, key, lookupIn, M, ours, prefixes, upTo, W } from "../cases.js";

const keys = (group: number, indexes: readonly number[]) => indexes.map((index) => key(group, index));

test("the prefix up to the first missing block", async () => {
  const { result } = await lookupIn(new Set(keys(0, [0, 1])), coordinatorOf([F(16)], 16), { numTokens: 48 });
  assert.equal(
    [result.hitLength, result.tailKeyBoundaries, result.limitedBy],
    [32, [{ groupId: 0, numTokens: 32 }], [0]],
  );
});

test("the last token of a prompt that is stored whole is left to compute", async () => {
  const coordinator = coordinatorOf([F(16), W(16, 32)], 16);
  const stored = new Set([...keys(0, upTo(4)), ...keys(1, upTo(4))]);
  const hit = async (numTokens: number) =>
    (await lookupIn(stored, coordinator, { numTokens })).result.hitLength;
  assert.equal([await hit(65), await hit(64)], [64, 48]);
  for (const index of [0, 1]) stored.delete(key(1, index));
  assert.equal([await hit(65), await hit(64)], [64, 0]);
});

test("a whole hit goes back to a boundary that somebody stored", async () => {
  const coordinator = coordinatorOf([F(64), M(64)], 16, { enablePartialHashHits: true });
  const stored = new Set([...keys(0, [1, 3]), ...keys(1, [1, 3])]);
  const { result } = await lookupIn(stored, coordinator, { numTokens: 64 });
  assert.equal(
    [result.hitLength, result.tailKeyBoundaries.map(({ numTokens }) => numTokens)],
    [32, [32, 32]],
  );
});

test("a partial hit says under which boundary each group stored its tail", async () => {
  const coordinator = coordinatorOf([F(16), M(16)], 4, { enablePartialHashHits: true });
  const boundaries = async (full: number[], mamba: number[], numTokens: number) => {
    const stored = new Set([...keys(0, full), ...keys(1, mamba)]);
    const { result } = await lookupIn(stored, coordinator, { numTokens });
    return [result.hitLength, ...result.tailKeyBoundaries.map(({ numTokens }) => numTokens)];
  };
  assert.equal(await boundaries([3, 6], [5], 29), [24, 28, 24]);
  assert.equal(await boundaries([3, 7], [5], 33), [24, 32, 24]);
  assert.equal(await boundaries([2], [2], 13), [12, 12, 12]);
});

test("a scratch group finer than the hashes is never asked about", async () => {
  const coordinator = coordinatorOf([F(16), M(16), C(4)], 8, { enablePartialHashHits: true });
  const stored = new Set([...keys(0, [0]), ...keys(1, [0])]);
  const { result, questions } = await lookupIn(stored, coordinator, { numTokens: 13 });
  assert.is(result.hitLength, 8);
  assert.not(questions.flat().some((asked) => asked.includes("@group:2@")));
});

test("a block counts only where every rank has it", async () => {
  const stored = new Set([
    ...upTo(6).map((index) => key(0, index, 0)),
    ...[0, 1, 2, 3, 5].map((index) => key(0, index, 1)),
  ]);
  const { result } = await lookupIn(stored, coordinatorOf([F(16)], 16), {
    numTokens: 96,
    keyPrefixes: prefixes(1, 2),
  });
  assert.equal([result.hitLength, result.keysAsked], [64, 12]);
});

test("the groups that end a hit are named", async () => {
  const stored = new Set([...keys(0, upTo(8)), ...keys(1, upTo(4))]);
  const { result } = await lookupIn(stored, coordinatorOf([F(16), M(16)], 16), { numTokens: 129 });
  assert.equal([result.hitLength, result.limitedBy], [64, [1]]);
});

test("a long prompt that misses at once costs one small question", async () => {
  const coordinator = coordinatorOf([F(16), W(16, 128), M(16)], 16);
  const { result, questions } = await lookupIn(new Set(), coordinator, { numTokens: 1_000_000 });
  assert.equal([result.hitLength, result.questions, result.keysAsked], [0, 1, 64]);
  assert.equal(questions, [keys(0, upTo(64))]);
  const ranks = await lookupIn(new Set(), coordinatorOf([F(16)], 16), {
    numTokens: 32_768,
    keyPrefixes: prefixes(1, 16),
  });
  assert.equal([ranks.result.questions, ranks.result.keysAsked], [1, 64]);
});

test("questions grow up to a limit, and a sliding window is asked about where the hit ends", async () => {
  const coordinator = coordinatorOf([F(16), W(16, 32)], 16);
  const stored = new Set([...keys(0, upTo(100)), ...keys(1, upTo(100))]);
  const { result, questions } = await lookupIn(stored, coordinator, {
    numTokens: 1601,
    windows: { first: 4, growth: 2, most: 16 },
  });
  assert.is(result.hitLength, 1600);
  assert.equal(
    questions.map((asked) => asked.length),
    [4, 8, 16, 16, 16, 16, 16, 8, 2],
  );
  assert.equal(questions.at(-1), keys(1, [98, 99]));
});

test("windows that are missing cost one key each", async () => {
  const { result } = await lookupIn(new Set(), coordinatorOf([W(16, 129)], 16), { numTokens: 16_000 });
  assert.is(result.hitLength, 0);
  assert.ok(result.keysAsked <= 1000 / 8 + 64, `${result.keysAsked} keys`);
});

test("a store that can't be asked is a failure and no miss", async () => {
  const coordinator = coordinatorOf([F(16)], 16);
  const options = { numTokens: 65, blockHashes: hashes(4), keyPrefixes: prefixes(1) };
  const failing = [
    () => Promise.reject(new Error("connection refused")),
    () => {
      throw new Error("connection refused");
    },
    () => [1, 1, 1],
    () => undefined as never,
    () => null as never,
    () => 4 as never,
  ];
  for (const exists of failing) {
    const result = await coordinator.lookup({ ...options, exists });
    assert.equal([result.hitLength, result.tailKeyBoundaries, result.keysAsked], [0, [], 4]);
    assert.is(result.failure?.reason, "store");
    assert.is(result.failure?.error.code, "ERR_LOOKUP");
  }
  const refused = await coordinator.lookup({ ...options, exists: failing[0]! });
  assert.match(refused.failure!.error.message, "connection refused");
  assert.match((refused.failure!.error.cause as Error).message, "connection refused");
});

test("where vLLM's lookup thread dies, the answer is a miss that says why", async () => {
  const beyond = await lookupIn(new Set(keys(0, [2, 3])), coordinatorOf([W(16, 32)], 16), {
    numTokens: 80,
    blockHashes: hashes(4),
  });
  assert.equal([beyond.result.hitLength, beyond.result.failure?.reason], [0, "search"]);
  const single = coordinatorOf([{ kvCacheSpec: { kind: "swa_mla", blockSize: 64, slidingWindow: 1 } }], 64, {
    useEagle: true,
  });
  const tailless = await lookupIn(new Set(keys(0, [5])), single, { numTokens: 512 });
  assert.equal([tailless.result.hitLength, tailless.result.tailKeyBoundaries], [0, []]);
  assert.match(tailless.result.failure!.error.message, /no block that ends a hit of 320 tokens/);
});

test("nothing to ask about is a miss without a question", async () => {
  const coordinator = coordinatorOf([F(16)], 16);
  for (const options of [{ numTokens: 15 }, { numTokens: 0 }, { numTokens: 160, blockHashes: hashes(0) }]) {
    const { result } = await lookupIn(new Set(), coordinator, options);
    assert.equal(result, { hitLength: 0, tailKeyBoundaries: [], limitedBy: [], keysAsked: 0, questions: 0 });
  }
  const scratch = await lookupIn(new Set(), coordinatorOf([C(16)], 16), { numTokens: 160 });
  assert.equal([scratch.result.hitLength, scratch.result.questions], [0, 0]);
});

test("a huge number of tokens over few hashes costs nothing", async () => {
  const coordinator = coordinatorOf([F(16), W(4, 8)], 4);
  const { result } = await lookupIn(new Set(keys(0, [3])), coordinator, {
    numTokens: 2 ** 32 - 1,
    blockHashes: hashes(4),
  });
  assert.equal([result.hitLength, result.failure], [0, undefined]);
});

test("options that make no sense are refused before anything is asked", async () => {
  const coordinator = coordinatorOf([F(16)], 16);
  const options = { numTokens: 64, blockHashes: hashes(4), keyPrefixes: prefixes(1) };
  const session = (bad: object) => () => new LookupSession(coordinator, { ...options, ...bad });
  assert.throws(session({ numTokens: -1 }), ours("ERR_LOOKUP", /numTokens is -1/));
  assert.throws(session({ numTokens: 2 ** 32 }), ours("ERR_LOOKUP", /0 to 4294967295/));
  assert.throws(session({ keyPrefixes: [] }), ours("ERR_LOOKUP", /0 groups, but 1/));
  assert.throws(session({ keyPrefixes: [[]] }), ours("ERR_LOOKUP", /group 0 has no key prefix/));
  assert.throws(session({ keyPrefixes: undefined }), ours("ERR_LOOKUP", /undefined groups, but 1/));
  assert.throws(session({ keyPrefixes: [["\ud800"]] }), ours("ERR_KEY", /prefix 0/));
  assert.throws(session({ blockHashes: null }), ours("ERR_LOOKUP", /blockHashes is null/));
  assert.throws(session({ windows: { first: 0 } }), ours("ERR_LOOKUP", /windows.first is 0/));
  assert.throws(
    session({ blockHashes: [Uint8Array.of(1), Uint8Array.of(1, 2)] }),
    ours("ERR_HASH", /hash 1 has 2 bytes/),
  );
  let asked = 0;
  try {
    await coordinator.lookup({ ...options, numTokens: 0.5, exists: () => [asked++] });
    assert.unreachable();
  } catch (error) {
    assert.ok(ours("ERR_LOOKUP", /numTokens is 0.5/)(error));
  }
  assert.is(asked, 0);
});

test("a session says the same until it is answered, and then no more", () => {
  const session = new LookupSession(coordinatorOf([F(16)], 16), {
    numTokens: 33,
    blockHashes: Array.from(hashes(2)),
    keyPrefixes: prefixes(1),
  });
  assert.throws(() => session.answer([1, 1]), ours("ERR_LOOKUP", /no question is open/));
  assert.is(session.next().ask, session.next().ask);
  session.answer([1, 1]);
  assert.throws(() => session.fail("late"), ours("ERR_LOOKUP", /no question is open/));
  assert.is(session.next().result?.hitLength, 32);
  assert.is(session.next().result, session.next().result);
  assert.equal(session.candidates, [{ groupId: 0, hashIndexes: Uint32Array.of(0, 1) }]);
  assert.equal(session.candidateKeys(session.candidates[0]!).toArray(), keys(0, [0, 1]));
});

test("hashes are taken from a larger buffer as well", async () => {
  const blob = Buffer.concat([Buffer.alloc(3, 9), hashes(4).blob]).subarray(3);
  const { result } = await lookupIn(new Set(keys(0, [1, 3])), coordinatorOf([F(32)], 16), {
    numTokens: 65,
    blockHashes: new BlobBlockHashes(blob, 4),
  });
  assert.is(result.hitLength, 64);
});

test("law: windows never change the answer", () => check(windowsNeverChangeTheAnswer()));
test("law: a hit is aligned and below the prompt", () => check(aHitIsAlignedAndBelowThePrompt()));
test("law: a hit loads only stored blocks", () => check(aHitLoadsOnlyStoredBlocks()));
test("law: more stored blocks never shorten a lookup", () => check(moreBlocksNeverShortenALookup()));
test("law: the order of groups does not matter", () => check(theOrderOfGroupsDoesNotMatter()));
test("law: any answers end a lookup", () => check(anyAnswersEndALookup()));

test.run();
