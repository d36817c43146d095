/** What comes in place of an answer that took too long. */
export const TIMEOUT: unique symbol = Symbol("timeout");

/** The answers that somebody waits for, each with its limit. */
export class TimeLimits {
  readonly #ends = new Set<() => void>();

  /** What a promise gives, or `TIMEOUT` after `ms` milliseconds, or when nobody waits any more. */
  async inTime<T>(answer: Promise<T>, ms: number): Promise<T | typeof TIMEOUT> {
    let end = (): void => {};
    const late = new Promise<typeof TIMEOUT>((resolve) => {
      end = () => resolve(TIMEOUT);
    });
    const timer = setTimeout(end, ms);
    this.#ends.add(end);
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
      this.#ends.delete(end);
    }
  }

  /** Nobody waits any more: a timer must not keep the process alive. */
  end(): void {
    for (const end of this.#ends) end();
  }
}
