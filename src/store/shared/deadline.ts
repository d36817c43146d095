/** The longest that a timer of Node takes, in milliseconds. */
export const LONGEST_MS: number = 2 ** 31 - 1;

/**
 * The end of a call: its time is over, or its caller has aborted it. Everything that the call has started is told. Nobody
 * is told before the event loop has looked at what has arrived: an answer that is there wins.
 */
export class Deadline {
  /** Milliseconds from the start of the call; Infinity where there is no limit. */
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
  readonly #end: number;
  readonly #waiting = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #watched = false;
  #told = false;

  constructor(ms: number, signal?: AbortSignal) {
    this.ms = ms;
    this.signal = signal;
    this.#end = performance.now() + ms;
  }

  /** Whether nothing more should be begun for the call. */
  get expired(): boolean {
    return this.#told || this.aborted || performance.now() >= this.#end;
  }

  /** Whether the caller has aborted the call. */
  get aborted(): boolean {
    return this.signal?.aborted === true;
  }

  /** Milliseconds that are left: 0 once it is over. */
  get left(): number {
    return this.expired ? 0 : this.#end - performance.now();
  }

  /** Calls `action` when the call is over: at once when that has been told already. Gives a function that takes it back. */
  whenExpired(action: () => void): () => void {
    if (this.#told) {
      action();
      return () => {};
    }
    this.#watch();
    this.#waiting.add(action);
    return () => {
      this.#waiting.delete(action);
    };
  }

  /** What a promise gives, or undefined when the call is over first; the promise is then nobody's business any more. */
  inTime<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const forget = this.whenExpired(() => resolve(undefined));
      promise.then(resolve, reject).finally(forget);
    });
  }

  /** The call is over; nobody is told any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.signal?.removeEventListener("abort", this.#expire);
    this.#waiting.clear();
  }

  /** Most calls end without anybody asking for their deadline: the timer starts with the first who does. */
  #watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    if (this.ms !== Number.POSITIVE_INFINITY) this.#wait();
    this.signal?.addEventListener("abort", this.#expire, { once: true });
    if (this.aborted) this.#expire();
  }

  #wait(): void {
    const left = Math.max(0, this.#end - performance.now());
    this.#timer = setTimeout(
      () => {
        if (performance.now() < this.#end) this.#wait();
        else this.#expire();
      },
      Math.min(Math.ceil(left), LONGEST_MS),
    );
  }

  /**
   * A loop that was busy runs its timers before it reads its sockets. Two turns later it has read them: the first may be
   * the turn under way.
   */
  readonly #expire = (): void => {
    setImmediate(() => setImmediate(() => this.#tell()));
  };

  #tell(): void {
    if (this.#told) return;
    this.#told = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const action of waiting) action();
  }
}
