import type { Release } from "../../release.js";

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** What a handler may know besides the input of its line. */
export interface VectorContext {
  /** The release that the line is checked for. */
  readonly release: Release;
  /** The id of the line; for messages only, never to decide by. */
  readonly id: string;
}

/**
 * Answers one op of a golden vector file: returns what the file calls `expected`, or throws where the file has an
 * `error`.
 */
export type VectorHandler = (input: JsonObject, context: VectorContext) => JsonValue | Promise<JsonValue>;

/** Handlers by op name. */
export type VectorHandlers = Readonly<Record<string, VectorHandler>>;
