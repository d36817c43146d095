import { LITTLE_ENDIAN, writeIdWords } from "./event-hashes.js";
import { CUT_OFF, MessagePackFault, wrongHead } from "./message-pack-fault.js";
import { endOfValue } from "./message-pack-skip.js";
import { readText } from "./message-pack-text.js";

/** Lists inside lists that an extra key may have. */
export const MAX_DEPTH = 32;

const ONE = new Uint32Array(2);

const SCRATCH = new Uint8Array(8);
const SCRATCH_FLOAT32 = new Float32Array(SCRATCH.buffer);
const SCRATCH_FLOAT64 = new Float64Array(SCRATCH.buffer);
const SCRATCH_UINT64 = new BigUint64Array(SCRATCH.buffer);
const SCRATCH_INT64 = new BigInt64Array(SCRATCH.buffer);

/**
 * Reads MessagePack values one after the other, straight into typed arrays: events come by the thousands, and most of
 * their bytes are tokens and hashes. Every method throws a `MessagePackFault` for bytes of another kind, and no length
 * that the bytes claim is believed before as many bytes are there.
 */
export class MessagePackReader {
  bytes: Uint8Array;
  offset = 0;
  /** Bytes of the text that `span` found last. */
  spanLength = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Begins anew with other bytes. */
  reset(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.offset = 0;
  }

  /** Bytes that are not read yet. */
  get left(): number {
    return this.bytes.length - this.offset;
  }

  /** The first byte of the next value. */
  peek(): number {
    if (this.offset >= this.bytes.length) throw new MessagePackFault(CUT_OFF);
    return this.bytes[this.offset]!;
  }

  /** Whether the next value is null; then it is taken. */
  isNull(): boolean {
    if (this.peek() !== 0xc0) return false;
    this.offset++;
    return true;
  }

  /** Elements of the list that begins here. */
  listLength(): number {
    const head = this.peek();
    if (head >= 0x90 && head <= 0x9f) return this.#opened(1, head & 0x0f);
    if (head === 0xdc) return this.#opened(3, this.#uint16(1));
    if (head === 0xdd) return this.#opened(5, this.#uint32(1));
    throw this.fault("a list");
  }

  /** Pairs of the map that begins here. */
  mapLength(): number {
    const head = this.peek();
    if (head >= 0x80 && head <= 0x8f) return this.#opened(1, head & 0x0f);
    if (head === 0xde) return this.#opened(3, this.#uint16(1));
    if (head === 0xdf) return this.#opened(5, this.#uint32(1));
    throw this.fault("a map");
  }

  isList(): boolean {
    const head = this.peek();
    return (head >= 0x90 && head <= 0x9f) || head === 0xdc || head === 0xdd;
  }

  isMap(): boolean {
    const head = this.peek();
    return (head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf;
  }

  isText(): boolean {
    const head = this.peek();
    return (head >= 0xa0 && head <= 0xbf) || (head >= 0xd9 && head <= 0xdb);
  }

  /** A whole number from 0 to 2^53 - 1. */
  count(): number {
    const head = this.peek();
    if (head < 0x80) {
      this.offset++;
      return head;
    }
    const value = this.integer();
    if (value < 0 || value > Number.MAX_SAFE_INTEGER)
      throw new MessagePackFault(`${value} is no whole number from 0 to 2^53 - 1`);
    return Number(value);
  }

  /** A whole number; a bigint where a number can't hold it. */
  integer(): number | bigint {
    const head = this.peek();
    if (head < 0x80 || head >= 0xe0) return this.#taken(1, head < 0x80 ? head : head - 256);
    switch (head) {
      case 0xcc:
        return this.#taken(2, this.#uint8(1));
      case 0xcd:
        return this.#taken(3, this.#uint16(1));
      case 0xce:
        return this.#taken(5, this.#uint32(1));
      case 0xcf:
        this.#scratch(8);
        return narrow(SCRATCH_UINT64[0]!);
      case 0xd0:
        return this.#taken(2, (this.#uint8(1) << 24) >> 24);
      case 0xd1:
        return this.#taken(3, (this.#uint16(1) << 16) >> 16);
      case 0xd2:
        return this.#taken(5, this.#uint32(1) | 0);
      case 0xd3:
        this.#scratch(8);
        return narrow(SCRATCH_INT64[0]!);
    }
    throw this.fault("a whole number");
  }

  /** A number of any kind. */
  float(): number {
    const head = this.peek();
    if (head === 0xcb) {
      this.#scratch(8);
      return SCRATCH_FLOAT64[0]!;
    }
    if (head === 0xca) {
      this.#scratch(4);
      return SCRATCH_FLOAT32[0]!;
    }
    return Number(this.integer());
  }

  /** Text. */
  text(): string {
    const start = this.span();
    return readText(this.bytes, start, this.spanLength);
  }

  /** Where the text that begins here lies, `spanLength` bytes long; it is taken. */
  span(): number {
    const head = this.peek();
    let start = this.offset + 1;
    let length = head & 0x1f;
    if (head < 0xa0 || head > 0xbf) {
      if (head === 0xd9) {
        length = this.#uint8(1);
        start = this.offset + 2;
      } else if (head === 0xda) {
        length = this.#uint16(1);
        start = this.offset + 3;
      } else if (head === 0xdb) {
        length = this.#uint32(1);
        start = this.offset + 5;
      } else throw this.fault("text");
    }
    this.#end(start + length);
    this.spanLength = length;
    return start;
  }

  /** Bytes, in memory of their own. */
  bin(): Uint8Array {
    const head = this.peek();
    let [start, length] = [0, 0];
    if (head === 0xc4) [start, length] = [this.offset + 2, this.#uint8(1)];
    else if (head === 0xc5) [start, length] = [this.offset + 3, this.#uint16(1)];
    else if (head === 0xc6) [start, length] = [this.offset + 5, this.#uint32(1)];
    else throw this.fault("bytes");
    this.#end(start + length);
    return this.bytes.slice(start, start + length);
  }

  /** A block hash: its id goes into `words`, its bytes come back where it has any. */
  hash(words: Uint32Array, index: number): Uint8Array | undefined {
    const { bytes, offset } = this;
    const head = this.peek();
    if (head === 0xcf || head === 0xd3) {
      this.#end(offset + 9);
      words[2 * index + 1] =
        (bytes[offset + 1]! << 24) |
        (bytes[offset + 2]! << 16) |
        (bytes[offset + 3]! << 8) |
        bytes[offset + 4]!;
      words[2 * index] =
        (bytes[offset + 5]! << 24) |
        (bytes[offset + 6]! << 16) |
        (bytes[offset + 7]! << 8) |
        bytes[offset + 8]!;
      return undefined;
    }
    if (head >= 0xc4 && head <= 0xc6) {
      const hash = this.bin();
      writeIdWords(words, index, hash, 0, hash.length);
      return hash;
    }
    if (head < 0x80 || head >= 0xe0 || (head >= 0xcc && head <= 0xd2)) {
      const value = Number(this.integer());
      words[2 * index] = value;
      words[2 * index + 1] = value < 0 ? 0xffff_ffff : 0;
      return undefined;
    }
    throw this.fault("a block hash: bytes, or a whole number");
  }

  /** A block hash by itself, as it was published: its bytes, or an unsigned integer. */
  externalHash(): Uint8Array | bigint {
    if (this.peek() === 0xcf) {
      this.#scratch(8);
      return SCRATCH_UINT64[0]!;
    }
    const bytes = this.hash(ONE, 0);
    return bytes ?? (BigInt(ONE[1]!) << 32n) | BigInt(ONE[0]!);
  }

  /** A list of token ids, each below 2^32. */
  tokens(): Uint32Array {
    const length = this.listLength();
    const tokens = new Uint32Array(length);
    const { bytes } = this;
    let at = this.offset;
    for (let index = 0; index < length; index++) {
      const head = bytes[at]!;
      if (head < 0x80) {
        tokens[index] = head;
        at++;
      } else if (head === 0xcd) {
        tokens[index] = (bytes[at + 1]! << 8) | bytes[at + 2]!;
        at += 3;
      } else if (head === 0xce) {
        tokens[index] =
          (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!;
        at += 5;
      } else {
        this.offset = at;
        const token = this.count();
        if (token > 0xffff_ffff) throw new MessagePackFault(`token id ${token} is above 2^32 - 1`);
        tokens[index] = token;
        at = this.offset;
      }
    }
    this.#end(at);
    return tokens;
  }

  /** A value as extra keys have it: null, boolean, number, text, bytes, or a list of these. Maps are refused. */
  value(depth: number = 0): unknown {
    const head = this.peek();
    if (this.isNull()) return null;
    if (head === 0xc2 || head === 0xc3) return this.#taken(1, head === 0xc3);
    if (head === 0xca || head === 0xcb) return this.float();
    if (head >= 0xc4 && head <= 0xc6) return this.bin();
    if (this.isText()) return this.text();
    if (!this.isList()) return this.integer();
    if (depth >= MAX_DEPTH) throw new MessagePackFault(`more than ${MAX_DEPTH} lists lie in each other`);
    // No room is made for what the list announces: lists inside lists can each announce all bytes that are left.
    const items: unknown[] = [];
    for (let left = this.listLength(); left > 0; left--) items.push(this.value(depth + 1));
    return items;
  }

  /** Passes over a value of any kind. */
  skip(): void {
    this.offset = endOfValue(this.bytes, this.offset);
  }

  /** What is wrong where another kind of value was expected. */
  fault(expected: string): MessagePackFault {
    return wrongHead(this.bytes, this.offset, expected);
  }

  /** Takes the head of a list or map whose elements need at least a byte each. */
  #opened(width: number, length: number): number {
    this.offset += width;
    if (length > this.left)
      throw new MessagePackFault(
        `${length} elements are announced at byte ${this.offset}, but only ${this.left} bytes are left`,
      );
    return length;
  }

  /** Takes a number of some bytes behind its head into the scratch memory: a view of the bytes costs more than an event. */
  #scratch(width: number): void {
    const { bytes, offset } = this;
    this.#end(offset + 1 + width);
    for (let at = 0; at < width; at++) SCRATCH[LITTLE_ENDIAN ? width - 1 - at : at] = bytes[offset + 1 + at]!;
  }

  #taken<T>(width: number, value: T): T {
    this.offset += width;
    return value;
  }

  #uint8(at: number): number {
    this.#need(at + 1);
    return this.bytes[this.offset + at]!;
  }

  #uint16(at: number): number {
    this.#need(at + 2);
    const { bytes, offset } = this;
    return (bytes[offset + at]! << 8) | bytes[offset + at + 1]!;
  }

  #uint32(at: number): number {
    this.#need(at + 4);
    const { bytes, offset } = this;
    const start = offset + at;
    return (
      ((bytes[start]! << 24) | (bytes[start + 1]! << 16) | (bytes[start + 2]! << 8) | bytes[start + 3]!) >>> 0
    );
  }

  #need(bytes: number): void {
    if (this.offset + bytes > this.bytes.length) throw new MessagePackFault(CUT_OFF);
  }

  /** Goes on behind a value. */
  #end(offset: number): void {
    if (offset > this.bytes.length) throw new MessagePackFault(CUT_OFF);
    this.offset = offset;
  }
}

function narrow(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
    ? Number(value)
    : value;
}
