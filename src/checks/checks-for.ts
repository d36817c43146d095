import { describe, type ErrorCode, MooncakeKvError } from "../errors.js";
import { DEFAULT_RELEASE, RELEASES, type Release } from "../release.js";

/** The first number that does not fit into 64 bits. */
export const UINT64_END: bigint = 1n << 64n;

/** Makes an error of one code: what was wrong, the same as data, and what it came from. */
export type ErrorMaker = (
  message: string,
  details?: Record<string, unknown>,
  options?: ErrorOptions,
) => MooncakeKvError;

/** The names that an object may have. Written as a record, so that the compiler misses none and knows each. */
export type OptionNames<Options extends object> = { readonly [Name in keyof Required<Options>]: 1 };

/** Checks that all throw one code, with a message that names the value and says what would be right. */
export interface Checks {
  /** The error itself, for what no other check says. */
  readonly error: ErrorMaker;
  /** A whole number in [`least`, `most`] that a double holds exactly. */
  whole(name: string, value: unknown, least?: number, most?: number): number;
  /** A bigint in [0, 2^64). */
  uint64(name: string, value: unknown): bigint;
  /** One of some words. */
  word<Word extends string>(name: string, value: unknown, words: readonly Word[]): Word;
  /** True or false. */
  flag(name: string, value: unknown): boolean;
  /** A release; the newest for undefined. */
  release(value: Release | undefined): Release;
  /**
   * An object without a name that nobody knows: most of these are misspelt. What is undefined counts as left out.
   *
   * @param where whose object it is, for the message.
   */
  names<Options extends object>(where: string, options: Options, names: OptionNames<Options>): Options;
}

/** The checks of one error code. */
export function checksFor(code: ErrorCode): Checks {
  const error: ErrorMaker = (message, details = {}, options) =>
    new MooncakeKvError(code, message, details, options);
  return {
    error,
    whole: (name, value, least, most) => checkWhole(error, name, value, least, most),
    uint64: (name, value) => {
      if (typeof value === "bigint" && value >= 0n && value < UINT64_END) return value;
      throw error(`${name} is ${describe(value)}; it must be a bigint in [0, 2^64)`, { name, value });
    },
    word: (name, value, words) => checkWord(error, name, value, words),
    flag: (name, value) => {
      if (typeof value === "boolean") return value;
      throw error(`${name} is ${describe(value)}; it must be true or false`, { name, value });
    },
    release: (value) =>
      value === undefined ? DEFAULT_RELEASE : checkWord(error, "release", value, RELEASES),
    names: (where, options, names) => checkNames(error, where, options, names),
  };
}

// The checks by themselves are for the few modules of which a page may take one and nothing else.

/** `whole` of `Checks`. @throws what `error` makes. */
export function checkWhole(
  error: ErrorMaker,
  name: string,
  value: unknown,
  least: number = Number.MIN_SAFE_INTEGER,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number;
  const range =
    most < Number.MAX_SAFE_INTEGER
      ? ` of ${least} to ${most}`
      : least > Number.MIN_SAFE_INTEGER
        ? ` of ${least} or more`
        : "";
  throw error(`${name} is ${describe(value)}; it must be a whole number${range}`, { name, value });
}

/** `word` of `Checks`. @throws what `error` makes. */
export function checkWord<Word extends string>(
  error: ErrorMaker,
  name: string,
  value: unknown,
  words: readonly Word[],
): Word {
  if (words.includes(value as Word)) return value as Word;
  throw error(`${name} is ${describe(value)}; it is one of ${words.join(", ")}`, { name, value });
}

/** `names` of `Checks`. @throws what `error` makes. */
export function checkNames<Options extends object>(
  error: ErrorMaker,
  where: string,
  options: Options,
  names: OptionNames<Options>,
): Options {
  if (typeof options !== "object" || options === null)
    throw error(`the options of ${where} are ${describe(options)}; they must be an object`, { options });
  for (const name of Object.keys(options))
    if (!Object.hasOwn(names, name))
      throw error(`${where} has no option ${describe(name)}; there are ${Object.keys(names).join(", ")}`, {
        option: name,
      });
  return options;
}
