/** How deep lists and maps may lie in each other. The deepest type needs a fraction of it. */
const MAX_DEPTH = 32;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Walks over a MessagePack value without building anything: what is wrong with it, or undefined. A decoder believes
 * the lengths that it reads, so that a few hostile bytes could make it allocate gigabytes; after this walk each
 * length is known to be covered by bytes that exist.
 */
export function scanMessagePack(bytes: Uint8Array): string | undefined {
  return new Scan(bytes).run();
}

class Scan {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;
  /** Values that are still due, one number an open list or map. */
  readonly #due: number[] = [1];
  #problem: string | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  run(): string | undefined {
    const due = this.#due;
    while (due.length > 0) {
      if (due[due.length - 1] === 0) due.pop();
      else {
        due[due.length - 1]!--;
        this.#value();
        if (this.#problem !== undefined) return this.#problem;
      }
    }
    const left = this.#bytes.length - this.#offset;
    return left > 0 ? `${left} bytes follow the value` : undefined;
  }

  #value(): void {
    const head = this.#uint(1);
    if (head < 0x80 || head >= 0xe0) return;
    if (head < 0x90) this.#open(2 * (head & 0x0f));
    else if (head < 0xa0) this.#open(head & 0x0f);
    else if (head < 0xc0) this.#text(head & 0x1f);
    else this.#marked(head);
  }

  /** A value whose first byte only says its kind. */
  #marked(head: number): void {
    if (head === 0xc0 || head === 0xc2 || head === 0xc3) return;
    if (head >= 0xc4 && head <= 0xc6) this.#skip(this.#uint(1 << (head - 0xc4)));
    else if (head === 0xca || head === 0xcb) this.#skip(4 << (head - 0xca));
    else if (head >= 0xcc && head <= 0xcf) this.#skip(1 << (head - 0xcc));
    else if (head >= 0xd0 && head <= 0xd3) this.#skip(1 << (head - 0xd0));
    else if (head >= 0xd9 && head <= 0xdb) this.#text(this.#uint(1 << (head - 0xd9)));
    else if (head === 0xdc || head === 0xdd) this.#open(this.#uint(2 << (head - 0xdc)));
    else if (head === 0xde || head === 0xdf) this.#open(2 * this.#uint(2 << (head - 0xde)));
    else
      this.#problem ??= `byte ${this.#offset - 1} starts a value of kind 0x${head.toString(16)}, which is not used here`;
  }

  #open(values: number): void {
    if (values > this.#bytes.length - this.#offset)
      this.#problem = `at byte ${this.#offset}, ${values} values are announced but only ${this.#bytes.length - this.#offset} bytes are left`;
    else if (this.#due.length > MAX_DEPTH)
      this.#problem = `more than ${MAX_DEPTH} lists or maps lie in each other`;
    else this.#due.push(values);
  }

  #text(length: number): void {
    const start = this.#offset;
    this.#skip(length);
    if (this.#problem !== undefined) return;
    try {
      utf8.decode(this.#bytes.subarray(start, start + length));
    } catch {
      this.#problem = `the text at byte ${start} is not UTF-8`;
    }
  }

  #skip(length: number): void {
    if (length > this.#bytes.length - this.#offset)
      this.#problem ??= `the value ends in the middle, at byte ${this.#bytes.length}`;
    else this.#offset += length;
  }

  #uint(width: number): number {
    const at = this.#offset;
    this.#skip(width);
    if (this.#problem !== undefined) return 0;
    return width === 1
      ? this.#view.getUint8(at)
      : width === 2
        ? this.#view.getUint16(at)
        : this.#view.getUint32(at);
  }
}
