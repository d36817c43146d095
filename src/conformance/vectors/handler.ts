import type { Release } from "../../release.js";
import type { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue } from "./json-value.js";

export type { JsonObject, JsonValue } from "./json-value.js";

/** What a handler may know besides the input of its line. */
export interface VectorContext {
  /** The release that the line is checked for. */
  readonly release: Release;
  /** The id of the line; for messages only, never to decide by. */
  readonly id: string;
  /** The line as text, for the few inputs that JSON numbers can't tell apart, such as 4 and 4.0. */
  readonly text: string;
  /**
   * What the line records. Only for recognising a record that shows a known defect of vLLM, see `Deviation`; what is
   * computed must not depend on it.
   */
  readonly recorded: { readonly expected?: JsonValue | undefined; readonly error?: JsonValue | undefined };
}

/**
 * Answers one op of a golden vector file: returns what the file calls `expected`, or throws where the file has an
 * `error`. A record of a known defect of vLLM gives a `Deviation`.
 */
export type VectorHandler = (
  input: JsonObject,
  context: VectorContext,
) => JsonValue | Deviation | Promise<JsonValue | Deviation>;

/** Handlers by op name. */
export type VectorHandlers = Readonly<Record<string, VectorHandler>>;
