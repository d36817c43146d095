import { describe } from "../errors.js";
import { fromHex, toHex } from "./hex.js";
import { type Subject, schemaError } from "./schema-error.js";
import { isWellFormed } from "./text.js";

// Values that the schema leaves open: null, booleans, numbers, text, 64-bit integers, bytes, and lists of these. JSON has
// neither bytes nor large integers: there they are {"bytes": hex} and {"integer": decimal}.

/** How deep lists may lie in each other. */
const MAX_DEPTH = 16;

/** The JSON form of an open value. @throws MooncakeKvError `ERR_SCHEMA` for what is none. */
export function anyToJson(value: unknown, subject: Subject, path: string): unknown {
  return converted(
    value,
    subject,
    path,
    (bytes) => ({ bytes: toHex(bytes) }),
    (integer) => ({
      integer: String(integer),
    }),
  );
}

/** The MessagePack form of an open value. @throws MooncakeKvError `ERR_SCHEMA` for what is none. */
export function anyToPacked(value: unknown, subject: Subject, path: string): unknown {
  return converted(
    value,
    subject,
    path,
    (bytes) => bytes,
    (integer) => integer,
  );
}

function converted(
  value: unknown,
  subject: Subject,
  path: string,
  bytes: (value: Uint8Array) => unknown,
  integer: (value: bigint) => unknown,
  depth: number = 0,
): unknown {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "string" && isWellFormed(value)) return value;
  if (typeof value === "bigint" && value >= -(1n << 63n) && value < 1n << 64n)
    // What a number can hold is a number, as it is when it was read.
    return Number.isSafeInteger(Number(value)) ? Number(value) : integer(value);
  if (value instanceof Uint8Array) return bytes(value);
  if (Array.isArray(value) && depth < MAX_DEPTH)
    return Array.from(value, (item: unknown) => converted(item, subject, path, bytes, integer, depth + 1));
  throw schemaError(
    subject,
    path,
    `${describe(value)} is refused: expected null, true or false, a number, text, bytes, or a list of these`,
    { value },
  );
}

/** The open value of its JSON form. @throws TypeError for what is none. */
export function anyFromJson(json: unknown, depth: number = 0): unknown {
  if (Array.isArray(json) && depth < MAX_DEPTH)
    return json.map((item: unknown) => anyFromJson(item, depth + 1));
  if (typeof json !== "object" || json === null) return json;
  const [[name, text] = ["", ""], ...more] = Object.entries(json);
  if (more.length === 0 && typeof text === "string") {
    if (name === "bytes" && /^(?:[0-9a-f]{2})*$/.test(text)) return fromHex(text);
    if (name === "integer" && /^-?[0-9]{1,20}$/.test(text)) return BigInt(text);
  }
  throw new TypeError(`${describe(json)} is neither {"bytes": hex} nor {"integer": decimal}`);
}
