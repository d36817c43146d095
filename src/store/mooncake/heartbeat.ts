/** Milliseconds between two looks at a busy process. */
const INTERVAL = 100;

/** What a heartbeat watches. */
export interface Watched {
  /** Whether somebody waits for the process: only then is it watched. */
  busy(): boolean;
  /** Asks for a sign of life; settles when it comes. */
  ping(): Promise<unknown>;
  /** Whether the system knows that the process can't answer. */
  isStopped(): boolean;
  /** Told once, with the reason, when the process gives no sign of life. */
  dead(reason: string): void;
}

/** Watches a process that somebody waits for. */
export class Heartbeat {
  readonly #watched: Watched;
  readonly #silenceMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** When the ping under way was sent, moved on by the time that this process itself stood still. */
  #sent: number | undefined;
  #looked = 0;
  #pauses = 0;

  /** `silenceMs`: milliseconds without a sign of life after which the process counts as dead. */
  constructor(watched: Watched, silenceMs: number) {
    this.#watched = watched;
    this.#silenceMs = silenceMs;
  }

  /** Starts to watch, if nobody does. */
  watch(): void {
    if (this.#timer !== undefined) return;
    this.#looked = performance.now();
    this.#timer = setInterval(() => this.#look(), INTERVAL);
    this.#timer.unref();
  }

  /** Takes no silence for death until the returned function is called. */
  pause(): () => void {
    this.#pauses++;
    return () => {
      this.#pauses--;
      this.#sent = this.#sent === undefined ? undefined : performance.now();
    };
  }

  /** Ends the watch. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = performance.now();
    // A busy event loop or a machine asleep is no fault of the watched process.
    const late = now - this.#looked - INTERVAL;
    this.#looked = now;
    if (this.#sent === undefined) {
      if (this.#watched.busy()) this.#ping(now);
      else this.stop();
      return;
    }
    if (late > 0) this.#sent += late;
    if (this.#pauses > 0) return;
    const silence = now - this.#sent;
    // An answer may have arrived that the event loop has not read yet.
    if (silence > this.#silenceMs) setImmediate(() => setImmediate(() => this.#giveUp(silence)));
  }

  #ping(now: number): void {
    this.#sent = now;
    const answered = (): void => {
      this.#sent = undefined;
    };
    this.#watched.ping().then(answered, answered);
  }

  #giveUp(silence: number): void {
    if (this.#sent === undefined || this.#timer === undefined) return;
    this.stop();
    this.#watched.dead(
      this.#watched.isStopped()
        ? `was stopped by somebody, for ${Math.round(silence)} ms`
        : `gave no sign of life for ${Math.round(silence)} ms`,
    );
  }
}
