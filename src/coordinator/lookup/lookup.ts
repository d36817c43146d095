import { describe } from "../../errors.js";
import type { KeyTable } from "../../key/key-table.js";
import { lookupError } from "../checks.js";
import type { ExistsAnswers } from "./lookup-answers.js";
import { type LookupResult, LookupSession, type LookupSessionOptions } from "./lookup-session.js";
import type { PrefixSearch } from "./prefix-search.js";

/** What a lookup needs. */
export interface LookupOptions extends LookupSessionOptions {
  /**
   * Asks the store, as `KvStore.exists`: exactly 1 for a key that exists, exactly 0 for one that does not; whatever else
   * is said is no answer. Give each call a deadline (`(keys) => store.exists(keys, { deadlineMs: 1_000 })`): a lookup has
   * no clock of its own.
   */
  readonly exists: (keys: KeyTable) => ExistsAnswers | PromiseLike<ExistsAnswers>;
  /** Ends the lookup with a failure, even while `exists` says nothing. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks a store how much of a prompt it holds, in growing questions, until the result is decided. An error of `exists`, an
 * answer that is none and an abort are a `failure`, and never a miss.
 *
 * @throws MooncakeKvError `ERR_LOOKUP`, `ERR_KEY` or `ERR_HASH` for options that make no sense, before anything is asked.
 */
export async function lookup(coordinator: PrefixSearch, lookupOptions: LookupOptions): Promise<LookupResult> {
  if (typeof lookupOptions !== "object" || lookupOptions === null)
    throw lookupError(`the options of a lookup are ${describe(lookupOptions)}; they must be an object`);
  const { exists, signal, ...options } = lookupOptions;
  const session = new LookupSession(coordinator, options);
  if (typeof exists !== "function")
    throw lookupError(`exists is ${describe(exists)}; it is a function that asks the store about keys`);
  for (;;) {
    const step = session.next();
    if (step.result !== undefined) return step.result;
    try {
      session.answer(await untilAborted(signal, () => exists(step.ask)));
    } catch (error) {
      session.fail(error);
    }
  }
}

/** What the work gives, or the reason of the signal as an error, whichever comes first. */
async function untilAborted<T>(signal: AbortSignal | undefined, work: () => T | PromiseLike<T>): Promise<T> {
  signal?.throwIfAborted();
  if (signal === undefined) return work();
  let stop = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
