import { describe, type ErrorCode, MooncakeKvError } from "../../errors.js";
import type { Addon } from "../../native/addon.js";
import type { NativeMooncake } from "../../native/mooncake-addon.js";
import type { Deadline } from "../shared/deadline.js";

/** The calls of one client of Mooncake's C library: each has a number, by which it is given up when its time is over. */
export class NativeCalls {
  readonly addon: Addon;
  readonly client: NativeMooncake;
  #nextId = 1;

  constructor(addon: Addon, client: NativeMooncake) {
    this.addon = addon;
    this.client = client;
  }

  /**
   * Starts a call under a new number. It settles when nobody touches its memory any more.
   *
   * @throws MooncakeKvError `ERR_STORE`, unless another code is given, for a call that failed as a whole.
   */
  async run<T>(
    operation: string,
    deadline: Deadline,
    start: (id: number) => Promise<T>,
    errorCode: ErrorCode = "ERR_STORE",
  ): Promise<T> {
    const id = this.#nextId;
    this.#nextId = id === 2 ** 32 - 1 ? 1 : id + 1;
    const call = start(id);
    const forget = deadline.whenExpired(() => this.addon.mooncakeGiveUp(this.client, id));
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
      forget();
    }
  }
}
