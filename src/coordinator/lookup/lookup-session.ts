import type { TailKeyBoundary } from "../../../generated/typescript/index.js";
import type { OptionNames } from "../../checks/checks-for.js";
import { describe, isMooncakeKvError, type MooncakeKvError } from "../../errors.js";
import { BlobBlockHashes, type BlockHashSequence } from "../../hash/blob-block-hashes.js";
import { KeyTable } from "../../key/key-table.js";
import { checkTokens, lookupChecks, lookupError } from "../checks.js";
import { ExistenceTable, UNKNOWN, Wanted } from "../search/existence-table.js";
import { type ExistsAnswers, LookupAnswers, type LookupQuestion } from "./lookup-answers.js";
import { gatherHashes, type LookupCandidates, lookupCandidates } from "./lookup-candidates.js";
import { decideLookup, LOOKUP_MISS, type LookupDecision } from "./lookup-decision.js";
import type { PrefixSearch } from "./prefix-search.js";

/** How many keys a lookup asks about at once. A question is never smaller than one block of one group. */
export interface LookupWindows {
  /** Keys of the first question. Default: 64. */
  readonly first: number;
  /** How much larger each further question about the same groups is. Default: 4. */
  readonly growth: number;
  /** Keys of a question at most. Default: 32,768. */
  readonly most: number;
}

/** What the session of a lookup needs. */
export interface LookupSessionOptions {
  /** Tokens of the prompt. */
  readonly numTokens: number;
  /** Its block hashes, of `hashBlockSize` tokens each. */
  readonly blockHashes: BlockHashSequence;
  /** The namespaces of each group that must all hold a block: what `StoreLayout.lookupKeyPrefixes` gives. */
  readonly keyPrefixes: readonly (readonly string[])[];
  /** How the questions grow. Default: 64 keys, four times as many each time, 32,768 at most. */
  readonly windows?: { readonly [Name in keyof LookupWindows]?: number | undefined } | undefined;
}

/** Why it is not known how much of a prompt is stored. */
export interface LookupFailure {
  /**
   * `store`: the store did not say whether a key exists, and the hit depends on it; an outage is a failure and never a
   * miss. `search`: the stored blocks allow no answer; there vLLM's lookup thread dies.
   */
  readonly reason: "store" | "search";
  readonly error: MooncakeKvError;
}

/** What a lookup found. Extends vLLM's `MooncakeLookupResult`. */
export interface LookupResult {
  /** Tokens of the longest prefix that every group can load; 0 is a miss, or a `failure`. */
  readonly hitLength: number;
  /** One a group, unless the hit is 0. */
  readonly tailKeyBoundaries: readonly TailKeyBoundary[];
  /** Keys that the store was asked about. */
  readonly keysAsked: number;
  /** Questions that the store was asked. */
  readonly questions: number;
  /** The groups that last made the hit shorter; empty when nothing is missing. */
  readonly limitedBy: readonly number[];
  /** Set when the hit is 0 because something went wrong: 0 says nothing about the store then. */
  readonly failure?: LookupFailure | undefined;
}

/** What a session needs next: the store's answers for some keys, or nothing any more. */
export type LookupStep =
  | { readonly ask: KeyTable; readonly result?: undefined }
  | { readonly result: LookupResult; readonly ask?: undefined };

const NO_HASHES = new BlobBlockHashes(new Uint8Array(0), 0);

const WINDOWS: OptionNames<LookupWindows> = { first: 1, growth: 1, most: 1 };

const OPTIONS: OptionNames<LookupSessionOptions> = {
  numTokens: 1,
  blockHashes: 1,
  keyPrefixes: 1,
  windows: 1,
};

const DEFAULT_WINDOWS: LookupWindows = { first: 64, growth: 4, most: 32_768 };

/**
 * One lookup without its I/O: `next` says which keys to ask the store about, `answer` takes what it said, until `next`
 * has a result. The result is that of a search over all keys at once, but only the keys that decide it are asked.
 *
 * A key that the store does not answer counts only where the search comes to it. A hit that ends before it, or that is
 * proven without it, stands; otherwise the result is a failure, and no further question is asked.
 */
export class LookupSession {
  readonly #coordinator: PrefixSearch;
  readonly #options: LookupSessionOptions;
  readonly #windows: LookupWindows;
  readonly #hashes: BlobBlockHashes;
  /** Every block that can matter, group by group: what vLLM asks about in one go. */
  readonly candidates: readonly LookupCandidates[];
  readonly #existence: ExistenceTable;
  readonly #grown = new Map<number, number>();
  readonly #answers: LookupAnswers;
  #question: LookupQuestion | undefined;
  #result: LookupResult | undefined;
  #keysAsked = 0;
  #questions = 0;

  /** @throws MooncakeKvError `ERR_LOOKUP`, `ERR_KEY` or `ERR_HASH` for options that make no sense. */
  constructor(coordinator: PrefixSearch, options: LookupSessionOptions) {
    lookupChecks.names("a lookup", options, OPTIONS);
    checkTokens("numTokens", options.numTokens);
    this.#coordinator = coordinator;
    this.#options = options;
    this.#windows = checkedWindows(options.windows ?? {});
    checkPrefixes(options.keyPrefixes, coordinator);
    this.#hashes = asBlob(options.blockHashes);
    this.candidates = lookupCandidates(coordinator, options.numTokens, this.#hashes.length);
    this.#existence = ExistenceTable.filled(coordinator.kvCacheGroups.length, this.#hashes.length);
    for (const { groupId, hashIndexes } of this.candidates)
      for (let i = 0; i < hashIndexes.length; i++) this.#existence.set(groupId, hashIndexes[i]!, UNKNOWN);
    const counts = options.keyPrefixes.map((prefixes) => prefixes.length);
    this.#answers = new LookupAnswers(this.#existence, counts);
  }

  /** The keys of a group's candidates, in vLLM's order. */
  candidateKeys({ groupId, hashIndexes }: LookupCandidates): KeyTable {
    const prefixes = this.#options.keyPrefixes[groupId]!;
    return KeyTable.fromPrefixes(prefixes, gatherHashes(this.#hashes, hashIndexes));
  }

  /** The keys to ask about, or the result. Says the same until the question is answered. */
  next(): LookupStep {
    if (this.#result !== undefined) return { result: this.#result };
    if (this.#question !== undefined) return { ask: this.#question.keys };
    const decision = this.#decide();
    if (!(decision instanceof Wanted)) return { result: this.#finish(decision) };
    const error = this.#answers.failureOf(decision.groupIds, decision.first);
    if (error) return { result: this.#finish(LOOKUP_MISS, { reason: "store", error }) };
    this.#question = this.#ask(decision);
    this.#keysAsked += this.#question.keys.length;
    this.#questions++;
    return { ask: this.#question.keys };
  }

  /**
   * The store's answers to the open question, in the order of its keys: exactly 1 for a key that exists, exactly 0 for
   * one that does not. Anything else is no answer, and the lookup fails if it depends on that key. A list of another
   * length fails at once.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` when no question is open.
   */
  answer(answers: ExistsAnswers): void {
    const question = this.#openQuestion();
    try {
      this.#answers.take(question, answers);
    } catch (error) {
      this.fail(error);
    }
    this.#question = undefined;
  }

  /**
   * The open question could not be answered: the lookup ends with a failure.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` when no question is open.
   */
  fail(cause: unknown): void {
    this.#openQuestion();
    this.#question = undefined;
    const error = isMooncakeKvError(cause)
      ? cause
      : lookupError(
          `the store could not be asked: ${cause instanceof Error ? cause.message : describe(cause)}`,
          {},
          { cause },
        );
    this.#finish(LOOKUP_MISS, { reason: "store", error });
  }

  #openQuestion(): LookupQuestion {
    if (this.#question === undefined)
      throw lookupError("no question is open; call next first", { questions: this.#questions });
    return this.#question;
  }

  #decide(): LookupDecision | Wanted {
    // Without a candidate vLLM answers before it searches, even where the search would raise.
    if (this.candidates.every(({ hashIndexes }) => hashIndexes.length === 0)) return LOOKUP_MISS;
    return decideLookup(this.#coordinator, this.#options.numTokens, this.#existence);
  }

  #finish({ failure: error, ...decision }: LookupDecision, failed?: LookupFailure): LookupResult {
    const failure = failed ?? (error && ({ reason: "search", error } as const));
    this.#result = {
      ...decision,
      keysAsked: this.#keysAsked,
      questions: this.#questions,
      ...(failure && { failure }),
    };
    return this.#result;
  }

  /** As many of the wanted blocks as the window has room for, without those that are known or were asked in vain. */
  #ask({ groupIds, first, step, count }: Wanted): LookupQuestion {
    const prefixes = groupIds.flatMap((id) => this.#options.keyPrefixes[id]!);
    const window = this.#grown.get(groupIds[0]!) ?? this.#windows.first;
    this.#grown.set(groupIds[0]!, Math.min(window * this.#windows.growth, this.#windows.most));
    const room = Math.max(1, Math.floor(Math.min(window, this.#windows.most) / prefixes.length));
    const hashIndexes = new Uint32Array(Math.min(room, count));
    let found = 0;
    for (let i = 0; i < count && found < hashIndexes.length; i++) {
      const index = first + i * step;
      if (this.#answers.isOpen(groupIds, index)) hashIndexes[found++] = index;
    }
    const asked = hashIndexes.subarray(0, found);
    return {
      groupIds,
      hashIndexes: asked,
      keys: KeyTable.fromPrefixes(prefixes, gatherHashes(this.#hashes, asked)),
    };
  }
}

/** Hashes in one buffer. @throws MooncakeKvError `ERR_LOOKUP` for no list, `ERR_HASH` when two lengths differ. */
function asBlob(hashes: BlockHashSequence): BlobBlockHashes {
  if (hashes instanceof BlobBlockHashes) return hashes;
  if (typeof hashes?.at !== "function")
    throw lookupError(`blockHashes is ${describe(hashes)}; it must be a list of block hashes`);
  return BlobBlockHashes.from(Array.from({ length: hashes.length }, (_, index) => hashes.at(index)!));
}

function checkedWindows(windows: NonNullable<LookupSessionOptions["windows"]>): LookupWindows {
  lookupChecks.names("windows", windows, WINDOWS);
  const { first, growth, most } = DEFAULT_WINDOWS;
  const checked = {
    first: windows.first ?? first,
    growth: windows.growth ?? growth,
    most: windows.most ?? most,
  };
  lookupChecks.whole("windows.first", checked.first, 1);
  lookupChecks.whole("windows.growth", checked.growth, 1);
  lookupChecks.whole("windows.most", checked.most, 1);
  return checked;
}

function checkPrefixes(keyPrefixes: readonly (readonly string[])[], { kvCacheGroups }: PrefixSearch): void {
  if (keyPrefixes?.length !== kvCacheGroups.length)
    throw lookupError(
      `there are key prefixes for ${keyPrefixes?.length} groups, but ${kvCacheGroups.length} groups`,
      { keyPrefixes: keyPrefixes?.length, groups: kvCacheGroups.length },
    );
  for (const [id, prefixes] of keyPrefixes.entries()) {
    if (!Array.isArray(prefixes) || prefixes.length === 0)
      throw lookupError(`group ${id} has no key prefix; a block would count as stored without a key`, { id });
    // Refuses what no key can carry now, rather than in the middle of a lookup.
    KeyTable.fromPrefixes(prefixes, NO_HASHES);
  }
}
