import type { Command } from "commander";
import { isMooncakeKvError, MooncakeKvError } from "../errors.js";
import { UsageError } from "./usage-error.js";

/** What else says one thing in a program and another at a terminal. */
const OTHER_WORDS: readonly [words: RegExp, own: string][] = [
  [/\bnumHashLookaheadTokens\b/g, "--lookahead"],
  [/\bmust be a Uint8Array of\b/g, "must be hex of"],
];

/**
 * An error of the SDK as somebody at a terminal knows it: members that are options of the command stand under the names of
 * these, `noneHash` as `--none-hash`. Other errors come back as they are.
 */
export function inOptions(error: unknown, program: Command, argv: readonly string[]): unknown {
  if (!isMooncakeKvError(error) || error instanceof UsageError) return error;
  let message = error.message;
  for (const option of addressed(program, argv).options) {
    const member = option.attributeName();
    if (option.long === undefined || option.long === null) continue;
    // A single word may be prose; at the beginning, or before its value, it is the member.
    const pattern = /[A-Z]/.test(member)
      ? new RegExp(`(?<![\\w.-])${member}(?![\\w])`, "g")
      : new RegExp(`^${member}(?= (?:is|[-"\\d]))`, "g");
    message = message.replace(pattern, option.long);
  }
  for (const [words, own] of OTHER_WORDS) message = message.replace(words, own);
  if (message === error.message) return error;
  return new MooncakeKvError(error.code, message, { ...error.details }, { cause: error });
}

/** The command that the words before the first option name. */
function addressed(program: Command, argv: readonly string[]): Command {
  let command = program;
  for (const word of argv) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) return command;
    command = next;
  }
  return command;
}
