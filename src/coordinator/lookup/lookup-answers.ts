import { describe, isMooncakeKvError, type MooncakeKvError } from "../../errors.js";
import type { KeyTable } from "../../key/key-table.js";
import { lookupError } from "../checks.js";
import { ABSENT, type BlockState, type ExistenceTable, PRESENT, UNKNOWN } from "../search/existence-table.js";

/** Answers of a store about the existence of keys: one number a key, or what `KvStore.exists` resolves to. */
export type ExistsAnswers =
  | ArrayLike<number>
  | {
      readonly codes: ArrayLike<number>;
      /** Throws what the store says of the keys that it did not answer. `StoreResult` has it. */
      throwIfFailed?(): unknown;
    };

/** An open question: hash `hashIndexes[i]`, under each prefix of each group. */
export interface LookupQuestion {
  /** The groups that are asked about. */
  readonly groupIds: readonly number[];
  /** Positions of the hashes that are asked about. */
  readonly hashIndexes: Uint32Array;
  /** The keys, in the order of the answers. */
  readonly keys: KeyTable;
}

/**
 * What a store has said about the blocks of one prompt. A key is answered by exactly 1 (stored) or exactly 0 (absent);
 * whatever else stands there, a negative code above all, is no answer. A block without an answer stays unknown, unless
 * another of its keys is absent: then it is absent whatever the missing answer would be.
 */
export class LookupAnswers {
  readonly #existence: ExistenceTable;
  readonly #counts: readonly number[];
  /** Blocks that were asked about in vain, by group and hash, each with what came instead of its answer. */
  readonly #unanswered = new Map<number, () => MooncakeKvError>();

  /** @param counts keys of one block of each group. */
  constructor(existence: ExistenceTable, counts: readonly number[]) {
    this.#existence = existence;
    this.#counts = counts;
  }

  /**
   * Takes the answers to a question, in the order of its keys.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` for a list of another length: nothing is known then of any key.
   */
  take({ groupIds, hashIndexes, keys }: LookupQuestion, answers: ExistsAnswers): void {
    const codes = codesOf(answers);
    const given = codes?.length;
    if (given !== keys.length)
      throw lookupError(`the store gave ${describe(given)} answers for ${keys.length} keys`, {
        answers: given,
        keys: keys.length,
      });
    let failure: (() => MooncakeKvError) | undefined;
    let at = 0;
    for (let i = 0; i < hashIndexes.length; i++)
      for (const id of groupIds) {
        let state: BlockState = PRESENT;
        for (const end = at + this.#counts[id]!; at < end; at++) {
          const code = codes[at];
          if (code === 0) state = ABSENT;
          else if (code !== 1 && state === PRESENT) state = UNKNOWN;
        }
        this.#existence.set(id, hashIndexes[i]!, state);
        if (state !== UNKNOWN) continue;
        failure ??= firstFailure(keys, codes, answers);
        this.#unanswered.set(this.#position(id, hashIndexes[i]!), failure);
      }
  }

  /** Why it is not known whether all of some groups have a block; undefined where nobody has asked, or it is known. */
  failureOf(groupIds: readonly number[], hashIndex: number): MooncakeKvError | undefined {
    for (const id of this.#unanswered.size > 0 ? groupIds : []) {
      const failure = this.#unanswered.get(this.#position(id, hashIndex));
      if (failure) return failure();
    }
    return undefined;
  }

  /** Whether a block is still to be asked about. */
  isOpen(groupIds: readonly number[], hashIndex: number): boolean {
    if (this.#existence.all(groupIds, hashIndex) !== UNKNOWN) return false;
    if (this.#unanswered.size === 0) return true;
    return !groupIds.some((id) => this.#unanswered.has(this.#position(id, hashIndex)));
  }

  #position(groupId: number, hashIndex: number): number {
    return groupId * this.#existence.numHashes + hashIndex;
  }
}

function codesOf(answers: ExistsAnswers): ArrayLike<number> {
  return (
    (answers as { readonly codes?: ArrayLike<number> | undefined } | null)?.codes ??
    (answers as ArrayLike<number>)
  );
}

/** The error of a question that was not answered for every key. Read now: the list may be the store's to use again. */
function firstFailure(
  keys: KeyTable,
  codes: ArrayLike<number>,
  answers: ExistsAnswers,
): () => MooncakeKvError {
  let first = -1;
  let failed = 0;
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] === 0 || codes[i] === 1) continue;
    if (first < 0) first = i;
    failed++;
  }
  const code = codes[first];
  return () => {
    const own = whatTheStoreSays(answers);
    if (isMooncakeKvError(own)) return own;
    const key = keys.at(first);
    return lookupError(
      `the store answered ${describe(code)} for ${failed} of ${keys.length} keys, the first of them ` +
        `${describe(key, 200)}; the answer to whether a key exists is 1 or 0`,
      { storeCode: code, failed, keys: keys.length, key },
      own === undefined ? undefined : { cause: own },
    );
  };
}

function whatTheStoreSays(answers: ExistsAnswers): unknown {
  try {
    (answers as { throwIfFailed?(): unknown }).throwIfFailed?.();
  } catch (error) {
    return error;
  }
  return undefined;
}
