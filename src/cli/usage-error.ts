/** The code of input that the command line itself can't use: arguments, options, files, JSON. */
export const ERR_USAGE = "ERR_USAGE";

/** Arguments, options or files that a command can't use. Ends the process with 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly code: typeof ERR_USAGE = ERR_USAGE;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.details = details;
  }
}
