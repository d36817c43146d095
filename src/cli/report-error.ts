import { isMooncakeKvError } from "../errors.js";
import type { CommandContext } from "./command.js";
import { jsonText } from "./json.js";
import { oneLine } from "./text.js";
import { UsageError } from "./usage-error.js";

/** Codes of operations that failed although their input was good. */
const FAILED_OPERATIONS: readonly string[] = ["ERR_STORE", "ERR_NATIVE"];

/** An error as the command line shows it. */
export interface ReportedError {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** 2 for bad input, 1 for a failed operation or a fault of ours. */
  readonly exitCode: 1 | 2;
}

/** What to show for a thrown value, and what to end with. */
export function reportedError(error: unknown): ReportedError {
  if (error instanceof UsageError)
    return { code: error.code, message: error.message, details: error.details, exitCode: 2 };
  if (isMooncakeKvError(error)) {
    const exitCode = FAILED_OPERATIONS.includes(error.code) ? 1 : 2;
    return { code: error.code, message: error.message, details: error.details, exitCode };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: "ERR_UNEXPECTED", message, details: {}, exitCode: 1 };
}

/**
 * Shows a thrown value: one line on stderr, or one object on stdout where JSON was asked for. With MOONCAKE_KV_DEBUG
 * set, the stack follows on stderr.
 */
export async function reportError(error: unknown, context: CommandContext, json: boolean): Promise<number> {
  const { code, message, details, exitCode } = reportedError(error);
  context.stdout.discard();
  if (json) {
    await context.stdout.line(jsonText({ error: { code, message, details } }));
    await context.stdout.flush();
  } else await context.stderr.line(`mooncake-kv: ${code}: ${oneLine(message)}`);
  if (context.env["MOONCAKE_KV_DEBUG"] && error instanceof Error)
    await context.stderr.line(error.stack ?? String(error));
  return exitCode;
}
