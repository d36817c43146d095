// Which engine a request goes to: the rule of the proxy, and what it has to know of the engines for it.

/** How an engine fares. */
export interface EngineState {
  /** Requests that it is at. */
  running: number;
  /** Requests that it has been given so far. */
  given: number;
  /** Until when it comes last, as `performance.now` says. */
  pausedUntil: number;
  /** Until when it is not asked for tokens. */
  muteUntil: number;
}

/** Whether an engine comes last for a while, since it failed. */
export const isPaused = ({ pausedUntil }: EngineState, now: number = performance.now()): boolean =>
  pausedUntil > now;

/** An engine with nothing to do. */
export function idleEngine<T extends object>(engine: T): T & EngineState {
  return { ...engine, running: 0, given: 0, pausedUntil: 0, muteUntil: 0 };
}

/**
 * The engines in the order in which they are tried: those that did not fail just now, then those with the longest hit, less
 * `loadPenalty` tokens for each request that they are at, then those with least to do, then those that were given fewest.
 * Without hits that is the engine with least to do.
 */
export function inOrder<T extends EngineState>(
  engines: readonly T[],
  hit: (engine: T) => number,
  loadPenalty: number,
): T[] {
  const now = performance.now();
  const worth = (engine: T) => hit(engine) - engine.running * loadPenalty;
  return engines.toSorted(
    (a, b) =>
      Number(isPaused(a, now)) - Number(isPaused(b, now)) ||
      worth(b) - worth(a) ||
      a.running - b.running ||
      a.given - b.given,
  );
}

/** Whom to ask for the tokens of a prompt; undefined while nobody can be asked. */
export function forTokens<T extends EngineState>(engines: readonly T[]): T | undefined {
  const now = performance.now();
  return inOrder(engines, () => 0, 1).find(
    ({ muteUntil, pausedUntil }) => muteUntil <= now && pausedUntil <= now,
  );
}
