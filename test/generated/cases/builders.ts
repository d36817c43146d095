import { RELEASES, type Release } from "../../../src/release.js";
import { SMALLEST } from "./smallest.js";

/** One JSON value that a type of some releases accepts or refuses. */
export interface WireCase {
  readonly name: string;
  readonly type: string;
  readonly releases: readonly Release[];
  readonly json: unknown;
  /** What the error says, for a value that is refused; absent for one that is accepted. */
  readonly refused?: RegExp;
}

/** Every release. */
export const ALL: readonly Release[] = RELEASES;
/** vllm-0.27 alone. */
export const OLD: readonly Release[] = ["vllm-0.27"];
/** vllm-0.31 alone. */
export const MIDDLE: readonly Release[] = ["vllm-0.31"];
/** vllm-0.33 alone. */
export const NEW: readonly Release[] = ["vllm-0.33"];
/** The releases whose layouts can be shared. */
export const SHARED: readonly Release[] = ["vllm-0.31", "vllm-0.33"];

/** A case that is accepted: the smallest value of a type with some properties changed. */
export function accept(releases: readonly Release[], type: string, name: string, changes: unknown): WireCase {
  return { name, type, releases, json: changed(type, changes) };
}

/** A value that is refused as it stands, not as a change of the smallest one. */
export function refuseWhole(
  releases: readonly Release[],
  type: string,
  name: string,
  json: unknown,
  refused: RegExp,
): WireCase {
  return { name, type, releases, json, refused };
}

/** A case that is refused: the smallest value of a type with some properties changed. */
export function refuse(
  releases: readonly Release[],
  type: string,
  name: string,
  changes: unknown,
  refused: RegExp,
): WireCase {
  return { ...accept(releases, type, name, changes), refused };
}

/** The smallest value of a type with some properties changed, or whatever is no object. */
function changed(type: string, changes: unknown): unknown {
  const smallest = SMALLEST[type];
  return isObject(smallest) && isObject(changes) ? { ...smallest, ...changes } : changes;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === "[object Object]";
}
