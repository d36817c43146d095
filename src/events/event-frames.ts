/** A published batch as its frames say, still encoded. */
export interface EventMessage {
  readonly topic: Uint8Array;
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

const NO_TOPIC = new Uint8Array(0);
const END = (1n << 64n) - 1n;

/** A message of a SUB socket: topic, number, payload. Undefined for other frames. */
export function parseEventFrames(frames: readonly Uint8Array[]): EventMessage | undefined {
  const [topic, number, payload] = frames;
  const sequence = sequenceOf(number);
  if (frames.length !== 3 || sequence === undefined) return undefined;
  return { topic: topic!, sequence, payload: payload! };
}

/**
 * A message of a replay as a DEALER socket gets it: an empty frame, the topic (engines before vLLM 0.33 may leave it out),
 * number, payload. `"end"` for the end marker, undefined for other frames.
 */
export function parseReplayFrames(frames: readonly Uint8Array[]): EventMessage | "end" | undefined {
  if (frames.length < 3 || frames.length > 4 || frames[0]!.length > 0) return undefined;
  const [number, payload] = frames.slice(-2) as [Uint8Array, Uint8Array];
  const sequence = sequenceOf(number);
  if (sequence === undefined) return undefined;
  if (sequence === END) return "end";
  return { topic: frames.length === 4 ? frames[1]! : NO_TOPIC, sequence, payload };
}

function sequenceOf(frame: Uint8Array | undefined): bigint | undefined {
  if (frame?.length !== 8) return undefined;
  return new DataView(frame.buffer, frame.byteOffset, 8).getBigUint64(0);
}

/** Whether two messages are the same batch of the same engine: a batch holds the time at which it was made. */
export function isSameMessage(a: EventMessage, b: EventMessage): boolean {
  return a.sequence === b.sequence && Buffer.compare(a.payload, b.payload) === 0;
}

/** The lengths of frames, for a message about frames that make no sense. There may be any number of them. */
export function frameSizes(frames: readonly Uint8Array[]): string {
  const most = 8;
  const sizes = frames.slice(0, most).map(({ length }) => length);
  return `${frames.length} frames (${sizes.join(", ")}${frames.length > most ? ", ..." : ""} bytes)`;
}
