import { describe, MooncakeKvError } from "../../errors.js";
import type { SegmentTable } from "../../layout/segment-table.js";

// What a store answers comes from another process, and counts only where it is exactly right.

/** The answers of a call on several keys, one a key, whatever each of them is. */
export type StoreAnswers = readonly unknown[];

/**
 * A copy of the codes of a result.
 *
 * @throws MooncakeKvError `ERR_STORE` when there is not one a key: nothing is known then of any key.
 */
export function answersOf(result: unknown, numKeys: number): StoreAnswers {
  const codes = (result as { readonly codes?: ArrayLike<unknown> | undefined } | null | undefined)?.codes;
  const given = codes?.length;
  if (given !== numKeys)
    throw new MooncakeKvError("ERR_STORE", `the store gave ${describe(given)} results for ${numKeys} keys`, {
      results: given,
      keys: numKeys,
    });
  return Array.from(codes as ArrayLike<unknown>);
}

/** Positions of what neither says that a key exists, exactly 1, nor that it does not, exactly 0. */
export function unansweredKeys(answers: StoreAnswers): Set<number> {
  return positions(answers, (code) => code === 0 || code === 1);
}

/** Positions of the objects that were not stored: whatever is not exactly 0. */
export function unstoredRows(answers: StoreAnswers): Set<number> {
  return positions(answers, (code) => code === 0);
}

/** Positions of the rows that were not filled: whatever is not exactly the bytes of its row. */
export function unfilledRows(answers: StoreAnswers, segments: SegmentTable): Set<number> {
  return positions(answers, (code, row) =>
    typeof code === "bigint" ? code === segments.rowBytes(row) : code === Number(segments.rowBytes(row)),
  );
}

function positions(answers: StoreAnswers, isRight: (code: unknown, index: number) => boolean): Set<number> {
  const wrong = new Set<number>();
  for (let i = 0; i < answers.length; i++) if (!isRight(answers[i], i)) wrong.add(i);
  return wrong;
}
