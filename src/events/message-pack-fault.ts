/** What is wrong with the bytes; the caller says which bytes they are. It has no stack: events can be wrong by the thousands. */
export class MessagePackFault extends Error {
  override readonly name = "MessagePackFault";

  constructor(message: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What is wrong with bytes that are cut off. */
export const CUT_OFF = "the bytes end in the middle";

/** What is wrong where another kind of value was expected. */
export function wrongHead(bytes: Uint8Array, offset: number, expected: string): MessagePackFault {
  const head = (bytes[offset] ?? 0).toString(16).padStart(2, "0");
  return new MessagePackFault(`byte ${offset} (0x${head}) does not begin ${expected}`);
}
