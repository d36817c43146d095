import type { Readable, Writable } from "node:stream";

/** A stream that may be a terminal. */
export type MaybeTerminal<T> = T & {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
};

/** The surroundings of one run of the command line: those of the process, or a test's own. */
export interface CliIo {
  readonly stdin: MaybeTerminal<Readable>;
  readonly stdout: MaybeTerminal<Writable>;
  readonly stderr: MaybeTerminal<Writable>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where signals to the process are heard; undefined where there are none. */
  readonly signals?: Pick<NodeJS.EventEmitter, "once" | "off"> | undefined;
}

/** The streams and the environment of this process. stdin is opened only when it is read. */
export function processIo(): CliIo {
  return {
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signals: process,
  };
}
