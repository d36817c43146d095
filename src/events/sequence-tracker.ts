/** What the number of a live message says about the ones before it. */
export type SequenceVerdict =
  /** The message that was due, or the first of all. */
  | { readonly kind: "next" }
  /** The ones from `from` up to this message are missing. */
  | { readonly kind: "gap"; readonly from: bigint }
  /** A replay has delivered it already. */
  | { readonly kind: "duplicate" }
  /** Numbers have begun anew: the publisher is another one. */
  | { readonly kind: "restart" };

/** Follows the numbers of one publisher's batches, live ones and replayed ones. */
export class SequenceTracker {
  #due: bigint | undefined;
  #lastLive: bigint | undefined;

  /** Number of the batch that is due: everything before it was delivered or given up. Undefined before the first one. */
  get due(): bigint | undefined {
    return this.#due;
  }

  /** Number of the last live message; undefined before the first one, and of a publisher that is new. */
  get lastLive(): bigint | undefined {
    return this.#lastLive;
  }

  /**
   * What a live message means. Live numbers only grow, so that a smaller one means a new publisher, of which the first
   * batch is due. Unless it is a duplicate, `passed` is due once the message and what is missing before it were dealt with.
   */
  live(sequence: bigint): SequenceVerdict {
    const restarted = this.#lastLive !== undefined && sequence <= this.#lastLive;
    this.#lastLive = sequence;
    if (restarted) {
      this.#due = 0n;
      return { kind: "restart" };
    }
    if (this.#due !== undefined && sequence < this.#due) return { kind: "duplicate" };
    return this.#due !== undefined && sequence > this.#due
      ? { kind: "gap", from: this.#due }
      : { kind: "next" };
  }

  /**
   * Another publisher is there: its first batch is due.
   *
   * @param lastLive the number of its live message that has come, if one has.
   */
  restart(lastLive?: bigint): void {
    this.#due = 0n;
    this.#lastLive = lastLive;
  }

  /** Nothing is known of the publisher any more: the next live message is the first of all. */
  forget(): void {
    this.#due = undefined;
    this.#lastLive = undefined;
  }

  /** Takes note that everything before `next` was delivered or given up. */
  passed(next: bigint): void {
    if (this.#due === undefined || next > this.#due) this.#due = next;
  }
}
