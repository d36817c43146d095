import { lineTooLong, MAX_LINE_BYTES } from "./limits.js";

/** One line of an input, without its end. */
export interface Line {
  /** From 1, empty lines counted. */
  readonly number: number;
  /** Undefined where the bytes are not UTF-8 text. */
  readonly text: string | undefined;
}

const LINE_END = 0x0a;

/**
 * The lines of bytes that come in pieces. No more than a piece and one line is in memory, however long the input is; it may
 * have no end. A line that is not UTF-8 is told as such, and the others go on.
 *
 * @throws UsageError for a line beyond `MAX_LINE_BYTES`.
 */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>, source: string): AsyncGenerator<Line> {
  let number = 0;
  let open: Uint8Array[] = [];
  let openBytes = 0;
  for await (const piece of pieces) {
    const end = piece.lastIndexOf(LINE_END);
    if (end >= 0) {
      const whole = Buffer.concat([...open, piece.subarray(0, end)]);
      for (const text of decodedLines(whole)) yield { number: checked(++number, text, source), text };
      open = [];
      openBytes = 0;
    }
    const rest = piece.subarray(end + 1);
    if (rest.length > 0) open.push(rest);
    openBytes += rest.length;
    if (openBytes > MAX_LINE_BYTES) throw lineTooLong(source, number + 1);
  }
  if (openBytes > 0)
    for (const text of decodedLines(Buffer.concat(open)))
      yield { number: checked(++number, text, source), text };
}

/** A line that was whole in one piece has not been measured yet. */
function checked(number: number, text: string | undefined, source: string): number {
  if (text !== undefined && text.length > MAX_LINE_BYTES) throw lineTooLong(source, number);
  return number;
}

function decodedLines(bytes: Uint8Array): (string | undefined)[] {
  const whole = decoded(bytes);
  if (whole !== undefined) return whole.split("\n").map(withoutReturn);
  const lines: (string | undefined)[] = [];
  for (let start = 0; start <= bytes.length; ) {
    const found = bytes.indexOf(LINE_END, start);
    const end = found < 0 ? bytes.length : found;
    const text = decoded(bytes.subarray(start, end));
    lines.push(text && withoutReturn(text));
    start = end + 1;
  }
  return lines;
}

/** The text of UTF-8 bytes; undefined where they are none. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
