import { describe, type ErrorCode, MooncakeKvError } from "../../errors.js";
import type { Addon } from "../../native/addon.js";
import type { NativeMooncake } from "../../native/mooncake-addon.js";

/** The longest that a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** The calls of one client that are under way, each with its deadline. */
export class NativeCalls {
  readonly addon: Addon;
  readonly client: NativeMooncake;
  readonly #running = new Set<Promise<unknown>>();
  #nextId = 1;

  constructor(addon: Addon, client: NativeMooncake) {
    this.addon = addon;
    this.client = client;
  }

  /**
   * Starts a call under a new number, and gives it up when its time is over.
   *
   * @throws MooncakeKvError `ERR_STORE`, unless another code is given, for a call that failed as a whole.
   */
  async run<T>(
    operation: string,
    deadlineMs: number,
    start: (id: number) => Promise<T>,
    errorCode: ErrorCode = "ERR_STORE",
  ): Promise<T> {
    const id = this.#nextId;
    this.#nextId = id === 2 ** 32 - 1 ? 1 : id + 1;
    const call = start(id);
    this.#running.add(call);
    const timer = setTimeout(
      () => this.addon.mooncakeGiveUp(this.client, id),
      Math.min(Math.max(deadlineMs, 0), LONGEST_MS),
    );
    try {
      return await call;
    } catch (error) {
      throw new MooncakeKvError(
        errorCode,
        `${operation}: ${error instanceof Error ? error.message : describe(error)}`,
        { operation },
        { cause: error },
      );
    } finally {
      clearTimeout(timer);
      this.#running.delete(call);
    }
  }

  /** Resolves when every call is settled. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
