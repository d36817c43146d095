import { type Checks, checksFor } from "../checks/checks-for.js";
import { describe } from "../errors.js";
import type { Release } from "../release.js";

/** The checks of this room: `ERR_REQUEST`. */
export const requestChecks: Checks = checksFor("ERR_REQUEST");

/** The error of this room: `ERR_REQUEST` with the facts of the message as data. */
export const requestError: Checks["error"] = requestChecks.error;

/** `value` if it is a whole number of at least `minimum`. @throws MooncakeKvError `ERR_REQUEST` when it is not. */
export function checkCount(name: string, value: number, minimum: number = 0): number {
  return requestChecks.whole(name, value, minimum);
}

/**
 * `defaults` overlaid with `fields`, after a check that no field is foreign and none of `required` is missing.
 *
 * @throws MooncakeKvError `ERR_REQUEST` when one is.
 */
export function complete<T extends object>(
  type: string,
  required: readonly (keyof T & string)[],
  defaults: Partial<T>,
  fields: object,
): T {
  if (typeof fields !== "object" || fields === null)
    throw requestError(`the fields of ${type} are ${describe(fields)}; they must be an object`, {
      type,
      fields,
    });
  const result: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(defaults, name) && !(required as readonly string[]).includes(name))
      throw requestError(
        `${type} has no field ${describe(name)}; it has ${[...required, ...Object.keys(defaults)].join(", ")}`,
        { type, field: name },
      );
    if (value !== undefined) result[name] = value;
  }
  const missing = required.find((name) => result[name] === undefined);
  if (missing !== undefined)
    throw requestError(`${type} needs the field ${missing}`, { type, field: missing });
  return result as T;
}

/**
 * What a table says of a release.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for a release that it does not list.
 */
export function ofRelease<T extends object, R extends Release & keyof T>(table: T, release: R): T[R] {
  if (!Object.hasOwn(table, release))
    throw requestError(
      `release ${describe(release)} is unknown; it is one of ${Object.keys(table).join(", ")}`,
      { release },
    );
  return table[release];
}
