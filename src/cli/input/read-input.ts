import { createReadStream } from "node:fs";
import type { CommandContext } from "../command.js";
import type { CliIo } from "../io.js";
import { UsageError } from "../usage-error.js";
import { inputTooLarge, MAX_INPUT_BYTES } from "./limits.js";
import { type Line, linesOf } from "./lines.js";

/** Bytes that are asked of a file at a time. */
const PIECE_BYTES = 1 << 20;

/** Text to work on, and where it came from, for messages. */
export interface InputText {
  readonly text: string;
  /** `the arguments`, `stdin` or the quoted path. */
  readonly source: string;
}

/** Where a command may find its input. */
export interface InputOptions {
  /** What was given as arguments, if any. */
  readonly args?: readonly string[] | undefined;
  /** A path, or `-` for stdin. */
  readonly file?: string | undefined;
  /** What is read, for messages: `token ids`. */
  readonly what: string;
}

/**
 * The input of a command: its arguments (one a line), else the file, else stdin.
 *
 * @throws UsageError when it is given twice or not at all, is larger than `MAX_INPUT_BYTES`, or can't be read as UTF-8 text.
 */
export async function readInput(context: CommandContext, options: InputOptions): Promise<InputText> {
  const { pieces, source } = openInput(context, options);
  return { text: decode(await readAll(pieces, source), source), source };
}

/**
 * The same input line by line, for what may be long: only the lines are bounded.
 *
 * @throws UsageError as `readInput`, and for a line beyond `MAX_LINE_BYTES`.
 */
export function readInputLines(
  context: CommandContext,
  options: InputOptions,
): { readonly lines: AsyncIterable<Line>; readonly source: string } {
  const { pieces, source } = openInput(context, options);
  return { lines: linesOf(pieces, source), source };
}

/** The lines of a file. @throws UsageError when it can't be read, or for a line beyond `MAX_LINE_BYTES`. */
export function readFileLines(path: string): AsyncIterable<Line> {
  return linesOf(filePieces(path), JSON.stringify(path));
}

/** The text of a file. @throws UsageError when it can't be read, is too large, or is no UTF-8 text. */
export async function readTextFile(path: string): Promise<string> {
  const source = JSON.stringify(path);
  return decode(await readAll(filePieces(path), source), source);
}

function openInput(
  { io }: CommandContext,
  { args = [], file, what }: InputOptions,
): { readonly pieces: AsyncIterable<Uint8Array>; readonly source: string } {
  if (args.length > 0 && file !== undefined)
    throw new UsageError(`${what} are given as arguments and as --file; use one of them`);
  if (args.length > 0) return { pieces: argumentPieces(args), source: "the arguments" };
  if (file !== undefined && file !== "-") return { pieces: filePieces(file), source: JSON.stringify(file) };
  if (io.stdin.isTTY) throw new UsageError(`no ${what}: give them as arguments, with --file, or on stdin`);
  return { pieces: stdinPieces(io), source: "stdin" };
}

/** A text file, or stdin for `-`. @throws UsageError when it can't be read. */
export async function readFileOrStdin(context: CommandContext, file: string): Promise<InputText> {
  return readInput(context, { file, what: "input" });
}

/** The value of a JSON text. @throws UsageError when it is none. */
export function parseJson({ text, source }: InputText): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UsageError(`${source}: not JSON: ${(error as Error).message}`, { source });
  }
}

/** Whether a text can only be meant as a JSON array or object. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

async function* argumentPieces(args: readonly string[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(args.join("\n"));
}

async function* filePieces(path: string): AsyncGenerator<Uint8Array> {
  const stream = createReadStream(path, { highWaterMark: PIECE_BYTES });
  try {
    for await (const piece of stream) yield piece as Uint8Array;
  } catch (error) {
    unreadable(path, error as NodeJS.ErrnoException);
  } finally {
    stream.destroy();
  }
}

async function* stdinPieces({ stdin }: CliIo): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of stdin)
      yield typeof piece === "string" ? Buffer.from(piece) : (piece as Uint8Array);
  } catch (error) {
    throw new UsageError(`cannot read stdin: ${(error as Error).message}`);
  }
}

async function readAll(pieces: AsyncIterable<Uint8Array>, source: string): Promise<Uint8Array> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > MAX_INPUT_BYTES) throw inputTooLarge(source);
    read.push(piece);
  }
  return Buffer.concat(read);
}

function decode(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${source}: not UTF-8 text`, { source });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a folder",
  EACCES: "permission denied",
};

/** The error for a file that can't be read. */
export function unreadable(path: string, error: NodeJS.ErrnoException): never {
  const reason = REASONS[error.code ?? ""] ?? error.message;
  throw new UsageError(`cannot read ${JSON.stringify(path)}: ${reason}`, { path, reason: error.code });
}
