import type { JsonObject } from "../vectors/handler.js";
import type { ClientMemory, Place } from "./client-memory.js";
import type { Read, Written } from "./observed.js";
import { sha256 } from "./pattern.js";
import type { ReplicaShown } from "./python-calls.js";

/** Data of this size is remembered by its hash even where no seed says what it is. */
const HASHED_AT_ONCE = 4 << 20;

/** What a read left in its destination, as the recordings say it. */
export function readOf(row: readonly Place[], code: number): JsonObject {
  const parts = row.map(({ bytes }) => bytes);
  if (parts.some((part) => part === undefined)) return {};
  const bytes = parts.length === 1 ? parts[0]! : Uint8Array.from(Buffer.concat(parts as Uint8Array[]));
  const clean = (part: Uint8Array): boolean => part.every((byte) => byte === 0xee);
  if (code < 0) return { untouched: clean(bytes) };
  const data = sha256(bytes.subarray(0, code));
  return bytes.length > code ? { data, tail_untouched: clean(bytes.subarray(code)) } : { data };
}

/** The reads of a call that touched nothing. */
export function untouched(places: readonly Place[]): JsonObject[] {
  return places.map(() => ({ untouched: true }));
}

/** A key that is read into memory. */
export function intoRead(key: Uint8Array, row: readonly Place[], memory: ClientMemory, exact: boolean): Read {
  return {
    key,
    kind: "into",
    capacity: row.reduce((sum, { size }) => sum + size, 0),
    exact,
    foreign: row.some((place) => memory.isForeign(place)),
    visible: row.every(({ bytes }) => bytes !== undefined),
  };
}

/** A key that is looked at. */
export function plainRead(key: Uint8Array, kind: Read["kind"]): Read {
  return { key, kind, capacity: 0, exact: false, foreign: false, visible: true };
}

/** An object whose bytes the client owns. */
export function ownBytes(key: Uint8Array, size: number, data: () => string, code: number): Written {
  return { key, size, upsert: false, foreign: false, data, code };
}

/** An object that is gathered from places; `hash`: whether its bytes are worth remembering. */
export function writtenRow(
  key: Uint8Array,
  row: readonly Place[],
  memory: ClientMemory,
  upsert: boolean,
  code: number,
  hash = true,
): Written {
  const size = row.reduce((sum, place) => sum + place.size, 0);
  const parts = row.map(({ bytes }) => bytes);
  const known = hash && size <= HASHED_AT_ONCE && parts.every((part) => part !== undefined);
  const data = known ? sha256(...(parts as Uint8Array[])) : undefined;
  return {
    key,
    size,
    upsert,
    foreign: row.some((place) => memory.isForeign(place)),
    data: data === undefined ? undefined : () => data,
    code,
  };
}

/** A replica as the recordings show it. */
export function replicaJson({ status, memory, size }: ReplicaShown): JsonObject {
  return { status, memory, size: Number(size) };
}

/** Existence of many keys in short. */
export function summary(rcs: readonly number[]): JsonObject {
  const ones = rcs.filter((rc) => rc === 1).length;
  const runs: [number, number][] = [];
  for (const rc of rcs) {
    const last = runs.at(-1);
    if (last?.[0] === rc) last[1]++;
    else runs.push([rc, 1]);
  }
  return { n: rcs.length, ones, zeros: rcs.filter((rc) => rc === 0).length, runs };
}
