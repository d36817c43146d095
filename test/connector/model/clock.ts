/** Turns of the event loop after which everything has settled that needs no time. */
const TURNS = 6;

/**
 * A clock that only goes on when it is told to: in place of `setTimeout`, `clearTimeout` and `performance.now` of this
 * process. A model of hundreds of time limits so takes no time, and runs the same way again.
 */
export class VirtualClock implements Disposable {
  #now = 1_000;
  #nextId = 1;
  readonly #timers = new Map<number, { readonly at: number; readonly action: () => void }>();
  readonly #real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };

  constructor() {
    const set = (action: () => void, ms: number = 0): number => {
      this.#timers.set(this.#nextId, { at: this.#now + ms, action });
      return this.#nextId++;
    };
    const clear = (id: number): void => void this.#timers.delete(id);
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
    Object.defineProperty(performance, "now", { configurable: true, value: () => this.#now });
  }

  /** Lets milliseconds go by, one by one, and the event loop turn after each in which a timer ran. */
  async pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      this.#now++;
      const due = [...this.#timers].filter(([, { at }]) => at <= this.#now);
      for (const [id, { action }] of due) {
        this.#timers.delete(id);
        action();
      }
      if (due.length > 0) await this.#turns();
    }
    await this.#turns();
  }

  /** Resolves after so many milliseconds of this clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  [Symbol.dispose](): void {
    Object.assign(globalThis, this.#real);
    delete (performance as { now?: unknown }).now;
  }

  async #turns(): Promise<void> {
    for (let i = 0; i < TURNS; i++) await new Promise((resolve) => setImmediate(resolve));
  }
}
