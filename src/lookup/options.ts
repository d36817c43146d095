import { describe } from "../errors.js";
import { DEFAULT_RELEASE, RELEASES, type Release } from "../release.js";
import { LONGEST_MS } from "../store/shared/deadline.js";
import { configError } from "./errors.js";

/**
 * Refuses options that are no object, and those with a name that nobody knows: most are misspelt.
 *
 * @param where whose options they are, for the message.
 * @throws MooncakeKvError `ERR_CONFIG`.
 */
export function checkNames(where: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== "object" || options === null)
    throw configError(`the options of ${where} are ${describe(options)}; they must be an object`, {
      options,
    });
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw configError(`${where} has no option ${describe(unknown)}; there are ${names.join(", ")}`, {
      option: unknown,
    });
}

/** A whole number of an option, at least 1. @throws MooncakeKvError `ERR_CONFIG`. */
export function wholeOption(
  name: string,
  value: number | undefined,
  otherwise: number,
  most: number = LONGEST_MS,
): number {
  if (value === undefined) return otherwise;
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw configError(`${name} is ${describe(value)}; it is a whole number of 1 to ${most}`, { [name]: value });
}

/** A release, or the newest. @throws MooncakeKvError `ERR_CONFIG`. */
export function releaseOption(value: Release | undefined): Release {
  return value === undefined ? DEFAULT_RELEASE : wordOption("release", value, RELEASES);
}

/** One of some words. @throws MooncakeKvError `ERR_CONFIG`. */
export function wordOption<Word extends string>(name: string, value: Word, words: readonly Word[]): Word {
  if (words.includes(value)) return value;
  throw configError(`${name} is ${describe(value)}; it is one of ${words.join(", ")}`, { [name]: value });
}
