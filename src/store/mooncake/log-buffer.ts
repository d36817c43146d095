/** The latest text of a stream, up to a number of bytes. */
export class LogBuffer {
  readonly #limit: number;
  #chunks: Uint8Array[] = [];
  #size = 0;
  /** Whether the text that is kept may begin in the middle of a line. */
  #cut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds what arrived; the oldest goes when it is too much. */
  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Cutting is amortised: only when there is twice as much as is kept.
    if (this.#size > 2 * this.#limit) {
      const kept = Buffer.concat(this.#chunks).subarray(this.#size - this.#limit);
      this.#chunks = [Buffer.from(kept)];
      this.#size = kept.length;
      this.#cut = true;
    }
  }

  /** The text, from a line's start when older text was dropped. */
  text(): string {
    const all = Buffer.concat(this.#chunks);
    const kept = all.subarray(Math.max(0, all.length - this.#limit));
    const start = this.#cut || kept.length < all.length ? kept.indexOf(10) + 1 : 0;
    return kept.toString("utf8", start);
  }

  /** The last lines that are not empty, for an error. */
  tail(lines: number): string[] {
    return this.text()
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-lines);
  }
}
