import type { Deadline } from "./deadline.js";

/** Counts what may run at a time; who comes first goes first. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Takes a slot when one is free and nobody waits for it. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Waits for a slot; false when the deadline comes first. */
  take(deadline: Deadline): Promise<boolean> {
    if (this.tryTake()) return Promise.resolve(true);
    if (deadline.expired) return Promise.resolve(false);
    return new Promise((resolve) => {
      const next = (): void => {
        forget();
        resolve(true);
      };
      const forget = deadline.whenExpired(() => {
        this.#waiting.delete(next);
        resolve(false);
      });
      this.#waiting.add(next);
    });
  }

  /** Gives a slot back: to the first who waits. */
  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free++;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
