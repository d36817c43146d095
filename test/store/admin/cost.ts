import { setTimeout as sleep } from "node:timers/promises";

/** What a piece of work cost the process. */
export interface Cost {
  /** The longest time, in milliseconds, for which nothing else had its turn. */
  readonly longestTurn: number;
  /** Bytes by which the process grew at most. */
  readonly grown: number;
}

/** Measures work while others want their turn. */
export async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  await sleep(10);
  const before = process.memoryUsage.rss();
  let longestTurn = 0;
  let most = before;
  let last = performance.now();
  const look = (): void => {
    const now = performance.now();
    longestTurn = Math.max(longestTurn, now - last);
    last = now;
    most = Math.max(most, process.memoryUsage.rss());
  };
  const timer = setInterval(look, 1);
  try {
    await work();
    await sleep(5);
  } finally {
    clearInterval(timer);
  }
  return { longestTurn, grown: most - before };
}
