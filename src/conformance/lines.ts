import { createReadStream } from "node:fs";
import { MooncakeKvError } from "../errors.js";

/** The longest line of a vector or scenario file, in characters. */
export const MAX_LINE: number = 64 << 20;

/**
 * The lines of a text file, one at a time, whatever their number.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a line of more than `MAX_LINE` characters: no file of vectors has one, and some
 * files never end. The error of the file system for a file that can't be read.
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let number = 1;
  for await (const piece of createReadStream(path)) {
    const parts = decoder.decode(piece as Buffer, { stream: true }).split("\n");
    parts[0] = rest + parts[0]!;
    rest = parts.pop()!;
    for (const line of parts) {
      yield withoutReturn(line);
      number++;
    }
    if (rest.length > MAX_LINE)
      throw new MooncakeKvError(
        "ERR_CONFIG",
        `${path} line ${number} has more than ${MAX_LINE >> 20} Mi characters; a file of vectors has one record a line`,
        { path, line: number, limit: MAX_LINE },
      );
  }
  rest += decoder.decode();
  if (rest !== "") yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
