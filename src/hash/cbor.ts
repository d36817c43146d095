import { utf8 } from "#platform";
import { describe } from "../errors.js";
import { ByteWriter } from "./byte-writer.js";
import { hashError } from "./hash-error.js";
import { type Hashable, SharedText } from "./hashable.js";
import { exactInteger, magnitude } from "./integer.js";

const UNSIGNED = 0x00;
const NEGATIVE = 0x20;
const BYTES = 0x40;
const TEXT = 0x60;
const ARRAY = 0x80;
const TAG = 0xc0;

/**
 * Serialises a value as canonical CBOR, as Python's `cbor2.dumps(value, canonical=True)` does. vLLM hashes these bytes
 * under `sha256_cbor` and `xxhash_cbor`.
 *
 * @throws MooncakeKvError `ERR_HASH` for a lone surrogate, a number that is not an exact integer, or a value of
 * another kind.
 */
export function cborDumps(value: Hashable): Uint8Array {
  const writer = new ByteWriter();
  write(writer, value);
  return writer.view();
}

function write(writer: ByteWriter, value: Hashable): void {
  if (value === null) writer.u8(0xf6);
  else if (typeof value === "number" || typeof value === "bigint") writeInteger(writer, exactInteger(value));
  else if (typeof value === "string") writeText(writer, value);
  else if (value instanceof SharedText) writeText(writer, value.text);
  else if (value instanceof Uint8Array) writeBlob(writer, BYTES, value);
  else if (Array.isArray(value)) {
    writeHead(writer, ARRAY, BigInt(value.length));
    for (const item of value) write(writer, item);
  } else
    throw hashError(
      `${describe(value)} can't be hashed; None (null), integers, texts, bytes and tuples of these can`,
      { value },
    );
}

function writeInteger(writer: ByteWriter, value: bigint): void {
  const negative = value < 0n;
  const argument = negative ? -1n - value : value;
  if (argument < 2n ** 64n) writeHead(writer, negative ? NEGATIVE : UNSIGNED, argument);
  else {
    writer.u8(TAG | (negative ? 3 : 2));
    writeBlob(writer, BYTES, magnitude(argument));
  }
}

function writeText(writer: ByteWriter, text: string): void {
  if (!text.isWellFormed())
    throw hashError(`the text ${describe(text)} has a lone surrogate, which UTF-8 and so CBOR can't carry`, {
      text,
    });
  writeBlob(writer, TEXT, utf8(text));
}

function writeBlob(writer: ByteWriter, major: number, bytes: Uint8Array): void {
  writeHead(writer, major, BigInt(bytes.length));
  writer.bytes(bytes);
}

function writeHead(writer: ByteWriter, major: number, argument: bigint): void {
  if (argument < 24n) writer.u8(major | Number(argument));
  else if (argument <= 0xffn) {
    writer.u8(major | 24);
    writer.u8(Number(argument));
  } else if (argument <= 0xffffn) {
    writer.u8(major | 25);
    writer.u16(Number(argument), false);
  } else if (argument <= 0xffff_ffffn) {
    writer.u8(major | 26);
    writer.u32(Number(argument), false);
  } else {
    writer.u8(major | 27);
    writer.u64(argument, false);
  }
}
