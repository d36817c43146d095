import { decode, encode } from "@msgpack/msgpack";
import { describe } from "../errors.js";
import { scanMessagePack } from "./message-pack-scan.js";
import { type Subject, schemaError } from "./schema-error.js";
import { isWellFormed } from "./text.js";

/** MessagePack of a wire value. Integers above 32 bits become 64-bit integers, never floats. */
export function packMessage(value: unknown, subject: Subject): Uint8Array {
  return encode(widened(value, subject), { useBigInt64: true });
}

/**
 * The value in `bytes`: maps are objects, integers of 64-bit form are bigints.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` when the bytes are not one MessagePack value of the kinds that are used here.
 */
export function unpackMessage(bytes: Uint8Array, subject: Subject): unknown {
  const refuse = (problem: string, cause?: unknown): never => {
    throw schemaError(subject, "$", `not MessagePack: ${problem}`, { value: bytes }, { cause });
  };
  if (!(bytes instanceof Uint8Array)) return refuse(`${describe(bytes)} is no Uint8Array`);
  const problem = scanMessagePack(bytes);
  if (problem !== undefined) return refuse(problem);
  try {
    return decode(bytes, { useBigInt64: true });
  } catch (error) {
    return refuse((error as Error).message, error);
  }
}

/** Integers that MessagePack's encoder would write as floats become bigints; text that UTF-8 can't hold is refused. */
function widened(value: unknown, subject: Subject): unknown {
  if (typeof value === "number")
    return Number.isSafeInteger(value) && value > 0xffff_ffff ? BigInt(value) : value;
  if (typeof value === "string") {
    if (isWellFormed(value)) return value;
    throw schemaError(
      subject,
      "$",
      `the text ${describe(value)} is no Unicode: it has half of a surrogate pair`,
      {
        value,
      },
    );
  }
  if (Array.isArray(value)) return value.map((item) => widened(item, subject));
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, widened(item, subject)]));
}
