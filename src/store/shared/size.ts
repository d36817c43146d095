import { describe, MooncakeKvError } from "../../errors.js";

const UNITS: Readonly<Record<string, bigint>> = {
  "": 1n,
  K: 1n << 10n,
  M: 1n << 20n,
  G: 1n << 30n,
  T: 1n << 40n,
};

/**
 * A size in bytes: a whole number, alone or followed by K, M, G or T (upper or lower case, then optionally `B` or
 * `iB`). All units are powers of 1024, `GB` like `GiB`, as Mooncake and vLLM count memory.
 *
 * @param what names the option in the error.
 * @throws MooncakeKvError `ERR_CONFIG` for anything else, 0 included.
 */
export function parseSize(value: unknown, what: string): bigint {
  const size = parsed(value);
  if (size === undefined || size <= 0n || size >= 1n << 63n)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `${what} is ${typeof value === "bigint" ? value : describe(value)}; a size is a whole number of bytes of at least 1, such as 1073741824, "512MiB" or "1G"`,
      { option: what, value },
    );
  return size;
}

function parsed(value: unknown): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (typeof value !== "string") return undefined;
  const match = /^\s*(\d{1,20})\s*(?:([kmgt])(?:i?b)?|b)?\s*$/i.exec(value);
  if (!match) return undefined;
  return BigInt(match[1]!) * UNITS[(match[2] ?? "").toUpperCase()]!;
}
