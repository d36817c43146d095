/** Every stable error code of the package, one a concern. */
export type ErrorCode =
  | "ERR_SCHEMA"
  | "ERR_HASH"
  | "ERR_KEY"
  | "ERR_CHUNK"
  | "ERR_LAYOUT"
  | "ERR_REQUEST"
  | "ERR_STORE"
  | "ERR_NATIVE"
  | "ERR_LOOKUP"
  | "ERR_CONFIG";

const brand = Symbol.for("mooncake-kv.error");

/**
 * The base of every error this package throws.
 *
 * `code` is stable and meant for programs; `message` says what was wrong, with which value, and what would be
 * right; `details` carries the same facts as data.
 */
export class MooncakeKvError extends Error {
  /** Stable, for programs: one a concern of the package. */
  readonly code: ErrorCode;
  /** The facts of the message as data. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    details: Record<string, unknown> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "MooncakeKvError";
    this.code = code;
    this.details = details;
    Object.defineProperty(this, brand, { value: true });
  }
}

/**
 * Whether `value` is an error of this package, optionally with one `code`. Works across two loaded copies of the
 * package, where `instanceof` does not.
 */
export function isMooncakeKvError(value: unknown, code?: ErrorCode): value is MooncakeKvError {
  return (
    value instanceof Error &&
    (value as unknown as Record<symbol, unknown>)[brand] === true &&
    (code === undefined || (value as MooncakeKvError).code === code)
  );
}

/**
 * A value as it may stand in an error message: JSON-like, one line, at most `limit` characters. Never throws.
 */
export function describe(value: unknown, limit: number = 60): string {
  let text: string;
  try {
    text = plain(value);
  } catch {
    text = `[${typeof value} that can't be shown]`;
  }
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

function plain(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return `[function ${value.name}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Uint8Array) return `bytes(${value.length}) ${hexHead(value)}`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${value.byteLength} bytes)`;
  if (value instanceof Map || value instanceof Set) return `${value.constructor.name}(${value.size})`;
  const text = JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? `${item}n` : item));
  return text ?? String(value);
}

function hexHead(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes.subarray(0, 16)) text += byte.toString(16).padStart(2, "0");
  return bytes.length > 16 ? `${text}…` : text;
}
