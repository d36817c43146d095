import { randomBytes } from "node:crypto";
import type { KvStore } from "../../store/kv-store.js";

/** Signals on which a person ends the demo, and the status that shells give to each. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

/** Milliseconds that the removal may take. */
const REMOVE_MS = 10_000;

/**
 * Runs work whose objects all have one prefix of their own, and removes them: when it ends, when it fails, and when the
 * process is told to end. Made-up bytes are never left under keys of a real pool.
 */
export async function withOwnObjects<T>(
  store: KvStore,
  work: (cachePrefix: string) => Promise<T>,
): Promise<T> {
  const cachePrefix = `mooncake-kv-demo-${randomBytes(4).toString("hex")}`;
  // A store that can't remove by pattern evicts them some day.
  const remove = async () => {
    await store.removeByRegex(`^${cachePrefix}@`, { force: true, deadlineMs: REMOVE_MS });
  };
  const handlers = Object.entries(SIGNALS).map(([signal, status]) => {
    const handler = () => {
      remove()
        .catch(() => {})
        .finally(() => process.exit(status));
    };
    process.once(signal, handler);
    return () => process.off(signal, handler);
  });
  try {
    const result = await work(cachePrefix);
    await remove();
    return result;
  } catch (error) {
    // What went wrong first is what counts.
    await remove().catch(() => {});
    throw error;
  } finally {
    for (const stop of handlers) stop();
  }
}
