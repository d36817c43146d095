import { createReadStream } from "node:fs";
import type { CommandContext } from "../command.js";
import { UsageError } from "../usage-error.js";

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

/** The largest input, in bytes. More is split: a command holds all of it, several times over. */
export const MAX_INPUT_BYTES: number = 256 << 20;

/**
 * The input of a command: its arguments (one a line), else the file, else stdin.
 *
 * @throws UsageError when it is given twice or not at all, or can't be read as UTF-8 text.
 */
export async function readInput(context: CommandContext, options: InputOptions): Promise<InputText> {
  const { args = [], file, what } = options;
  if (args.length > 0 && file !== undefined)
    throw new UsageError(`${what} are given as arguments and as --file; use one of them`);
  if (args.length > 0) return { text: args.join("\n"), source: "the arguments" };
  if (file !== undefined && file !== "-") return readTextFile(file);
  if (context.io.stdin.isTTY)
    throw new UsageError(`no ${what}: give them as arguments, with --file, or on stdin`);
  return { text: decode(await readAll(context.io.stdin, "stdin"), "stdin"), source: "stdin" };
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

async function readTextFile(path: string): Promise<InputText> {
  const source = JSON.stringify(path);
  const bytes = await readAll(createReadStream(path), source).catch((error: unknown) => {
    if (error instanceof UsageError) throw error;
    return unreadable(path, error as NodeJS.ErrnoException);
  });
  return { text: decode(bytes, source), source };
}

/** All bytes of a stream. @throws UsageError for more than `MAX_INPUT_BYTES`: some streams never end. */
async function readAll(stream: AsyncIterable<unknown>, source: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const piece of stream) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : (piece as Uint8Array);
      size += bytes.length;
      if (size > MAX_INPUT_BYTES)
        throw new UsageError(
          `${source} has more than ${MAX_INPUT_BYTES >> 20} MiB, the most that a command takes; split it`,
          { source, limit: MAX_INPUT_BYTES },
        );
      pieces.push(bytes);
    }
  } catch (error) {
    if (error instanceof UsageError || source !== "stdin") throw error;
    throw new UsageError(`cannot read stdin: ${(error as Error).message}`);
  }
  return Buffer.concat(pieces);
}

function decode(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    const reason =
      error instanceof TypeError
        ? "not UTF-8 text"
        : `${bytes.length} bytes are too many for one text; split the input`;
    throw new UsageError(`${source}: ${reason}`, { source });
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
