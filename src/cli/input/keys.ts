import { describe } from "../../errors.js";
import { UsageError } from "../usage-error.js";
import type { Members } from "./members.js";
import type { InputText } from "./read-input.js";

/**
 * Store keys: one a line, a JSON array, or the object that `key build --json` prints. Spaces inside a line belong to
 * the key; lines that are empty or begin with # are left out.
 *
 * @throws UsageError when there is none, or a member of the list is no text.
 */
export function readKeys({ text, source }: InputText): string[] {
  const keys =
    keysOfJson(text, source) ?? text.split(/\r?\n/).filter((line) => line !== "" && line[0] !== "#");
  if (keys.length === 0) throw new UsageError("no keys in the input");
  return keys;
}

/** A cache prefix may begin with a bracket, so that a text which is no JSON may still be a list of keys. */
function keysOfJson(text: string, source: string): string[] | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const list = Array.isArray(value) ? value : (value as Members)["keys"];
  if (!Array.isArray(list))
    throw new UsageError(`${source}: the object has no list keys, as key build --json prints it`);
  for (const [index, key] of list.entries())
    if (typeof key !== "string")
      throw new UsageError(`${source}: key ${index} is ${describe(key)}; a key is a text`, { index });
  return list as string[];
}
