import { describe } from "../../errors.js";
import { didYouMean } from "../nearest.js";
import { UsageError } from "../usage-error.js";

// Readers of JSON members. `where` names the object in messages; null counts as absent, as in vLLM.

/** A JSON object as it came in. */
export type Members = Readonly<Record<string, unknown>>;

/**
 * A JSON object with known members only: a misspelt member would otherwise be a silent miss.
 *
 * @throws UsageError for another value, or an unknown member.
 */
export function membersOf(value: unknown, where: string, known: readonly string[]): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${where} is ${describe(value)}; it must be an object`, { value });
  for (const name of Object.keys(value))
    if (!known.includes(name))
      throw new UsageError(
        `${where} has the unknown member ${describe(name)}${didYouMean(name, known) || `; known are ${known.join(", ")}`}`,
        { member: name, known },
      );
  return value as Members;
}

/** A text; undefined when absent. @throws UsageError for another value. */
export function optionalText(members: Members, name: string, where: string): string | undefined {
  return optional(members, name, where, "a text", (value) => typeof value === "string");
}

/** A text that must be there. @throws UsageError. */
export function requiredText(members: Members, name: string, where: string): string {
  return required(optionalText(members, name, where), name, where);
}

/** A whole number of 0 or more; undefined when absent. @throws UsageError for another value. */
export function optionalCount(members: Members, name: string, where: string): number | undefined {
  return optional(
    members,
    name,
    where,
    "a whole number of 0 or more",
    (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  );
}

/** A whole number of 0 or more that must be there. @throws UsageError. */
export function requiredCount(members: Members, name: string, where: string): number {
  return required(optionalCount(members, name, where), name, where);
}

/** A list; undefined when absent. @throws UsageError for another value. */
export function optionalList(members: Members, name: string, where: string): readonly unknown[] | undefined {
  return optional(members, name, where, "a list", Array.isArray);
}

/** A list that must be there. @throws UsageError. */
export function requiredList(members: Members, name: string, where: string): readonly unknown[] {
  return required(optionalList(members, name, where), name, where);
}

/** A list of numbers; undefined when absent. @throws UsageError for another value. */
export function optionalNumbers(
  members: Members,
  name: string,
  where: string,
): readonly number[] | undefined {
  return optional(
    members,
    name,
    where,
    "a list of numbers",
    (value) => Array.isArray(value) && value.every((item) => typeof item === "number"),
  );
}

/** The bytes of a hex text; undefined when absent. @throws UsageError for another value. */
export function optionalBytes(members: Members, name: string, where: string): Uint8Array | undefined {
  const text = optionalText(members, name, where);
  if (text === undefined) return undefined;
  const bytes = hexBytes(text);
  if (bytes === undefined)
    throw new UsageError(`${where}.${name} ${describe(text)} is not hex`, { member: name, value: text });
  return bytes;
}

/** The bytes of a hex text of either case; undefined when it is none. */
export function hexBytes(text: string): Uint8Array | undefined {
  return text.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(text) ? Buffer.from(text, "hex") : undefined;
}

function optional<T>(
  members: Members,
  name: string,
  where: string,
  kind: string,
  fits: (value: unknown) => boolean,
): T | undefined {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (!fits(value))
    throw new UsageError(`${where}.${name} ${describe(value)} is not ${kind}`, { member: name, value });
  return value as T;
}

function required<T>(value: T | undefined, name: string, where: string): T {
  if (value === undefined) throw new UsageError(`${where} lacks the member ${name}`, { member: name });
  return value;
}
