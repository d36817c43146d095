import { describe } from "../errors.js";
import { type Subject, schemaError } from "./schema-error.js";

/** Writes the parts of one binary frame. Integers are unsigned and big-endian. */
export class FrameWriter {
  readonly #subject: Subject;
  readonly #parts: Uint8Array[] = [];

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  /** Constant ASCII text. */
  tag(text: string): this {
    this.#parts.push(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    return this;
  }

  /** An integer of 1, 2 or 4 bytes. `member` names it in errors. */
  uint(value: number, width: number, member: string): this {
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** (8 * width))
      throw this.#refused(value, member, `an integer from 0 to ${2 ** (8 * width) - 1}`);
    const bytes = new Uint8Array(width);
    for (let index = width - 1, rest = value; index >= 0; index--, rest = Math.floor(rest / 256))
      bytes[index] = rest % 256;
    this.#parts.push(bytes);
    return this;
  }

  /** An integer of 8 bytes. */
  uint64(value: bigint, member: string): this {
    if (typeof value !== "bigint" || value < 0n || value >= 1n << 64n)
      throw this.#refused(value, member, "a bigint in [0, 2^64)");
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value);
    this.#parts.push(bytes);
    return this;
  }

  /** One byte: 1 for true, 0 for false. */
  flag(value: boolean, member: string): this {
    if (typeof value !== "boolean") throw this.#refused(value, member, "true or false");
    return this.uint(value ? 1 : 0, 1, member);
  }

  /** Bytes as they are. */
  bytes(value: Uint8Array, member: string): this {
    if (!(value instanceof Uint8Array)) throw this.#refused(value, member, "a Uint8Array");
    this.#parts.push(value);
    return this;
  }

  /** The frame. When it has one part, it shares that part's memory. */
  finish(): Uint8Array {
    if (this.#parts.length === 1) return this.#parts[0]!;
    const frame = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let offset = 0;
    for (const part of this.#parts) {
      frame.set(part, offset);
      offset += part.length;
    }
    return frame;
  }

  #refused(value: unknown, member: string, rule: string): Error {
    return schemaError(this.#subject, `$.${member}`, `${describe(value)} is refused: expected ${rule}`, {
      value,
      rule,
    });
  }
}

/** Reads the parts of one binary frame. Nothing is copied: bytes are views of the frame. */
export class FrameReader {
  readonly #subject: Subject;
  readonly #frame: Uint8Array;
  readonly #view: DataView;
  readonly #lenient: boolean;
  #offset = 0;

  constructor(subject: Subject, frame: Uint8Array, lenient: boolean) {
    if (!(frame instanceof Uint8Array))
      throw schemaError(subject, "$", `the frame ${describe(frame)} is no Uint8Array`, { value: frame });
    this.#subject = subject;
    this.#frame = frame;
    this.#view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
    this.#lenient = lenient;
  }

  /** Bytes that are not read yet. */
  get left(): number {
    return this.#frame.length - this.#offset;
  }

  /** Takes constant ASCII text, and refuses anything else. */
  tag(text: string): void {
    const start = this.#offset;
    const found = this.#frame.subarray(start, start + text.length);
    if (found.length !== text.length || found.some((byte, index) => byte !== text.charCodeAt(index)))
      throw this.#refused(this.#frame, `expected the tag "${text}"`);
    this.#offset += text.length;
  }

  /** An integer of 1, 2 or 4 bytes. `member` names it in errors. */
  uint(width: number, member: string): number {
    const at = this.#take(width, member);
    return width === 1
      ? this.#view.getUint8(at)
      : width === 2
        ? this.#view.getUint16(at)
        : this.#view.getUint32(at);
  }

  /**
   * An integer that has the frame to itself. A lenient reader does as vLLM's: the whole frame is the number, however
   * long it is.
   */
  wholeUint(width: number, member: string): number {
    if (!this.#lenient) return this.uint(width, member);
    let value = 0;
    for (const byte of this.#frame) value = value * 256 + byte;
    if (value >= 2 ** (8 * width))
      throw this.#refused(this.#frame, `${member} is above ${2 ** (8 * width) - 1}`);
    this.#offset = this.#frame.length;
    return value;
  }

  /** An integer of 8 bytes. */
  uint64(member: string): bigint {
    return this.#view.getBigUint64(this.#take(8, member));
  }

  /** One byte that is 1 or 0. */
  flag(member: string): boolean {
    const value = this.uint(1, member);
    if (value > 1) throw this.#refused(this.#frame, `${member} is ${value}, expected 0 or 1`);
    return value === 1;
  }

  /** All bytes that are left. */
  rest(): Uint8Array {
    const start = this.#offset;
    this.#offset = this.#frame.length;
    return this.#frame.subarray(start);
  }

  /** Ends the frame: nothing may be left. */
  end(): void {
    if (this.left > 0) throw this.#refused(this.#frame, `${this.left} bytes follow the last part`);
  }

  #take(width: number, member: string): number {
    if (this.left < width)
      throw this.#refused(this.#frame, `${member} needs ${width} bytes, ${this.left} are left`);
    this.#offset += width;
    return this.#offset - width;
  }

  #refused(value: Uint8Array, problem: string): Error {
    return schemaError(this.#subject, "$", `the frame ${describe(value)} is refused: ${problem}`, { value });
  }
}

/** One reader a frame. A lenient reader ignores frames behind the last, as vLLM's does. */
export function frameReaders(
  subject: Subject,
  frames: readonly Uint8Array[],
  count: number,
  lenient: boolean,
): FrameReader[] {
  if (!Array.isArray(frames) || (lenient ? frames.length < count : frames.length !== count))
    throw schemaError(
      subject,
      "$",
      `expected ${count} frames, not ${Array.isArray(frames) ? frames.length : describe(frames)}`,
      { value: frames },
    );
  return frames.slice(0, count).map((frame: Uint8Array) => new FrameReader(subject, frame, lenient));
}
