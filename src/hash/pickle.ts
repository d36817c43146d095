import { utf8 } from "#platform";
import { describe, type MooncakeKvError } from "../errors.js";
import { ByteWriter } from "./byte-writer.js";
import { hashError } from "./hash-error.js";
import { type Hashable, SharedText } from "./hashable.js";
import { exactInteger, magnitude } from "./integer.js";
import {
  BINBYTES,
  BINBYTES8,
  BINGET,
  BININT,
  BININT1,
  BININT2,
  BINUNICODE,
  BINUNICODE8,
  EMPTY_TUPLE,
  FRAME,
  LONG_BINGET,
  LONG1,
  LONG4,
  MARK,
  MEMOIZE,
  NONE,
  PROTO,
  PROTOCOL,
  SHORT_BINBYTES,
  SHORT_BINUNICODE,
  STOP,
  TUPLE,
  TUPLE1,
} from "./pickle-opcodes.js";

/** A frame of this many bytes or more is closed before the next object begins. */
const FRAME_SIZE_TARGET = 64 * 1024;
/** A shorter frame is written without its header. */
const FRAME_SIZE_MIN = 4;
const FRAME_HEADER_SIZE = 9;

/**
 * Serialises a value as Python's `pickle.dumps(value, protocol=5)` does, byte for byte: framing, memo and
 * back-references included. vLLM hashes these bytes under `sha256` and `xxhash`.
 *
 * @throws MooncakeKvError `ERR_HASH` for a number that is not an exact integer, or a value of another kind.
 */
export function pickleDumps(value: Hashable): Uint8Array {
  const pickler = new Pickler();
  pickler.writer.u8(PROTO);
  pickler.writer.u8(PROTOCOL);
  pickler.framed = true;
  pickler.save(value);
  pickler.stop();
  return pickler.writer.view();
}

/**
 * The part of a pickle that stands for the last element of a tuple: no header, no frame. `memoSize` objects were
 * memoised before it. For blocks that are assembled piece by piece; valid while the whole body fits one frame.
 */
export function pickleTail(value: Hashable, memoSize: number): Uint8Array {
  const pickler = new Pickler(memoSize);
  pickler.save(value);
  return pickler.writer.view();
}

class Pickler {
  readonly writer = new ByteWriter();
  framed = false;
  #frameStart = -1;
  #memoSize: number;
  /** Memo index by identity; the texts and bytes that CPython shares by itself are keyed by value. */
  readonly #memo = new Map<unknown, number>();

  constructor(memoSize: number = 0) {
    this.#memoSize = memoSize;
  }

  save(value: Hashable): void {
    if (this.#frameStart >= 0 && this.#frameLength() >= FRAME_SIZE_TARGET) this.#commitFrame();
    this.#saveObject(value);
  }

  stop(): void {
    this.#opcode(STOP);
    this.#commitFrame();
  }

  #saveObject(value: Hashable): void {
    if (value === null) {
      this.#opcode(NONE);
      return;
    }
    if (typeof value === "number" || typeof value === "bigint") {
      this.#saveInteger(value);
      return;
    }
    const identity = identityOf(value);
    const known = identity === undefined ? undefined : this.#memo.get(identity);
    if (known !== undefined) {
      this.#reference(known);
      return;
    }
    if (typeof value === "string") this.#saveText(value);
    else if (value instanceof SharedText) this.#saveText(value.text);
    else if (value instanceof Uint8Array) this.#saveBytes(value);
    else if (Array.isArray(value)) {
      if (this.#saveTuple(value)) return;
    } else throw unsupported(value);
    this.#memoise(identity);
  }

  #saveInteger(value: number | bigint): void {
    const whole = exactInteger(value);
    const { writer } = this;
    if (whole >= 0n && whole <= 0xffn) {
      this.#opcode(BININT1);
      writer.u8(Number(whole));
    } else if (whole >= 0n && whole <= 0xffffn) {
      this.#opcode(BININT2);
      writer.u16(Number(whole), true);
    } else if (BigInt.asIntN(32, whole) === whole) {
      this.#opcode(BININT);
      writer.u32(Number(BigInt.asUintN(32, whole)), true);
    } else this.#saveLong(twosComplement(whole));
  }

  #saveLong(bytes: Uint8Array): void {
    if (bytes.length < 256) {
      this.#opcode(LONG1);
      this.writer.u8(bytes.length);
    } else {
      this.#opcode(LONG4);
      this.writer.u32(bytes.length, true);
    }
    this.writer.bytes(bytes);
  }

  #saveText(text: string): void {
    this.#saveBlob(encodeUtf8(text), SHORT_BINUNICODE, BINUNICODE, BINUNICODE8);
  }

  #saveBytes(bytes: Uint8Array): void {
    this.#saveBlob(bytes, SHORT_BINBYTES, BINBYTES, BINBYTES8);
  }

  #saveBlob(bytes: Uint8Array, short: number, normal: number, long: number): void {
    // CPython writes a large payload past its frame, with the opcode in front of it.
    const outside = bytes.length >= FRAME_SIZE_TARGET;
    const { framed } = this;
    if (outside) {
      this.#commitFrame();
      this.framed = false;
    }
    if (bytes.length <= 0xff) {
      this.#opcode(short);
      this.writer.u8(bytes.length);
    } else if (bytes.length <= 0xffff_ffff) {
      this.#opcode(normal);
      this.writer.u32(bytes.length, true);
    } else {
      this.#opcode(long);
      this.writer.u64(BigInt(bytes.length), true);
    }
    this.writer.bytes(bytes);
    this.framed = framed;
  }

  /** True when nothing is left to memoise: the empty tuple. */
  #saveTuple(items: readonly Hashable[]): boolean {
    if (items.length === 0) {
      this.#opcode(EMPTY_TUPLE);
      return true;
    }
    if (items.length > 3) this.#opcode(MARK);
    for (const item of items) this.save(item);
    this.#opcode(items.length > 3 ? TUPLE : TUPLE1 - 1 + items.length);
    return false;
  }

  #memoise(identity: unknown): void {
    if (identity !== undefined) this.#memo.set(identity, this.#memoSize);
    this.#memoSize++;
    this.#opcode(MEMOIZE);
  }

  #reference(index: number): void {
    if (index <= 0xff) {
      this.#opcode(BINGET);
      this.writer.u8(index);
    } else {
      this.#opcode(LONG_BINGET);
      this.writer.u32(index, true);
    }
  }

  #opcode(code: number): void {
    if (this.framed && this.#frameStart < 0) {
      this.#frameStart = this.writer.length;
      this.writer.u8(FRAME);
      this.writer.u64(0n, true);
    }
    this.writer.u8(code);
  }

  #frameLength(): number {
    return this.writer.length - this.#frameStart - FRAME_HEADER_SIZE;
  }

  #commitFrame(): void {
    if (this.#frameStart < 0) return;
    const length = this.#frameLength();
    if (length >= FRAME_SIZE_MIN) this.writer.patchU64(this.#frameStart + 1, BigInt(length), true);
    else this.writer.remove(this.#frameStart, FRAME_HEADER_SIZE);
    this.#frameStart = -1;
  }
}

/**
 * What makes two references the same Python object. CPython keeps one object for the empty text, for each text of
 * one character below U+0100, and for bytes of length 0 and 1; other plain strings are objects of their own.
 */
function identityOf(value: string | SharedText | Uint8Array | readonly Hashable[]): unknown {
  if (typeof value === "string" || value instanceof SharedText) {
    const text = typeof value === "string" ? value : value.text;
    if (text.length === 0 || (text.length === 1 && text.charCodeAt(0) < 0x100)) return `text ${text}`;
    return typeof value === "string" ? undefined : value;
  }
  if (value instanceof Uint8Array && value.length <= 1) return `bytes ${value[0] ?? ""}`;
  return value;
}

/** Little-endian two's complement in as few bytes as keep the sign. */
function twosComplement(value: bigint): Uint8Array {
  let size = magnitude(value < 0n ? -value : value).length;
  if (BigInt.asIntN(size * 8, value) !== value) size++;
  const bytes = new Uint8Array(size);
  let rest = BigInt.asUintN(size * 8, value);
  for (let i = 0; i < size; i++, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  return bytes;
}

/** UTF-8 with lone surrogates kept, as Python's `surrogatepass` does. */
function encodeUtf8(text: string): Uint8Array {
  if (text.isWellFormed()) return utf8(text);
  const writer = new ByteWriter(text.length * 3);
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code >= 0xd800 && code <= 0xdfff) {
      writer.u8(0xe0 | (code >> 12));
      writer.u8(0x80 | ((code >> 6) & 0x3f));
      writer.u8(0x80 | (code & 0x3f));
    } else writer.bytes(utf8(character));
  }
  return writer.view();
}

function unsupported(value: unknown): MooncakeKvError {
  return hashError(
    `${describe(value)} can't be hashed; None (null), integers, texts, bytes and tuples of these can`,
    { value },
  );
}
