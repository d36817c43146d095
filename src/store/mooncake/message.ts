/** Bytes of the length in front of a message and of each of its frames. */
const LENGTH = 4;

/** Messages up to this many bytes are copied together, so that they cost one write. */
const SMALL = 1 << 16;

/**
 * A message as it goes over the socket: its length in bytes (32-bit, big-endian) and its frames, each with its length in
 * front the same way. Long frames are not copied.
 */
export function encodeMessage(frames: readonly Uint8Array[]): Uint8Array[] {
  const size = frames.reduce((sum, frame) => sum + LENGTH + frame.length, 0);
  if (size <= SMALL) {
    const message = Buffer.allocUnsafe(LENGTH + size);
    let at = message.writeUInt32BE(size, 0);
    for (const frame of frames) {
      at = message.writeUInt32BE(frame.length, at);
      message.set(frame, at);
      at += frame.length;
    }
    return [message];
  }
  return [lengthOf(size), ...frames.flatMap((frame) => [lengthOf(frame.length), frame])];
}

function lengthOf(bytes: number): Uint8Array {
  const length = Buffer.allocUnsafe(LENGTH);
  length.writeUInt32BE(bytes, 0);
  return length;
}

/** Puts messages together from the chunks in which they arrive. */
export class MessageReader {
  readonly #most: () => number;
  #chunks: Uint8Array[] = [];
  #size = 0;

  /** `most` gives the bytes of the longest message that anybody waits for. */
  constructor(most: () => number) {
    this.#most = most;
  }

  /**
   * The messages that are complete with this chunk, each as its frames.
   *
   * @throws Error for a message that is longer than any that is waited for, as soon as its length is known, and for a frame
   * that is longer than its message.
   */
  push(chunk: Uint8Array): Uint8Array[][] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    const messages: Uint8Array[][] = [];
    for (let next = this.#take(); next !== undefined; next = this.#take()) messages.push(split(next));
    return messages;
  }

  #take(): Buffer | undefined {
    if (this.#size < LENGTH) return undefined;
    if (this.#chunks[0]!.length < LENGTH) this.#join();
    const first = this.#chunks[0]!;
    const length = new DataView(first.buffer, first.byteOffset, LENGTH).getUint32(0);
    if (length > this.#most())
      throw new Error(`a message of ${length} bytes, where ${this.#most()} are due at most`);
    const end = LENGTH + length;
    if (this.#size < end) return undefined;
    if (first.length < end) this.#join();
    const all = this.#chunks[0]!;
    const message = Buffer.from(all.buffer, all.byteOffset + LENGTH, end - LENGTH);
    this.#chunks[0] = all.subarray(end);
    if (this.#chunks[0].length === 0) this.#chunks.shift();
    this.#size -= end;
    return message;
  }

  #join(): void {
    this.#chunks = [Buffer.concat(this.#chunks)];
  }
}

function split(message: Buffer): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < message.length; ) {
    const start = at + LENGTH;
    if (start > message.length) throw new Error("a message ends in the middle of a length");
    at = start + message.readUInt32BE(at);
    if (at > message.length) throw new Error("a frame is longer than its message");
    frames.push(message.subarray(start, at));
  }
  return frames;
}
