import { describe } from "../errors.js";
import type { Release } from "../release.js";
import { LONGEST_MS } from "../store/shared/deadline.js";
import { configChecks, configError } from "./errors.js";

/**
 * Refuses options that are no object, and those with a name that nobody knows: most are misspelt.
 *
 * @param where whose options they are, for the message.
 * @throws MooncakeKvError `ERR_CONFIG`.
 */
export function checkNames(where: string, options: unknown, names: readonly string[]): void {
  configChecks.names(where, options as object, Object.fromEntries(names.map((name) => [name, 1])));
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
  return configChecks.release(value);
}

/** One of some words. @throws MooncakeKvError `ERR_CONFIG`. */
export function wordOption<Word extends string>(name: string, value: Word, words: readonly Word[]): Word {
  return configChecks.word(name, value, words);
}
