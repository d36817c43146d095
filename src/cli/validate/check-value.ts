import type { AnyCodec } from "../../../generated/typescript/by-name.js";
import { isMooncakeKvError } from "../../errors.js";

/** Where a value stands in its input. */
export interface ValuePlace {
  /** Which of several values, from 0. */
  readonly index: number;
  /** Its line, from 1, where the input has one value a line. */
  readonly line?: number | undefined;
  /** The same for a person: `line 3`, `[2]`, or nothing where there is one value. */
  readonly where: string;
}

/** A value to check. */
export interface InputValue extends ValuePlace {
  readonly value: unknown;
}

/** A value that is wrong. */
export interface Invalid extends ValuePlace {
  /** What is wrong, in one sentence. */
  readonly problem: string;
  /** Path, value and rule, where the schema says them. */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** What is wrong with a value; undefined when nothing is. */
export function checkValue(codec: AnyCodec, { value, ...place }: InputValue): Invalid | undefined {
  try {
    codec.fromJson(value);
    return undefined;
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    return { ...place, problem: error.message, details: error.details };
  }
}
