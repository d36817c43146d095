import { UsageError } from "./usage-error.js";

/** Nesting beyond which a value is cut off: error details may hold whatever a caller passed in. */
const MAX_DEPTH = 100;

/**
 * A value in a form that JSON can carry without loss: 64-bit integers as decimal texts, bytes as lower-case hex,
 * other typed arrays, sets and maps as arrays, errors as their message.
 */
export function jsonSafe(value: unknown, depth: number = 0): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "function" || typeof value === "symbol") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "…";
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex");
  if (value instanceof Error) return value.message;
  const next = (item: unknown) => jsonSafe(item, depth + 1);
  if (Array.isArray(value)) return value.map(next);
  if (value instanceof Map || value instanceof Set) return Array.from(value, next);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return Array.from(value as unknown as ArrayLike<number | bigint>, next);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, next(item)]));
}

/** `jsonSafe` as text on one line. @throws UsageError for more than one text can hold. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(jsonSafe(value));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError("the result is too large for one JSON text; ask for less, or leave --json out");
  }
}
