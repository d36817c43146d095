import { type AnyCodec, loadCodec, loadCodecs } from "../../../generated/typescript/by-name.js";
import { describe, isMooncakeKvError, MooncakeKvError } from "../../errors.js";
import type { Release } from "../../release.js";
import { nearest } from "../nearest.js";

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

/**
 * The codec of a type.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message says what may be meant, or lists what there is.
 */
export async function wireCodec(release: Release, type: string): Promise<AnyCodec> {
  const names = Object.keys(await loadCodecs(release));
  const meant = names.includes(type) ? undefined : nearest(type, names);
  try {
    return await loadCodec(release, type);
  } catch (cause) {
    if (!isMooncakeKvError(cause) || meant === undefined) throw cause;
    const message = cause.message.replace("; ", `; did you mean ${meant}? `);
    throw new MooncakeKvError(cause.code, message, { ...cause.details, meant }, { cause });
  }
}

/** What is wrong with a value; undefined when nothing is. */
export function checkValue(codec: AnyCodec, { value, ...place }: InputValue): Invalid | undefined {
  // All wire types are objects; a rule between members would be the wrong word for what is none.
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const rule = `expected the object ${codec.type}`;
    const problem = `${codec.type} of ${codec.release} at $: ${describe(value)} is refused: ${rule}`;
    return { ...place, problem, details: { path: "$", value, rule } };
  }
  try {
    codec.fromJson(value);
    return undefined;
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    return { ...place, problem: error.message, details: error.details };
  }
}
