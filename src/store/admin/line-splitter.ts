import { ByteCollector } from "./byte-collector.js";

const NEWLINE = 0x0a;

/** Cuts bytes that arrive in parts into lines, one after the other as somebody wants them. */
export class LineSplitter {
  readonly #begun = new ByteCollector();

  /** The lines that end in `part`, without their ends. All must be taken before the next part. */
  *linesOf(part: Buffer): Generator<Buffer, void, undefined> {
    let start = 0;
    for (let end = part.indexOf(NEWLINE); end >= 0; end = part.indexOf(NEWLINE, start)) {
      const line = part.subarray(start, end);
      start = end + 1;
      if (this.#begun.size === 0) yield line;
      else {
        this.#begun.add(line);
        yield this.#begun.take();
      }
    }
    if (start < part.length) this.#begun.add(part.subarray(start));
  }

  /** Bytes of the line that has not ended yet. */
  get begun(): number {
    return this.#begun.size;
  }

  /** The line that has not ended. */
  rest(): Buffer {
    return this.#begun.take();
  }
}
