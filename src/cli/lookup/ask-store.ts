import { isMooncakeKvError, MooncakeKvError } from "../../errors.js";
import { type KvStore, openStore } from "../../store/index.js";
import { askOnly } from "../ask-only.js";
import { type Answer, askStore, unasked } from "./answer.js";
import type { LookupEngine } from "./engine-groups.js";
import type { Prompt } from "./prompt.js";

/** Milliseconds that the end of a store may take: what it has said is known by then. */
const CLOSE_MS = 1_000;
/** A store ends its own calls in time, and says more than a clock can; after so many milliseconds it is not waited for. */
const GRACE_MS = 250;

/** How a store is asked. */
export interface AskOptions {
  /** Milliseconds for everything: opening the store and all questions. */
  readonly timeoutMs: number;
  /** Opens the store. Default: `openStore`, as a process that gives no memory. */
  readonly open?: ((uri: string) => Promise<KvStore>) | undefined;
}

/**
 * Asks the store behind a URI. An outage is no miss: a store that can't be opened, that fails, or that says nothing in
 * time is unknown, and a failure.
 *
 * @throws MooncakeKvError where the URI is wrong or something is not installed: `ERR_CONFIG`, `ERR_NATIVE`.
 */
export async function askStoreAt(
  uri: string,
  engine: LookupEngine,
  prompt: Prompt,
  { timeoutMs, open = (target) => openStore(askOnly(target)) }: AskOptions,
): Promise<Answer> {
  const end = performance.now() + timeoutMs;
  const opening = open(uri);
  let store: KvStore | undefined;
  try {
    store = await inTime(opening, timeoutMs);
  } catch (error) {
    // What was written wrong, or is not installed, is told as everywhere.
    if (isMooncakeKvError(error, "ERR_STORE")) return unasked(error.message, true);
    throw error;
  }
  if (store === undefined) {
    opening.then((late) => late.close()).catch(() => {});
    return unasked(`the store was not open within ${timeoutMs} ms`, true);
  }
  const late = new AbortController();
  const left = () => Math.max(1, Math.ceil(end - performance.now()));
  const timer = setTimeout(() => late.abort(noAnswer(timeoutMs)), left() + GRACE_MS);
  try {
    return await askStore(store, engine, prompt, {
      signal: late.signal,
      callOptions: () => ({ deadlineMs: left() }),
    });
  } finally {
    clearTimeout(timer);
    await inTime(store.close(), CLOSE_MS);
  }
}

function noAnswer(timeoutMs: number): MooncakeKvError {
  return new MooncakeKvError("ERR_STORE", `the store did not answer within ${timeoutMs} ms`, { timeoutMs });
}

/** What a promise gives; undefined when that takes too long. */
async function inTime<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
