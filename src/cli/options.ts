import { type Command, InvalidArgumentError, Option } from "commander";
import { HASH_ALGORITHMS, type HashAlgorithm } from "../hash/algorithm.js";
import { RELEASES } from "../release.js";
import { hexBytes } from "./input/members.js";
import { didYouMean } from "./nearest.js";

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

/** What became of values that `--prefix-caching-hash-algo` had once. */
const EARLIER_ALGORITHMS: Readonly<Record<string, string>> = {
  sha256_cbor_64bit:
    "It is the early name of sha256_cbor, which kept 64 bits of each hash; an engine that says sha256_cbor has all 256, in other keys.",
  builtin: "It was Python's own hash, in early releases; nobody but the process itself can compute that.",
};

/** `--algorithm`: how the engine hashes. */
export function algorithmOption(): Option {
  return new Option("--algorithm <name>", "--prefix-caching-hash-algo of the engine")
    .choices(HASH_ALGORITHMS)
    .argParser((text: string): HashAlgorithm => {
      const found = HASH_ALGORITHMS.find((algorithm) => algorithm === text);
      if (found !== undefined) return found;
      const word = Object.hasOwn(EARLIER_ALGORITHMS, text) ? `${EARLIER_ALGORITHMS[text]} ` : "";
      const near = word === "" ? didYouMean(text, HASH_ALGORITHMS) : "";
      throw new InvalidArgumentError(
        `${word}Allowed choices are ${HASH_ALGORITHMS.join(", ")}${near === "" ? "." : near}`,
      );
    });
}

/** An option whose value is a whole number from `minimum` to `maximum`. */
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
          : `It must be a whole number from ${minimum} to ${maximum}.`,
      );
    return value;
  });
}

/** Ranks and groups of the largest engine that a command takes for real; a larger number is a slip of the keyboard. */
export const MOST_RANKS = 65_536;

/** An option whose value is a rank, or a group: from 0. */
export function rankOption(flags: string, description: string): Option {
  return wholeOption(flags, description, 0, MOST_RANKS - 1);
}

/** An option whose value is a number of ranks, from 1. */
export function ranksOption(flags: string, description: string): Option {
  return wholeOption(flags, description, 1, MOST_RANKS);
}

/** An option whose value is bytes as hex. */
export function hexOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text: string) => {
    const bytes = hexBytes(text);
    if (bytes === undefined || bytes.length === 0) throw new InvalidArgumentError("It must be hex digits.");
    return bytes;
  });
}
