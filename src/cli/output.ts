import type { Writable } from "node:stream";

/** Characters that are collected before they are written. */
const CHUNK = 64 * 1024;

/** Thrown by an `Output` whose reader has gone away, as `head` does: no fault, but nothing is left to do. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";
}

/**
 * Text to a stream, in large pieces, each awaited before the next: a slow reader slows the command down and memory
 * stays bounded.
 */
export class Output {
  readonly #stream: Writable;
  #pending = "";
  #failure: Error | undefined;
  readonly #onError = (error: Error): void => {
    this.#failure ??= error;
  };

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on("error", this.#onError);
  }

  /**
   * Adds text.
   *
   * @throws OutputClosed when nobody reads any more, or the stream's own error.
   */
  async write(text: string): Promise<void> {
    this.#pending += text;
    if (this.#pending.length >= CHUNK) await this.flush();
  }

  /** Adds text and a line end. */
  async line(text: string = ""): Promise<void> {
    this.#pending += text;
    this.#pending += "\n";
    if (this.#pending.length >= CHUNK) await this.flush();
  }

  /** Adds lines; the source may be lazy and long. */
  async lines(texts: Iterable<string>): Promise<void> {
    for (const text of texts) {
      this.#pending += text;
      this.#pending += "\n";
      if (this.#pending.length >= CHUNK) await this.flush();
    }
  }

  /** Writes what was collected and waits until the stream has taken it. */
  async flush(): Promise<void> {
    const text = this.#pending;
    this.#pending = "";
    this.#throwFailure();
    if (text === "") return;
    await new Promise<void>((resolve) => {
      this.#stream.write(text, (error) => {
        if (error) this.#onError(error);
        resolve();
      });
    });
    this.#throwFailure();
  }

  /** Forgets what was collected, so that an error stands alone. */
  discard(): void {
    this.#pending = "";
  }

  /** Lets go of the stream. */
  detach(): void {
    // A failure that is still under way must find a listener; only a healthy stream is left as it was.
    if (this.#failure === undefined) this.#stream.off("error", this.#onError);
  }

  #throwFailure(): void {
    const failure = this.#failure as NodeJS.ErrnoException | undefined;
    if (failure === undefined) return;
    if (failure.code === "EPIPE" || failure.code === "ERR_STREAM_DESTROYED") throw new OutputClosed();
    throw failure;
  }
}
