import { describe } from "../errors.js";
import { configError } from "./errors.js";

/**
 * Refuses options that are no object, and options with a name that nobody knows: most are misspelt.
 *
 * @param where whose options they are, for the message.
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and lists those that there are.
 */
export function checkNames(where: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== "object" || options === null)
    throw configError(`the options of ${where} are ${describe(options)}; they must be an object`, {
      options,
    });
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw configError(`${where} has no option ${describe(unknown)}; there are ${names.join(", ")}`, {
      option: unknown,
      known: names,
    });
}
