/** The end of a call: everything that the call has started is told when its time is over. */
export class Deadline {
  /** Milliseconds from the start of the call. */
  readonly ms: number;
  readonly #waiting = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #expired = false;

  constructor(ms: number) {
    this.ms = ms;
    this.#timer = setTimeout(() => this.#expire(), ms);
  }

  get expired(): boolean {
    return this.#expired;
  }

  /** Calls `action` when the time is over: at once when it is over already. Gives a function that takes it back. */
  whenExpired(action: () => void): () => void {
    if (this.#expired) {
      action();
      return () => {};
    }
    this.#waiting.add(action);
    return () => {
      this.#waiting.delete(action);
    };
  }

  /** The call is over; nobody is told any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #expire(): void {
    this.#expired = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const action of waiting) action();
  }
}
