import type { JsonObject, JsonValue } from "./handler.js";

/** Where two JSON values differ first. */
export interface Difference {
  /** For example `$.chunks[3][1]`. */
  readonly path: string;
  readonly expected: JsonValue;
  readonly actual: JsonValue;
}

/** Stands for a value that is absent. */
const ABSENT = "(absent)";

/**
 * The first difference between what a vector expects and what was computed; undefined when there is none. A member
 * `error` matches any error, since Python's exceptions are not ours; members named `shares_*` tell about Python object identity and don't count. A
 * computed member whose name starts with `?` counts only where the vector has it, without the `?`.
 */
export function firstDifference(
  expected: JsonValue,
  actual: JsonValue,
  path: string = "$",
): Difference | undefined {
  if (Array.isArray(expected) && Array.isArray(actual)) return arrayDifference(expected, actual, path);
  if (isObject(expected) && isObject(actual)) return objectDifference(expected, actual, path);
  return Object.is(expected, actual) ? undefined : { path, expected, actual };
}

function arrayDifference(
  expected: readonly JsonValue[],
  actual: readonly JsonValue[],
  path: string,
): Difference | undefined {
  for (let i = 0; i < Math.max(expected.length, actual.length); i++) {
    const difference = memberDifference(expected[i], actual[i], `${path}[${i}]`);
    if (difference) return difference;
  }
  return undefined;
}

function objectDifference(expected: JsonObject, actual: JsonObject, path: string): Difference | undefined {
  for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    if (name.startsWith("shares_") || name.startsWith("?")) continue;
    if (name === "error" && isObject(expected[name] ?? null) && isObject(actual[name] ?? null)) continue;
    const difference = memberDifference(
      expected[name],
      Object.hasOwn(actual, name) ? actual[name] : actual[`?${name}`],
      `${path}.${name}`,
    );
    if (difference) return difference;
  }
  return undefined;
}

function memberDifference(
  expected: JsonValue | undefined,
  actual: JsonValue | undefined,
  path: string,
): Difference | undefined {
  if (expected === undefined || actual === undefined)
    return {
      path,
      expected: expected === undefined ? ABSENT : expected,
      actual: actual === undefined ? ABSENT : actual,
    };
  return firstDifference(expected, actual, path);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
