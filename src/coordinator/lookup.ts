import type { KeyTable } from "../key/key-table.js";
import { type LookupResult, LookupSession, type LookupSessionOptions } from "./lookup-session.js";
import type { MooncakeStoreCoordinator } from "./mooncake-store-coordinator.js";

/** Answers of a store about the existence of keys: one number a key, or what `KvStore.exists` resolves to. */
export type ExistsAnswers = ArrayLike<number> | { readonly codes: ArrayLike<number> };

/** What a lookup needs. */
export interface LookupOptions extends LookupSessionOptions {
  /** Asks the store, as `KvStore.exists`. Only an answer of exactly 1 counts as existence. */
  readonly exists: (keys: KeyTable) => ExistsAnswers | PromiseLike<ExistsAnswers>;
}

/**
 * Asks a store how much of a prompt it holds, in growing questions, until the result is decided. An error of `exists` is
 * a miss with a `failure`.
 *
 * @throws MooncakeKvError `ERR_LOOKUP`, `ERR_KEY` or `ERR_HASH` for options that make no sense, before anything is asked.
 */
export async function lookup(
  coordinator: MooncakeStoreCoordinator,
  { exists, ...options }: LookupOptions,
): Promise<LookupResult> {
  const session = new LookupSession(coordinator, options);
  for (;;) {
    const step = session.next();
    if (step.result !== undefined) return step.result;
    try {
      const answers = await exists(step.ask);
      session.answer(codes(answers));
    } catch (error) {
      session.fail(error);
    }
  }
}

function codes(answers: ExistsAnswers): ArrayLike<number> {
  return (answers as { readonly codes?: ArrayLike<number> }).codes ?? (answers as ArrayLike<number>);
}
