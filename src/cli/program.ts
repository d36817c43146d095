import { Command } from "commander";
import { describe } from "../errors.js";
import type { CommandContext } from "./command.js";
import { didYouMean } from "./nearest.js";
import { packageVersion } from "./package-root.js";
import { COMMANDS, type CommandEntry, type LazyCommand } from "./registry.js";
import { UsageError } from "./usage-error.js";

const DESCRIPTION =
  "LLM KV caches in a Mooncake Store: the hashes, keys, chunks and memory layouts of vLLM, byte for byte.";

const AFTER_HELP = `
Run mooncake-kv <command> --help for the options of a command. Most commands read arguments, --file or stdin, and
print JSON with --json. Exit status: 0 done, 1 the operation failed, 2 bad input.`;

/** Where commander writes: collected by the caller, since commander can't wait for a slow reader. */
export interface ProgramWriters {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  /** Told which command is about to run. */
  readonly onCommand: (command: Command) => void;
}

/**
 * The command tree for one argument list. All commands are in it by name and summary; only the one that `argv`
 * addresses is loaded.
 *
 * @throws UsageError when it addresses a command that there is not.
 */
export async function createProgram(
  argv: readonly string[],
  context: CommandContext,
  { onCommand, ...writers }: ProgramWriters,
): Promise<Command> {
  const columns = () => context.io.stdout.columns ?? 80;
  const program = new Command("mooncake-kv")
    .description(DESCRIPTION)
    .version(packageVersion(), "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", AFTER_HELP)
    .exitOverride()
    .hook("preAction", (_program, command) => onCommand(command))
    .configureOutput({
      ...writers,
      outputError: () => {},
      getOutHelpWidth: columns,
      getErrHelpWidth: columns,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  const addressed = addressedCommand(argv);
  for (const entry of COMMANDS) await addEntry(program, entry, addressed, context);
  return program;
}

async function addEntry(
  parent: Command,
  entry: CommandEntry,
  addressed: LazyCommand | undefined,
  context: CommandContext,
): Promise<void> {
  const command = parent.command(entry.name).summary(entry.summary);
  command.description(`${entry.summary.charAt(0).toUpperCase()}${entry.summary.slice(1)}.`);
  if ("commands" in entry) {
    command.helpCommand(false);
    for (const inner of entry.commands) await addEntry(command, inner, addressed, context);
  } else if (entry === addressed) (await entry.load()).define(command, context);
  else
    command.action(() => {
      throw new UsageError(`options go behind the command: mooncake-kv ${entry.name} [options]`);
    });
}

/** The command that the first words name; undefined where they name none or only a group. */
function addressedCommand(argv: readonly string[]): LazyCommand | undefined {
  const entry = entryOf(argv[0], COMMANDS, "mooncake-kv");
  if (entry === undefined || "load" in entry) return entry;
  return entryOf(argv[1], entry.commands, `mooncake-kv ${entry.name}`);
}

/** @throws UsageError for a word that is no option and no name. */
function entryOf<T extends CommandEntry>(
  word: string | undefined,
  entries: readonly T[],
  parent: string,
): T | undefined {
  if (word === undefined || word.startsWith("-")) return undefined;
  const names = entries.map(({ name }) => name);
  const found = entries[names.indexOf(word)];
  if (found === undefined)
    throw new UsageError(
      `unknown command ${describe(word)}${didYouMean(word, names) || `; ${parent} --help lists what there is`}`,
      { command: word, known: names },
    );
  return found;
}
