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
  #chunks: Uint8Array[] = [];
  #size = 0;

  /** The messages that are complete with this chunk, each as its frames. @throws Error when a frame is longer than its message. */
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
    const end = LENGTH + new DataView(first.buffer, first.byteOffset, LENGTH).getUint32(0);
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
    at = start + message.readUInt32BE(at);
    if (at > message.length) throw new Error("a frame is longer than its message");
    frames.push(message.subarray(start, at));
  }
  return frames;
}
