import { describe, MooncakeKvError } from "../../errors.js";

/** An option of `openStore` that can't be what it is: `ERR_CONFIG` with the name, the value and what would be right. */
export function optionError(option: string, value: unknown, expected: string): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", `${option} is ${describe(value)}; it is ${expected}`, {
    option,
    value,
  });
}

/** A whole number in [`least`, `most`], which a URI writes in digits. @throws MooncakeKvError `ERR_CONFIG` otherwise. */
export function wholeOption(
  option: string,
  value: unknown,
  {
    least = 1,
    most,
    unit = "",
  }: { readonly least?: number | undefined; readonly most: number; readonly unit?: string | undefined },
): number {
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < least || number > most)
    throw optionError(option, value, `a whole number from ${least} to ${most}${unit}`);
  return number;
}

/** Text without NUL; undefined stays undefined. @throws MooncakeKvError `ERR_CONFIG` for anything else. */
export function textOption(option: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && !value.includes("\0")) return value;
  throw optionError(option, value, "text without NUL");
}

/** One of some words. @throws MooncakeKvError `ERR_CONFIG` for anything else. */
export function wordOption<Word extends string>(
  option: string,
  value: unknown,
  words: readonly Word[],
): Word {
  const word = words.find((known) => known === value);
  if (word !== undefined) return word;
  throw optionError(option, value, words.map((known) => `"${known}"`).join(" or "));
}
