import { UsageError } from "../usage-error.js";

/** Bytes of an input that is read as a whole: about five million token ids. */
export const MAX_INPUT_BYTES: number = 32 << 20;

/** Bytes of one line where the input is read line by line. */
export const MAX_LINE_BYTES: number = 16 << 20;

/** Lines of one file where something is kept of each that fails. */
export const MAX_KEPT_LINES = 1_000_000;

/** The error for a file of more lines than can be reported on. */
export function tooManyLines(source: string): UsageError {
  return new UsageError(`${source}: more than ${MAX_KEPT_LINES} lines, the limit of a run; split it`, {
    source,
    limit: MAX_KEPT_LINES,
  });
}

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
