import { describe, MooncakeKvError } from "./errors.js";

/**
 * A float of Python. A number of JavaScript that is whole stands for an int, since `JSON.parse` does not tell 1.0 from 1;
 * whoever knows that it was written as 1.0 says so with this.
 */
export class PythonFloat {
  /** The number itself. */
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** How deep lists and dicts may lie in each other; no configuration comes near it. */
const DEEPEST = 100;
/** Floats from here on are written with an exponent, and whole numbers are no longer exact. */
const POSITIVE_EXPONENT = 16;
const NEGATIVE_EXPONENT = -4;

/**
 * Python's `str()` of a value from JSON: options that vLLM turns into text, whatever their type, end up in keys and in the
 * paths of sockets, where a different text finds nothing.
 *
 * | value | in Python |
 * |---|---|
 * | null, undefined | None |
 * | a bigint, a whole number up to 2^53 - 1 | int |
 * | another number, a `PythonFloat` | float |
 * | an array | list |
 * | a map, an object without members that are undefined | dict |
 *
 * What `JSON.parse` has lost can't be told here: give a bigint for an integer beyond 2^53 - 1, a `PythonFloat` for `1.0`,
 * and a map where names like `"7"` come after others, which an object sorts to its front. Which characters a list shows as
 * they are depends on Unicode: one that is younger than Node or the engine's Python may differ.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a value that is not of JSON, or one that contains itself.
 */
export function pythonText(value: unknown): string {
  return typeof value === "string" ? value : pythonRepr(value);
}

/**
 * Python's `repr()` of a value from JSON: as `pythonText`, but a string has quotes.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `pythonText`.
 */
export function pythonRepr(value: unknown): string {
  return repr(value, 0);
}

function repr(value: unknown, depth: number): string {
  switch (typeof value) {
    case "undefined":
      return "None";
    case "boolean":
      return value ? "True" : "False";
    case "string":
      return quoted(value);
    case "bigint":
      return String(value);
    case "number":
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : floatText(value);
    case "object":
      if (value === null) return "None";
      if (value instanceof PythonFloat) return floatText(value.value);
      return compound(value, depth);
    default:
      throw textError(`${describe(value)} is no value of JSON, and has no text of Python`, value);
  }
}

function compound(value: object, depth: number): string {
  if (depth >= DEEPEST) throw textError(`lists and dicts lie more than ${DEEPEST} deep in each other`, value);
  const inner = (item: unknown): string => repr(item, depth + 1);
  // Array.from, because a hole is None and join would leave it out.
  if (Array.isArray(value)) return `[${Array.from(value as unknown[], inner).join(", ")}]`;
  const isMap = value instanceof Map;
  if (!isMap && Object.prototype.toString.call(value) !== "[object Object]")
    throw textError(`${describe(value)} is no value of JSON, and has no text of Python`, value);
  const entries = isMap
    ? [...(value as ReadonlyMap<unknown, unknown>)]
    : Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${entries.map(([name, member]) => `${inner(name)}: ${inner(member)}`).join(", ")}}`;
}

/** The shortest digits that give the number again, as in JavaScript, but laid out as Python does. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (!Number.isFinite(value)) return `${sign}inf`;
  const [mantissa = "", exponentText = ""] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(exponentText);
  if (exponent >= POSITIVE_EXPONENT || exponent < NEGATIVE_EXPONENT) {
    const power = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${power}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};
/** What Python does not show as it is: controls, formats, surrogates, private and unassigned ones, all spaces but one. */
const NOT_PRINTABLE = /(?! )[\p{C}\p{Z}]/u;

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let inside = "";
  for (const character of text) {
    if (character === quote) inside += `\\${quote}`;
    else
      inside += SHORT_ESCAPES[character] ?? (NOT_PRINTABLE.test(character) ? escaped(character) : character);
  }
  return quote + inside + quote;
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

function textError(message: string, value: unknown): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, { value });
}
