/** A growing byte buffer, the common ground of the encoders. */
export class ByteWriter {
  /** Bytes that were written. */
  length = 0;
  #bytes: Uint8Array;
  #view: DataView;

  constructor(capacity: number = 256) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Appends 8 bits. */
  u8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.length++] = value;
  }

  /** Appends 16 bits. */
  u16(value: number, littleEndian: boolean): void {
    this.#reserve(2);
    this.#view.setUint16(this.length, value, littleEndian);
    this.length += 2;
  }

  /** Appends 32 bits. */
  u32(value: number, littleEndian: boolean): void {
    this.#reserve(4);
    this.#view.setUint32(this.length, value, littleEndian);
    this.length += 4;
  }

  /** Appends 64 bits. */
  u64(value: bigint, littleEndian: boolean): void {
    this.#reserve(8);
    this.#view.setBigUint64(this.length, value, littleEndian);
    this.length += 8;
  }

  /** Appends bytes as they are. */
  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.length);
    this.length += value.length;
  }

  /** Overwrites eight bytes that were written before. */
  patchU64(offset: number, value: bigint, littleEndian: boolean): void {
    this.#view.setBigUint64(offset, value, littleEndian);
  }

  /** Takes `count` bytes out at `offset`. */
  remove(offset: number, count: number): void {
    this.#bytes.copyWithin(offset, offset + count, this.length);
    this.length -= count;
  }

  /** What was written, as a view that later writes may overwrite. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  #reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.length + count));
    grown.set(this.#bytes.subarray(0, this.length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}
