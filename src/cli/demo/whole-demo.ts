import { randomInt } from "node:crypto";
import type { KvStore } from "../../store/kv-store.js";
import { type ConversationResult, runConversation } from "./conversation/run-conversation.js";
import type { DemoWork } from "./demo-work.js";
import { type DemoResult, runDemo } from "./run-demo.js";

/** Milliseconds that a store may take to remove what the demo has put there. */
const REMOVAL_MS = 10_000;

/** How the demo goes. */
export interface WholeDemoOptions extends Omit<DemoWork, "cachePrefix"> {
  /** Called with the first part, while the second one is still to come. */
  readonly onFirstPart?: ((result: DemoResult) => Promise<void>) | undefined;
  /** Called in the end where the store did not remove the demo's objects. */
  readonly onLeftBehind?: ((left: LeftBehind) => Promise<void>) | undefined;
}

/** What came of the demo. */
export interface WholeDemo {
  readonly first: DemoResult;
  readonly conversation: ConversationResult;
}

/** Objects that could not be removed. */
export interface LeftBehind {
  readonly cachePrefix: string;
  /** The store's answer, or its error. */
  readonly reason: string;
}

/**
 * Both parts of the demo, under one prefix that no engine has: its bytes are made up, and an engine that found them under its
 * own keys would load them. Whatever happens, its objects are removed in the end.
 *
 * @throws MooncakeKvError `ERR_STORE` when the store refuses something or bytes differ, and whatever `step` throws.
 */
export async function runWholeDemo(options: WholeDemoOptions): Promise<WholeDemo> {
  const { store, onFirstPart, onLeftBehind } = options;
  const cachePrefix = `mooncake-kv-demo-${randomInt(2 ** 40)}`;
  const work: DemoWork = { ...options, cachePrefix };
  try {
    const first = await runDemo(work);
    await onFirstPart?.(first);
    return { first, conversation: await runConversation(work) };
  } finally {
    const left = await removeObjects(store, cachePrefix);
    if (left !== undefined) await onLeftBehind?.(left);
  }
}

/** Removes everything under a prefix; undefined when nothing is left. */
async function removeObjects(store: KvStore, cachePrefix: string): Promise<LeftBehind | undefined> {
  try {
    // The prefix is made of letters, digits and hyphens.
    const removed = await store.removeByRegex(`^${cachePrefix}@`, { force: true, deadlineMs: REMOVAL_MS });
    return removed >= 0 ? undefined : { cachePrefix, reason: `code ${removed}` };
  } catch (error) {
    return { cachePrefix, reason: (error as Error).message };
  }
}
