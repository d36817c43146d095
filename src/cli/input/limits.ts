import { UsageError } from "../usage-error.js";

/** Bytes of an input that is read as a whole: about five million token ids. */
export const MAX_INPUT_BYTES: number = 32 << 20;

/** Bytes of one line where the input is read line by line; there may be any number of lines. */
export const MAX_LINE_BYTES: number = 16 << 20;

/** The error for an input that does not end within the limit. */
export function inputTooLarge(source: string): UsageError {
  return new UsageError(
    `${source}: more than ${MAX_INPUT_BYTES >> 20} MiB, the limit of an input that is read as a whole; split it`,
    { source, limit: MAX_INPUT_BYTES },
  );
}

/** The error for a line that does not end within the limit. */
export function lineTooLong(source: string, number: number): UsageError {
  return new UsageError(
    `${source} line ${number}: more than ${MAX_LINE_BYTES >> 20} MiB, the limit of a line`,
    { source, line: number, limit: MAX_LINE_BYTES },
  );
}
