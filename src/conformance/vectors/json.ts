import { isMooncakeKvError } from "../../errors.js";
import { fromHex, toHex } from "../../wire/hex.js";
import type { JsonObject, JsonValue } from "./handler.js";

// Readers of vector input. A vector of another shape fails its line through the error they throw.

/** A member that must be a text. */
export function text(input: JsonObject, name: string): string {
  return must(input, name, (value): value is string => typeof value === "string");
}

/** A member that must be a number. */
export function number(input: JsonObject, name: string): number {
  return must(input, name, (value): value is number => typeof value === "number");
}

/** A number that may be null or absent. */
export function optionalNumber(input: JsonObject, name: string): number | undefined {
  return input[name] == null ? undefined : number(input, name);
}

/** A text that may be null or absent. */
export function optionalText(input: JsonObject, name: string): string | undefined {
  return input[name] == null ? undefined : text(input, name);
}

/** A member that must be a list. */
export function list<T extends JsonValue = JsonValue>(input: JsonObject, name: string): readonly T[] {
  return must(input, name, (value): value is readonly T[] => Array.isArray(value));
}

/** A list that may be null or absent. */
export function optionalList<T extends JsonValue = JsonValue>(
  input: JsonObject,
  name: string,
): readonly T[] | undefined {
  return input[name] == null ? undefined : list<T>(input, name);
}

/** A member that must be an object. */
export function object(input: JsonObject, name: string): JsonObject {
  return must(input, name, isObject);
}

/** Whether a JSON value is an object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A line's input in which whole numbers that are written as floats (4.0) are objects `{"float": "4.0"}`: Python tells
 * them from integers, `JSON.parse` does not.
 */
export function inputWithFloats(line: string): JsonObject {
  const marked = line.replace(/(?<=[:[,]\s*)(-?\d+\.0+)(?=\s*[,}\]])/g, '{"float":"$1"}');
  return object(JSON.parse(marked) as JsonObject, "input");
}

/** Bytes of a hex text. */
export function bytes(hex: string): Uint8Array {
  return fromHex(hex);
}

/** Hex of bytes. */
export function hex(value: Uint8Array): string {
  return toHex(value);
}

/** The outcome of one query of several: its value, or `{"error": ...}` when it threw an error of ours. */
export function outcome(run: () => JsonValue): JsonValue {
  try {
    return run();
  } catch (error) {
    if (!isMooncakeKvError(error)) throw error;
    return { error: { type: error.code, message: error.message } };
  }
}

function must<T extends JsonValue>(
  input: JsonObject,
  name: string,
  check: (value: JsonValue) => value is T,
): T {
  const value = input[name];
  if (value === undefined || !check(value))
    throw new TypeError(`the vector's ${name} is ${JSON.stringify(value)}`);
  return value;
}
