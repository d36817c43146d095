import { constants } from "node:os";
import type { CliIo } from "./io.js";

/** Signals that ask a process to end. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Hears the first signal that asks the process to end, so that a command can tidy up. A second one ends the process as if
 * nobody listened.
 */
export class StopSignal {
  readonly #signals: CliIo["signals"];
  readonly #controller = new AbortController();
  readonly #listeners = SIGNALS.map((name) => {
    const listener = () => {
      this.#name ??= name;
      this.#controller.abort(new Error(`stopped by ${name}`));
      this[Symbol.dispose]();
    };
    return { name, listener };
  });
  #name: (typeof SIGNALS)[number] | undefined;

  constructor({ signals }: Pick<CliIo, "signals">) {
    this.#signals = signals;
    for (const { name, listener } of this.#listeners) signals?.once(name, listener);
  }

  /** The name of the signal that came; undefined when none has. */
  get name(): string | undefined {
    return this.#name;
  }

  /** The exit status of a process that a signal has ended, as shells tell it: 128 and its number. */
  get exitCode(): number {
    return 128 + (this.#name === undefined ? 0 : constants.signals[this.#name]);
  }

  /** @throws Error when a signal has come. */
  throwIfStopped(): void {
    this.#controller.signal.throwIfAborted();
  }

  /** Listens no more. */
  [Symbol.dispose](): void {
    for (const { name, listener } of this.#listeners) this.#signals?.off(name, listener);
  }
}
