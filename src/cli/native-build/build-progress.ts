import type { Writable } from "node:stream";
import type { MaybeTerminal } from "../io.js";

/** How far a build is, on one line of a terminal that is written over. Says nothing to anything but a terminal. */
export class BuildProgress {
  readonly #stream: MaybeTerminal<Writable>;
  #rest = "";
  #shown = "";

  constructor(stream: MaybeTerminal<Writable>) {
    this.#stream = stream;
    this.#show("setting up");
  }

  /** Takes output of ninja, make or CMake as it comes. */
  readonly take = (text: string): void => {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) {
      // ninja counts steps, make per cents.
      const count = /^\[\s*(\d+\/\d+|\d+%)\]/.exec(line)?.[1];
      if (count) this.#show(count);
    }
  };

  /** Takes the line away. */
  end(): void {
    if (this.#shown !== "") this.#stream.write("\r\x1b[K");
    this.#shown = "";
  }

  #show(state: string): void {
    if (!this.#stream.isTTY || state === this.#shown) return;
    this.#shown = state;
    this.#stream.write(`\r\x1b[Kbuilding the native addon: ${state}`);
  }
}
