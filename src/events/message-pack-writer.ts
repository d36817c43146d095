import { describe } from "../errors.js";
import { eventError } from "./errors.js";
import { MAX_DEPTH } from "./message-pack-reader.js";

/** Writes MessagePack values one after the other, byte for byte as Python's msgspec does. */
export class MessagePackWriter {
  #bytes: Uint8Array = new Uint8Array(256);
  #view: DataView = new DataView(this.#bytes.buffer);
  #length = 0;

  /** The bytes so far, in memory of their own. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  /** The head of a list. */
  list(length: number): this {
    return this.#sized(length, 0x90, 15, undefined, 0xdc, 0xdd);
  }

  /**
   * The head of a map.
   *
   * @param most pairs that there could be: msgspec reserves the head for these before it knows how many it leaves out.
   */
  map(length: number, most: number = length): this {
    return most > 15 && length <= 0xffff
      ? this.#put(0xde, length, 2)
      : this.#sized(length, 0x80, 15, undefined, 0xde, 0xdf);
  }

  /** Null. */
  nil(): this {
    return this.#put(0xc0, 0, 0);
  }

  boolean(value: boolean): this {
    return this.#put(value ? 0xc3 : 0xc2, 0, 0);
  }

  /** A number as 64-bit float, also where it is whole. */
  float(value: number): this {
    if (typeof value !== "number") throw eventError(`${describe(value)} is no number`, { value });
    this.#grow(9);
    this.#bytes[this.#length] = 0xcb;
    this.#view.setFloat64(this.#length + 1, value);
    this.#length += 9;
    return this;
  }

  /**
   * A whole number in the fewest bytes.
   *
   * @throws MooncakeKvError `ERR_SCHEMA` for a fraction, a number that has lost digits, or one of more than 64 bits.
   */
  integer(value: number | bigint): this {
    if (typeof value === "number" ? !Number.isSafeInteger(value) : typeof value !== "bigint")
      throw eventError(`${describe(value)} is no whole number; beyond 2^53 - 1 a bigint is needed`, {
        value,
      });
    if (value >= 0) {
      if (value < 0x80) return this.#put(Number(value), 0, 0);
      if (value <= 0xff) return this.#put(0xcc, Number(value), 1);
      if (value <= 0xffff) return this.#put(0xcd, Number(value), 2);
      if (value <= 0xffff_ffff) return this.#put(0xce, Number(value), 4);
      if (BigInt(value) < 1n << 64n) return this.#put64(0xcf, BigInt(value));
    } else {
      if (value >= -32) return this.#put(Number(value) + 256, 0, 0);
      if (value >= -0x80) return this.#put(0xd0, Number(value), 1);
      if (value >= -0x8000) return this.#put(0xd1, Number(value), 2);
      if (value >= -0x8000_0000) return this.#put(0xd2, Number(value), 4);
      if (BigInt(value) >= -(1n << 63n)) return this.#put64(0xd3, BigInt.asUintN(64, BigInt(value)));
    }
    throw eventError(`${describe(value)} has more than 64 bits`, { value });
  }

  /** @throws MooncakeKvError `ERR_SCHEMA` for text that UTF-8 can't hold. */
  text(value: string): this {
    if (typeof value !== "string" || /\p{Surrogate}/u.test(value))
      throw eventError(`${describe(value)} is no Unicode text`, { value });
    const length = Buffer.byteLength(value);
    this.#sized(length, 0xa0, 31, 0xd9, 0xda, 0xdb);
    this.#grow(length);
    new TextEncoder().encodeInto(value, this.#bytes.subarray(this.#length));
    this.#length += length;
    return this;
  }

  bin(value: Uint8Array): this {
    if (!(value instanceof Uint8Array)) throw eventError(`${describe(value)} is no Uint8Array`, { value });
    this.#sized(value.length, undefined, -1, 0xc4, 0xc5, 0xc6);
    this.#grow(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /**
   * A value of any kind that extra keys may have.
   *
   * @param depth lists around it that count; readers take so many and no more.
   * @throws MooncakeKvError `ERR_SCHEMA` for another value, and for one that lies in too many lists or in itself.
   */
  value(value: unknown, depth: number = 0): this {
    if (value === null) return this.nil();
    if (typeof value === "boolean") return this.boolean(value);
    if (typeof value === "string") return this.text(value);
    if (typeof value === "bigint") return this.integer(value);
    if (typeof value === "number")
      return Number.isSafeInteger(value) ? this.integer(value) : this.float(value);
    if (value instanceof Uint8Array) return this.bin(value);
    if (!Array.isArray(value))
      throw eventError(`${describe(value)} has no form in MessagePack here`, { value });
    if (depth >= MAX_DEPTH)
      throw eventError(`more than ${MAX_DEPTH} lists lie in each other`, { depth: MAX_DEPTH });
    this.list(value.length);
    for (const item of value) this.value(item, depth + 1);
    return this;
  }

  #sized(
    length: number,
    fix: number | undefined,
    fixMost: number,
    head8: number | undefined,
    head16: number,
    head32: number,
  ): this {
    if (fix !== undefined && length <= fixMost) return this.#put(fix | length, 0, 0);
    if (head8 !== undefined && length <= 0xff) return this.#put(head8, length, 1);
    return length <= 0xffff ? this.#put(head16, length, 2) : this.#put(head32, length, 4);
  }

  #put(head: number, value: number, width: 0 | 1 | 2 | 4): this {
    this.#grow(1 + width);
    this.#bytes[this.#length++] = head;
    if (width === 1) this.#bytes[this.#length] = value;
    else if (width === 2) this.#view.setUint16(this.#length, value);
    else if (width === 4) this.#view.setUint32(this.#length, value);
    this.#length += width;
    return this;
  }

  #put64(head: number, value: bigint): this {
    this.#grow(9);
    this.#bytes[this.#length] = head;
    this.#view.setBigUint64(this.#length + 1, value);
    this.#length += 9;
    return this;
  }

  #grow(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const bytes = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + more));
    bytes.set(this.#bytes);
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}
