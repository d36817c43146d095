import { type Command, InvalidArgumentError, Option } from "commander";
import { RELEASES } from "../release.js";
import { hexBytes } from "./input/members.js";

// Options that several commands share: one spelling and one meaning everywhere.

/** `--json` */
export interface JsonOption {
  readonly json?: true | undefined;
}

/** `--file` */
export interface FileOption {
  readonly file?: string | undefined;
}

/** `--json`: the same as one JSON value. */
export function addJsonOption(command: Command): Command {
  return command.option("--json", "print JSON");
}

/** `--file`: input from a file. */
export function addFileOption(command: Command, what: string): Command {
  return command.option("-f, --file <path>", `read ${what} from a file; - is stdin`);
}

/** `--release`: a vLLM release. */
export function releaseOption(): Option {
  return new Option("--release <name>", "vLLM release of the engine").choices(RELEASES);
}

/** An option whose value is a whole number of at least `minimum`, and of at most `maximum`. */
export function wholeOption(
  flags: string,
  description: string,
  minimum: number = 0,
  maximum: number = Number.MAX_SAFE_INTEGER,
): Option {
  return new Option(flags, description).argParser((text: string) => {
    const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value) || value < minimum || value > maximum)
      throw new InvalidArgumentError(
        maximum === Number.MAX_SAFE_INTEGER
          ? `It must be a whole number of ${minimum} or more.`
          : `It must be a whole number of ${minimum} to ${maximum}.`,
      );
    return value;
  });
}

/** An option whose value is bytes as hex. */
export function hexOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text: string) => {
    const bytes = hexBytes(text);
    if (bytes === undefined || bytes.length === 0) throw new InvalidArgumentError("It must be hex digits.");
    return bytes;
  });
}
