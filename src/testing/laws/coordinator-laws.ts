import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import {
  type BlockMask,
  decideLookup,
  type ExistenceTable,
  type LookupResult,
  LookupSession,
  type LookupWindows,
  lookupCandidates,
  MooncakeStoreCoordinator,
  type MooncakeStoreCoordinatorOptions,
  prefixCacheable,
  Wanted,
} from "../../coordinator/index.js";
import { isSlidingWindow } from "../../coordinator/spec/kv-cache-spec.js";
import { isMooncakeKvError } from "../../errors.js";
import {
  askedExistence,
  coordinatorOptions,
  existenceOf,
  lookupPrompt,
  promptHashes,
  type StoredPrompt,
  storedPrompt,
} from "../arbitraries/coordinator-arbitraries.js";
import fc from "../fast-check.js";

// Laws of the coordinator. Each function takes the implementation under test and returns a fast-check property.

/** A coordinator as the laws look at it: the public members of `MooncakeStoreCoordinator`. */
export type CoordinatorUnderTest = {
  readonly [Name in keyof MooncakeStoreCoordinator]: MooncakeStoreCoordinator[Name];
};

/** Makes a coordinator. This package's, or somebody else's. */
export type CoordinatorImplementation = (options: MooncakeStoreCoordinatorOptions) => CoordinatorUnderTest;

const ownCoordinator: CoordinatorImplementation = (options) => new MooncakeStoreCoordinator(options);

/**
 * A lookup in questions of any size finds what a search over all answers at once finds, asks about no key twice, and
 * about none that is no candidate.
 */
export function windowsNeverChangeTheAnswer(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt, LookupWindows, number]> {
  const windows = fc.record({
    first: fc.integer({ min: 1, max: 20 }),
    growth: fc.integer({ min: 1, max: 4 }),
    most: fc.integer({ min: 1, max: 200 }),
  });
  return fc.property(storedPrompt(), windows, fc.integer({ min: 1, max: 3 }), (prompt, sizes, ranks) => {
    const coordinator = create(prompt.options);
    const candidates = lookupCandidates(coordinator, prompt.numTokens, prompt.numHashes);
    const candidateKeys = new Set(
      candidates.flatMap(({ groupId, hashIndexes }) =>
        Array.from(hashIndexes).flatMap((index) =>
          Array.from({ length: ranks }, (_, rank) => `${rank}/${groupId}@${hex(index)}`),
        ),
      ),
    );
    const { result, asked } = lookupPrompt(prompt, sizes, ranks, coordinator);
    assert.equal(new Set(asked).size, asked.length, "a key was asked about twice");
    assert.deepEqual(
      asked.filter((key) => !candidateKeys.has(key)),
      [],
    );
    assert.equal(result.keysAsked, asked.length);
    const none = candidateKeys.size === 0;
    const whole = decideLookup(coordinator, none ? 0 : prompt.numTokens, askedExistence(prompt, coordinator));
    assert.ok(!(whole instanceof Wanted));
    assert.deepEqual(
      [result.hitLength, result.tailKeyBoundaries, result.limitedBy, result.failure?.error.message],
      [whole.hitLength, whole.tailKeyBoundaries, whole.limitedBy, whole.failure?.message],
    );
  });
}

/** A hit is shorter than the prompt, a multiple of the alignment, and has one boundary a stored group, not before it. */
export function aHitIsAlignedAndBelowThePrompt(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt]> {
  return fc.property(storedPrompt(), (prompt) => {
    const coordinator = create(prompt.options);
    const { hitLength, tailKeyBoundaries } = lookupPrompt(prompt, {}, 1, create(prompt.options)).result;
    assert.ok(hitLength === 0 || hitLength < prompt.numTokens);
    assert.equal(hitLength % coordinator.alignmentTokens, 0);
    const groups = [...prompt.options.kvCacheGroups.keys()].filter((id) =>
      prefixCacheable(prompt.options.kvCacheGroups[id]!.kvCacheSpec),
    );
    assert.deepEqual(
      tailKeyBoundaries.map(({ groupId }) => groupId),
      hitLength === 0 ? [] : groups,
    );
    for (const { groupId, numTokens } of tailKeyBoundaries) {
      const { blockSize } = prompt.options.kvCacheGroups[groupId]!.kvCacheSpec;
      assert.ok(
        numTokens >= hitLength && Math.ceil(numTokens / blockSize) === Math.ceil(hitLength / blockSize),
      );
    }
  });
}

/**
 * Every block that a hit loads is stored: whole blocks under the hash that ends them, the tail block under its
 * boundary. (Where attention chunks end inside blocks, vLLM may accept a hit whose earlier blocks are not there.)
 */
export function aHitLoadsOnlyStoredBlocks(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt]> {
  return fc.property(storedPrompt(), (prompt) => {
    const coordinator = create(prompt.options);
    fc.pre(
      coordinator.specGroups.every(
        ({ spec }) => spec.kind !== "chunked_local" || spec.attentionChunkSize % spec.blockSize === 0,
      ),
    );
    const { hitLength, tailKeyBoundaries } = lookupPrompt(prompt, {}, 1, create(prompt.options)).result;
    if (hitLength === 0) return;
    const masks = coordinator.loadMask(prompt.numHashes, hitLength);
    for (const { groupId, numTokens } of tailKeyBoundaries) {
      const { blockSize } = prompt.options.kvCacheGroups[groupId]!.kvCacheSpec;
      const mask = masks[groupId]!;
      assert.equal(mask.length, Math.ceil(hitLength / blockSize));
      for (const [block, wanted] of mask.entries()) {
        if (wanted === 0) continue;
        const end = block === mask.length - 1 ? numTokens : (block + 1) * blockSize;
        const hash = end / prompt.options.hashBlockSize - 1;
        assert.ok(prompt.stored[groupId]![hash], `group ${groupId} block ${block} under hash ${hash}`);
      }
    }
  });
}

/**
 * More stored blocks never make a search shorter, as long as no group drops a block for speculative decoding. (With
 * partial hits a whole lookup may get shorter: a hit of the full prompt is searched again below its end, where only
 * a boundary that nobody stored may be left.)
 */
export function moreBlocksNeverShortenAHit(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt, number[]]> {
  const additions = fc.array(fc.nat(999), { maxLength: 8 });
  return fc.property(storedPrompt({ eagle: false }), additions, (prompt, more) => {
    const { numHashes, options } = prompt;
    const groups = options.kvCacheGroups.length;
    const stored = prompt.stored.map((row) => [...row]);
    if (numHashes > 0)
      for (const at of more) stored[at % groups]![Math.floor(at / groups) % numHashes] = true;
    const coordinator = create(options);
    const length = numHashes * options.hashBlockSize;
    const before = searchOrRefusal(coordinator, length, existenceOf(prompt));
    const after = searchOrRefusal(coordinator, length, existenceOf({ ...prompt, stored }));
    // A refusal depends on the groups or on how far the hit goes beyond the hashes, so it is not compared.
    if (before === undefined || after === undefined) return;
    assert.ok(after >= before, `${after} after ${before}`);
  });
}

/**
 * More stored blocks never make a whole lookup shorter, where no group drops a block, hits end at whole blocks and no
 * group is chunked local (whose hit may end at a block that was never stored, which is a miss).
 */
export function moreBlocksNeverShortenALookup(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt, number[]]> {
  const additions = fc.array(fc.nat(999), { maxLength: 8 });
  const limits = { eagle: false, partialHits: false, chunkedLocal: false };
  return fc.property(storedPrompt(limits), additions, (prompt, more) => {
    const stored = prompt.stored.map((row) => [...row]);
    if (prompt.numHashes > 0)
      for (const at of more)
        stored[at % stored.length]![Math.floor(at / stored.length) % prompt.numHashes] = true;
    const before = lookupPrompt(prompt, {}, 1, create(prompt.options)).result;
    const after = lookupPrompt({ ...prompt, stored }, {}, 1, create(prompt.options)).result;
    if (before.failure || after.failure) return;
    assert.ok(after.hitLength >= before.hitLength);
  });
}

/**
 * The order of the groups does not matter to the hit, as long as hits end at whole blocks and no group drops a block.
 */
export function theOrderOfGroupsDoesNotMatter(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt, number]> {
  const limits = { eagle: false, partialHits: false, chunkedLocal: false };
  return fc.property(storedPrompt(limits), fc.nat(23), (prompt, turn) => {
    const order = permutation(prompt.stored.length, turn);
    const permuted: StoredPrompt = {
      ...prompt,
      options: {
        ...prompt.options,
        kvCacheGroups: order.map((group) => prompt.options.kvCacheGroups[group]!),
      },
      stored: order.map((group) => prompt.stored[group]!),
    };
    const before = lookupPrompt(prompt, {}, 1, create(prompt.options)).result;
    const after = lookupPrompt(permuted, {}, 1, create(permuted.options)).result;
    assert.equal(after.hitLength, before.hitLength);
    const boundaries = ({ tailKeyBoundaries }: LookupResult, groups: readonly number[]) =>
      tailKeyBoundaries.map(({ groupId, numTokens }) => `${groups[groupId]}:${numTokens}`).sort();
    assert.deepEqual(boundaries(after, order), boundaries(before, [...order.keys()]));
  });
}

/**
 * What is not asked about can't matter: the lookup mask never changes the result of the first search. (Windows of one
 * token are left out: vLLM asks about no block of them, although a search needs one.)
 */
export function theLookupMaskLosesNothing(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt]> {
  return fc.property(storedPrompt({ partialHits: false }), (prompt) => {
    const coordinator = create(prompt.options);
    fc.pre(!coordinator.specGroups.some(({ spec }) => isSlidingWindow(spec) && spec.slidingWindow === 1));
    const length = coordinator.alignLookupLength(prompt.numHashes * prompt.options.hashBlockSize);
    const within = prompt.stored.map((row) =>
      row.map((there, index) => there && (index + 1) * prompt.options.hashBlockSize <= length),
    );
    const masked = searchOrRefusal(
      coordinator,
      length,
      askedExistence({ ...prompt, numTokens: length }, coordinator),
    );
    assert.equal(masked, searchOrRefusal(coordinator, length, existenceOf({ ...prompt, stored: within })));
  });
}

/**
 * Masks only take work away: a lookup never misses a block worth storing, and the mask of a suffix is the suffix of the
 * mask. (Speculative groups may store block 0, as the one past a boundary at 0, where no hit can end.)
 */
export function masksOnlyShrinkWork(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[MooncakeStoreCoordinatorOptions, number, number, number | null]> {
  const prompts = fc.option(fc.nat(300), { nil: null });
  return fc.property(
    coordinatorOptions(),
    fc.nat(12),
    fc.nat(200),
    prompts,
    (options, units, start, prompt) => {
      const coordinator = create(options);
      const length = units * coordinator.alignmentTokens;
      const lookup = coordinator.lookupMask(length);
      const whole = coordinator.storeMask(length, 0, prompt);
      const suffix = coordinator.storeMask(length, start, prompt);
      for (const [group, { kvCacheSpec }] of options.kvCacheGroups.entries()) {
        const blocks = Math.floor(length / kvCacheSpec.blockSize);
        const first = Math.min(blocks, Math.ceil(start / kvCacheSpec.blockSize));
        const worthStoring = bits(whole[group], blocks);
        const asked = bits(lookup[group], blocks);
        assert.equal(worthStoring.length, blocks);
        const spared = coordinator.eagleGroupIds.has(group) ? 1 : 0;
        assert.ok(worthStoring.every((bit, block) => block < spared || bit <= asked[block]!));
        assert.deepEqual(bits(suffix[group], blocks - first), worthStoring.slice(first));
      }
    },
  );
}

/**
 * Whatever a store answers, a lookup asks about no key twice and ends with a result: a failure where some key was not
 * answered by exactly 0 or 1, or else what it would be whether the keys without an answer exist or not.
 */
export function anyAnswersEndALookup(
  create: CoordinatorImplementation = ownCoordinator,
): FastCheck.IProperty<[StoredPrompt, unknown[], number]> {
  const junk = fc.array(
    fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom<unknown>(1, 1, 1, 0) },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(-1, -900, 2, 1n, "1", true, null, Number.NaN) },
      { weight: 1, arbitrary: fc.anything() },
    ),
    { minLength: 1, maxLength: 50 },
  );
  return fc.property(storedPrompt(), junk, fc.integer({ min: 1, max: 64 }), (prompt, answers, first) => {
    const session = new LookupSession(create(prompt.options), {
      numTokens: prompt.numTokens,
      blockHashes: promptHashes(prompt.numHashes),
      keyPrefixes: prompt.options.kvCacheGroups.map((_, group) => [`0/${group}`]),
      windows: { first, growth: 1 },
    });
    const given = new Map<string, unknown>();
    let step = session.next();
    for (; step.result === undefined; step = session.next())
      session.answer(
        step.ask.toArray().map((key) => {
          assert.ok(!given.has(key), "a key was asked about twice");
          given.set(key, answers[given.size % answers.length]);
          return given.get(key) as number;
        }),
      );
    const { result } = step;
    if (result.failure?.reason === "store") {
      assert.deepEqual([result.hitLength, result.tailKeyBoundaries], [0, []]);
      assert.ok([...given.values()].some((answer) => answer !== 0 && answer !== 1));
      return;
    }
    const known = ({ hitLength, tailKeyBoundaries, failure }: LookupResult) => [
      hitLength,
      tailKeyBoundaries,
      failure?.reason,
    ];
    for (const there of [(answer: unknown) => answer === 1, (answer: unknown) => answer !== 0]) {
      const stored = prompt.stored.map((row, group) =>
        row.map((_, index) => there(given.get(`0/${group}@${hex(index)}`))),
      );
      assert.deepEqual(
        known(result),
        known(lookupPrompt({ ...prompt, stored }, {}, 1, create(prompt.options)).result),
      );
    }
  });
}

/** The length of a search, or undefined where it refuses. */
function searchOrRefusal(
  coordinator: CoordinatorUnderTest,
  maxLength: number,
  existence: ExistenceTable,
): number | undefined {
  try {
    return coordinator.findLongestCacheHit(maxLength, existence).hitLength;
  } catch (error) {
    if (isMooncakeKvError(error, "ERR_LOOKUP")) return undefined;
    throw error;
  }
}

function bits(mask: BlockMask, length: number): number[] {
  return mask === undefined ? new Array<number>(length).fill(1) : [...mask];
}

function hex(index: number): string {
  return index.toString(16).padStart(2, "0");
}

/** Permutation number `turn` of the numbers below `length`. */
function permutation(length: number, turn: number): number[] {
  const rest = Array.from({ length }, (_, index) => index);
  const order: number[] = [];
  for (let left = turn; rest.length > 0; left = Math.floor(left / (rest.length + 1)))
    order.push(...rest.splice(left % rest.length, 1));
  return order;
}
