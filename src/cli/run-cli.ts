import { type Command, CommanderError } from "commander";
import type { CommandContext } from "./command.js";
import { type CliIo, processIo } from "./io.js";
import { inTermsOfOptions } from "./option-terms.js";
import { Output, OutputClosed } from "./output.js";
import { createProgram } from "./program.js";
import { reportError } from "./report-error.js";
import { UsageError } from "./usage-error.js";

/** What commander throws when it has shown help or the version. */
const SHOWN: readonly string[] = ["commander.helpDisplayed", "commander.version"];

/**
 * Runs the command line once.
 *
 * @param argv the arguments after the name of the program.
 * @param io the surroundings; those of the process where left out.
 * @returns the exit status: 0 done, 1 the operation failed, 2 bad input. Never rejects.
 */
export async function runCli(argv: readonly string[], io: CliIo = processIo()): Promise<number> {
  const context: CommandContext = {
    io,
    env: io.env,
    stdout: new Output(io.stdout),
    stderr: new Output(io.stderr),
    exitCode: 0,
  };
  try {
    const exitCode = await runReported(argv, context);
    await context.stdout.flush();
    return exitCode;
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    return await reportError(error, context, false).catch(() => 1);
  } finally {
    await context.stderr.flush().catch(() => {});
    context.stdout.detach();
    context.stderr.detach();
  }
}

async function runReported(argv: readonly string[], context: CommandContext): Promise<number> {
  try {
    return await parse(argv, context);
  } catch (error) {
    if (error instanceof OutputClosed) throw error;
    return reportError(error, context, wantsJson(argv));
  }
}

async function parse(words: readonly string[], context: CommandContext): Promise<number> {
  // commander's own help command knows one word only; key build has two.
  const argv = words[0] === "help" ? [...words.slice(1), "--help"] : words;
  let [out, err] = ["", ""];
  let running: Command | undefined;
  const program = await createProgram(argv, context, {
    writeOut: (text) => {
      out += text;
    },
    writeErr: (text) => {
      err += text;
    },
    onCommand: (command) => {
      running = command;
    },
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return context.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw inTermsOfOptions(error, running);
    if (SHOWN.includes(error.code)) return 0;
    // A command is missing: commander has shown what there is.
    if (error.code === "commander.help") return 2;
    throw usageError(error);
  } finally {
    await context.stdout.write(out);
    await context.stderr.write(err);
  }
}

function usageError({ message }: CommanderError): UsageError {
  return new UsageError(message.replace(/^error: /, ""));
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}
