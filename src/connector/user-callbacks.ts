import { describe, MooncakeKvError } from "../errors.js";

/** What is said about a connector's troubles. What a method throws, or a promise of it rejects with, is nobody's business. */
export interface ConnectorLogger {
  warn(message: string, details: Readonly<Record<string, unknown>>): void;
  info?(message: string, details: Readonly<Record<string, unknown>>): void;
}

/**
 * Calls what a user has handed in, whatever it does: neither what it throws nor a promise that rejects reaches anybody
 * but `onError`. Every callback whose outcome nothing depends on is called here.
 */
export function callUser(callback: () => unknown, onError: (error: unknown) => void = () => {}): void {
  try {
    const outcome = callback() as Partial<PromiseLike<unknown>> | null | undefined;
    if (typeof outcome?.then === "function") Promise.resolve(outcome).then(undefined, onError);
  } catch (error) {
    onError(error);
  }
}

/**
 * A logger that never throws, over one that may; silent without one.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for anything that has no function `warn`.
 */
export function guardedLogger(logger: ConnectorLogger | undefined): Required<ConnectorLogger> {
  if (logger !== undefined && typeof logger?.warn !== "function")
    throw new MooncakeKvError("ERR_CONFIG", `logger is ${describe(logger)}; it must have a function warn`, {
      option: "logger",
    });
  return {
    warn: (message, details) => callUser(() => logger?.warn(message, details)),
    info: (message, details) => callUser(() => logger?.info?.(message, details)),
  };
}
