import { MooncakeKvError } from "../errors.js";
import type { CallOptions } from "../store/shared/call-options.js";
import { Deadline } from "../store/shared/deadline.js";

/** The time of a job, or of a call that belongs to none. */
export interface CallLimitOptions {
  /** Milliseconds from now: what the store is told. */
  readonly ms: number;
  /** Milliseconds that a store which does not keep to it gets besides. Default: 0. */
  readonly graceMs?: number | undefined;
  /** Once aborted, nothing more is begun. Calls under way are told, and waited for. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The time that one job has for all of its calls. Each call is told what is left of it, and a `KvStore` keeps to that: it
 * answers when its copies have ended. Whatever has not answered when the grace is over as well is given up: it may say
 * something later, or never, and nobody waits for it.
 */
export class CallLimit {
  readonly #graceMs: number;
  readonly #ms: number;
  readonly #signal: AbortSignal | undefined;
  readonly #guard: Deadline;

  constructor({ ms, graceMs = 0, signal }: CallLimitOptions) {
    this.#ms = ms;
    this.#graceMs = graceMs;
    this.#signal = signal;
    // Not by the signal: whoever aborts still has to wait for the copies under way.
    this.#guard = new Deadline(ms + graceMs);
  }

  /** Milliseconds that a call may still take; 0 when none may be begun. */
  get left(): number {
    return this.#signal?.aborted ? 0 : Math.max(0, this.#guard.left - this.#graceMs);
  }

  /**
   * What a call gives.
   *
   * @param what names the call in errors.
   * @param late told once a call that was given up has ended after all.
   * @throws MooncakeKvError `ERR_STORE` when the time was over before the call, or is before its answer; else what the
   * call throws.
   */
  async run<T>(
    what: string,
    call: (options: CallOptions) => T | PromiseLike<T>,
    late?: (outcome: PromiseSettledResult<T>) => void,
  ): Promise<T> {
    const { left } = this;
    if (left <= 0) throw this.#error(`${what} was not begun: ${this.#why()}`);
    const answer = Promise.resolve(call({ deadlineMs: Math.ceil(left), signal: this.#signal }));
    const inTime = await this.#guard.inTime(answer.then((value) => ({ value })));
    if (inTime !== undefined) return inTime.value;
    if (late) void Promise.allSettled([answer]).then(([outcome]) => late(outcome!));
    throw this.#error(
      `${what} has no answer after ${this.#ms + this.#graceMs} ms and is given up; the store was told to end it after ${this.#ms} ms`,
    );
  }

  /** The job has ended. */
  end(): void {
    this.#guard.end();
  }

  #why(): string {
    return this.#signal?.aborted ? "the worker is closed" : `the ${this.#ms} ms of its job are over`;
  }

  #error(message: string): MooncakeKvError {
    return new MooncakeKvError("ERR_STORE", message, { ms: this.#ms, graceMs: this.#graceMs });
  }
}

/** Runs one call that belongs to no job under a limit of its own. */
export async function limited<T>(
  limit: CallLimitOptions,
  what: string,
  call: (options: CallOptions) => T | PromiseLike<T>,
  late?: (outcome: PromiseSettledResult<T>) => void,
): Promise<T> {
  const own = new CallLimit(limit);
  try {
    return await own.run(what, call, late);
  } finally {
    own.end();
  }
}
