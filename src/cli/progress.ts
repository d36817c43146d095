import type { CommandContext } from "./command.js";
import { printable } from "./text.js";

/** Milliseconds between two lines that a person can tell apart. */
const EVERY_MS = 100;

/** What a long command is at: one line on stderr that replaces itself, on a terminal only, and for people only. */
export class Progress {
  readonly #context: Pick<CommandContext, "io" | "stderr">;
  readonly #active: boolean;
  #shownAt = Number.NEGATIVE_INFINITY;
  #shown = false;

  /** @param json whether the command was asked for JSON, whose reader is a program. */
  constructor(context: Pick<CommandContext, "io" | "stderr">, json: boolean = false) {
    this.#context = context;
    this.#active = context.io.stderr.isTTY === true && !json;
  }

  /** Shows a text instead of the one before; not more often than a person can read. */
  async show(text: string): Promise<void> {
    if (!this.#active) return;
    const now = performance.now();
    if (now - this.#shownAt < EVERY_MS) return;
    this.#shownAt = now;
    const width = (this.#context.io.stderr.columns ?? 80) - 1;
    await this.#replace(printable(text).slice(0, width));
    this.#shown = true;
  }

  /** Shows a text at once: a step that may take its time. */
  async step(text: string): Promise<void> {
    this.#shownAt = Number.NEGATIVE_INFINITY;
    await this.show(text);
  }

  /** Takes the line away. */
  async end(): Promise<void> {
    if (this.#shown) await this.#replace("");
    this.#shown = false;
    this.#shownAt = Number.NEGATIVE_INFINITY;
  }

  async #replace(text: string): Promise<void> {
    const { stderr } = this.#context;
    await stderr.write(`\r\u001b[K${text}`);
    await stderr.flush();
  }
}
