import { describe, MooncakeKvError } from "../../errors.js";
import type { KeyList } from "./keys.js";

/** Values in JavaScript's own memory, one a key. */
export type Values = readonly Uint8Array[];

/**
 * The values of a call, which must be one a key.
 *
 * @throws MooncakeKvError `ERR_STORE` when they are no list of Uint8Arrays, or are more or fewer than there are keys.
 */
export function checkedValues(operation: string, keys: KeyList, values: Values): Values {
  if (!Array.isArray(values))
    throw new MooncakeKvError("ERR_STORE", `${operation}: ${describe(values)} is no list of values`, {
      operation,
    });
  if (values.length !== keys.length)
    throw new MooncakeKvError(
      "ERR_STORE",
      `${operation}: ${keys.length} keys but ${values.length} values; every key needs one`,
      { operation, keys: keys.length, values: values.length },
    );
  for (let i = 0; i < values.length; i++)
    if (!((values[i] as unknown) instanceof Uint8Array))
      throw new MooncakeKvError(
        "ERR_STORE",
        `${operation}: value ${i} is ${describe(values[i])}; a value is a Uint8Array`,
        { operation, index: i },
      );
  return values;
}
