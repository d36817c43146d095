import type { JsonObject, JsonValue } from "../vectors/handler.js";
import type { ClientMemory, Place } from "./client-memory.js";
import { fillPattern } from "./pattern.js";

/** Pairs of seed and size. */
export function pairs(value: JsonValue | undefined): (readonly [seed: number, size: number])[] {
  return (value as readonly (readonly [number, number])[]).map(([seed, size]) => [seed, size]);
}

/** A list of numbers. */
export function numbers(value: JsonValue | undefined): number[] {
  return (value as readonly number[]).map(Number);
}

/** `offs`: a list, or base and step. */
export function offsetList(value: JsonValue | undefined, count: number): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  const { base, step } = value as { base: number; step: number };
  return Array.from({ length: count }, (_, i) => base + i * step);
}

/** `sizes`: a list, or one for all. */
export function sizeList(value: JsonValue | undefined, count: number): number[] {
  return typeof value === "number" ? Array.from({ length: count }, () => value) : numbers(value);
}

/**
 * The memory of `segs`. `all_sizes` gives the sizes instead: undefined when they are not as many as the pointers; for a
 * read, more of them than pointers are ignored.
 */
export function segmentRows(step: JsonObject, memory: ClientMemory, read: boolean): Place[][] | undefined {
  const rows = step["segs"] as readonly (readonly (readonly [JsonValue, number])[])[];
  const sizes = step["all_sizes"] as readonly (readonly number[])[] | undefined | null;
  if (sizes) {
    if (sizes.length !== rows.length) return undefined;
    for (const [i, row] of rows.entries()) {
      const wanted = sizes[i]!.length;
      if (read ? wanted < row.length : wanted !== row.length) return undefined;
    }
  }
  return rows.map((row, i) => row.map(([where, size], s) => memory.place(where, sizes?.[i]?.[s] ?? size)));
}

/** Fills a place with a pattern, where it can be reached. */
export function fillPlace({ bytes }: Place, seed: number): void {
  if (bytes) fillPattern(bytes, seed);
}

/** What the recordings do to every destination before a read. */
export function clear(places: readonly Place[]): void {
  for (const { bytes } of places) bytes?.fill(0xee);
}
