import type { JsonValue } from "./json-value.js";

/** Defects of vLLM that its vectors record and that this package does not have. */
export type DeviationName =
  | "empty-load"
  | "sub-batch-stop"
  | "short-read"
  | "lookup-death"
  | "readmit-same-step"
  | "offset-skip"
  | "report-mode";

/**
 * What a handler returns for a record that shows one of vLLM's known defects: the runner compares `actual` with what
 * would be right instead of what was recorded, and counts the record under `name`. A handler must recognise such a
 * record by what it contains, never by its id.
 */
export class Deviation {
  readonly name: DeviationName;
  /** What a correct implementation does. */
  readonly right: JsonValue;
  /** What this one did. */
  readonly actual: JsonValue;

  constructor(name: DeviationName, right: JsonValue, actual: JsonValue) {
    this.name = name;
    this.right = right;
    this.actual = actual;
  }
}
