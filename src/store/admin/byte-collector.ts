/**
 * Puts together bytes that arrive in parts. However small the parts are, it takes no more than twice the memory, and
 * twice the copying, of what has arrived.
 */
export class ByteCollector {
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** What has arrived; valid until the next part does. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  /** The first part is kept as it is: nobody may change it. */
  add(part: Buffer): void {
    const size = this.#size + part.length;
    if (this.#size === 0) this.#bytes = part;
    else {
      if (size > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(size, 2 * this.#size));
        this.#bytes.copy(larger, 0, 0, this.#size);
        this.#bytes = larger;
      }
      part.copy(this.#bytes, this.#size);
    }
    this.#size = size;
  }

  /** Gives what has arrived away, and starts anew. */
  take(): Buffer {
    const bytes = this.bytes;
    this.#bytes = Buffer.alloc(0);
    this.#size = 0;
    return bytes;
  }
}
