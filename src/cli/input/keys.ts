import { describe } from "../../errors.js";
import { UsageError } from "../usage-error.js";
import { MAX_INPUT_BYTES } from "./limits.js";
import type { Line } from "./lines.js";
import type { Members } from "./members.js";

/** One key of an input. */
export interface InputKey {
  /** Its line, or its place in a JSON list, from 1. */
  readonly number: number;
  /** Undefined where the line is not UTF-8 text. */
  readonly key: string | undefined;
}

/**
 * Store keys, as they come: one a line, a JSON array, or the object that `key build --json` prints. Spaces inside a line
 * belong to the key; lines that are empty or begin with # are left out.
 *
 * @throws UsageError when there is none, or a member of a JSON list is no text.
 */
export async function* readKeys(lines: AsyncIterable<Line>, source: string): AsyncGenerator<InputKey> {
  let found = false;
  let json: Line[] | undefined = [];
  let jsonLength = 0;
  for await (const line of lines) {
    // A cache prefix may begin with a bracket, so that only the whole text can tell whether it is JSON.
    if (json !== undefined && (json.length > 0 || mayBeginJson(line))) {
      json.push(line);
      jsonLength += line.text?.length ?? 0;
      if (line.text !== undefined && jsonLength <= MAX_INPUT_BYTES) continue;
      for (const held of json) if (isKey(held)) yield { number: held.number, key: held.text };
      found = true;
      json = undefined;
      continue;
    }
    if (!isKey(line)) continue;
    found = true;
    json = undefined;
    yield { number: line.number, key: line.text };
  }
  if (!found && json !== undefined && json.length > 0) {
    const keys = keysOfJson(json.map(({ text }) => text).join("\n"), source);
    found = keys === undefined || keys.length > 0;
    if (keys !== undefined) for (const [index, key] of keys.entries()) yield { number: index + 1, key };
    else for (const held of json) if (isKey(held)) yield { number: held.number, key: held.text };
  }
  if (!found) throw new UsageError(`no keys in the input`);
}

function mayBeginJson({ text }: Line): boolean {
  return text !== undefined && /^\s*[[{]/.test(text);
}

function isKey({ text }: Line): boolean {
  return text === undefined || (text !== "" && text[0] !== "#");
}

/** The keys of a JSON text; undefined where it is none. */
function keysOfJson(text: string, source: string): string[] | undefined {
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
