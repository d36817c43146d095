import type { EventEmitter } from "node:events";
import { Readable, Writable } from "node:stream";
import type { CliIo } from "../../../src/cli/io.js";
import { runCli } from "../../../src/cli/run-cli.js";

/** What one run of the command line left behind. */
export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The surroundings of a run; an empty stdin and an empty environment where nothing is said. */
export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether all three streams claim to be a terminal. */
  readonly terminal?: boolean;
  /** Where signals come from. */
  readonly signals?: EventEmitter;
}

/** Runs the command line in this process. */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { stdin = "", env = {}, terminal = false, signals } = options;
  const [stdout, stderr] = [new Collector(), new Collector()];
  const input = Readable.from([Buffer.from(stdin)], { objectMode: false });
  const io: CliIo = { stdin: input, stdout, stderr, env, signals };
  if (terminal)
    for (const stream of [input, stdout, stderr]) Object.assign(stream, { isTTY: true, columns: 100 });
  const exitCode = await runCli(argv, io);
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** `run` with `--json`, and the value it printed. */
export async function runJson<T = Record<string, unknown>>(
  argv: readonly string[],
  options: RunOptions = {},
): Promise<{ readonly exitCode: number; readonly value: T }> {
  const { exitCode, stdout } = await run([...argv, "--json"], options);
  if (!/^[^\n]*\n$/.test(stdout)) throw new Error(`not one line of JSON: ${stdout}`);
  return { exitCode, value: JSON.parse(stdout) as T };
}

class Collector extends Writable {
  text = "";

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.text += Buffer.from(chunk).toString("utf8");
    // Slower than the writer, as a pipe may be.
    setImmediate(done);
  }
}
