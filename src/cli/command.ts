import type { Command } from "commander";
import type { CliIo } from "./io.js";
import type { Output } from "./output.js";

/** What a command works with while it runs. */
export interface CommandContext extends Pick<CliIo, "env"> {
  readonly io: CliIo;
  readonly stdout: Output;
  readonly stderr: Output;
  /** What the process ends with when nothing is thrown: 0, or 1 where the result itself is a failure. */
  exitCode: number;
}

/** A command file exports one of these as `define`: it adds arguments, options, help and action to `command`. */
export type DefineCommand = (command: Command, context: CommandContext) => void;

/** What a command file exports. */
export interface CommandModule {
  readonly define: DefineCommand;
}
