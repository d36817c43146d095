import { describe, MooncakeKvError } from "../../errors.js";

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1024,
  mb: 1024 ** 2,
  gb: 1024 ** 3,
};

/** What Python's `str.strip` and `\s` take for blank; JavaScript's own class is not the same. */
const BLANK = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const SIZE = new RegExp(`^${BLANK}([\\p{Nd}.]+)${BLANK}(gb|mb|kb|b)?${BLANK}$`, "u");
const ONLY_BLANK = new RegExp(`^${BLANK}$`);
const EDGES = new RegExp(`^${BLANK}|${BLANK}$`, "g");

/** `text` without blanks at its ends, as Python's `str.strip` cuts them. */
export function strip(text: string): string {
  return text.replace(EDGES, "");
}

/**
 * A size in bytes as vLLM reads it from Mooncake's config file: a number, which is cut to a whole one, or text with a
 * decimal number and optionally B, KB, MB or GB in either case (1 KB = 1,024). No other units, no sign, no exponent.
 * Computed in doubles, as there. Booleans count as 1 and 0.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for anything else.
 */
export function parseMooncakeSize(value: unknown, what: string = "size"): bigint {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isFinite(value)) return BigInt(Math.trunc(value));
  if (typeof value !== "string") throw sizeError(what, value, "is neither a number nor text");
  const text = value.toLowerCase();
  if (ONLY_BLANK.test(text)) throw sizeError(what, value, "is empty");
  const match = SIZE.exec(text);
  if (!match) throw sizeError(what, value, "has another form");
  const number = asciiDigits(match[1]!);
  if (!/^(\d+\.?\d*|\.\d+)$/.test(number)) throw sizeError(what, value, "has no number that can be read");
  const bytes = Number(number) * UNITS[match[2] ?? ""]!;
  if (!Number.isFinite(bytes)) throw sizeError(what, value, "is too large");
  return BigInt(Math.trunc(bytes));
}

/** Digits of any script as those of ASCII. They come in runs of ten, the zero first, and runs may touch. */
function asciiDigits(text: string): string {
  return text.replace(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0)!;
    let first = code;
    while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first--;
    return String((code - first) % 10);
  });
}

function sizeError(what: string, value: unknown, problem: string): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_CONFIG",
    `${what} is ${describe(value)}, which ${problem}; it is a number of bytes, or text such as "80GB", "64mb" or "1.5 GB"`,
    { option: what, value },
  );
}
