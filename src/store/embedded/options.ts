import { describe, MooncakeKvError } from "../../errors.js";
import { parseSize } from "../size.js";

/** Options of the embedded store. */
export interface EmbeddedStoreOptions {
  /** Bytes for values, as a number, a bigint, or text such as `"1GiB"`. Default 1 GiB. */
  readonly capacity?: number | bigint | string;
  /** Threads that share one large copy. Default: as many as there are processors, at least 2 and at most 4. */
  readonly copyThreads?: number;
}

/** The names of the options, as a URI writes them. */
export const EMBEDDED_OPTIONS: readonly (keyof EmbeddedStoreOptions)[] = ["capacity", "copyThreads"];

/** Options with every default filled in. */
export interface ResolvedEmbeddedOptions {
  readonly capacity: bigint;
  /** 0: the store chooses. */
  readonly copyThreads: number;
}

/**
 * Checks options, whose values may still be the text of a URI.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveEmbeddedOptions(
  options: Readonly<Partial<Record<keyof EmbeddedStoreOptions, unknown>>>,
): ResolvedEmbeddedOptions {
  return {
    capacity: parseSize(options.capacity ?? 1n << 30n, "capacity"),
    copyThreads: options.copyThreads === undefined ? 0 : threadCount(options.copyThreads),
  };
}

function threadCount(value: unknown): number {
  const count = typeof value === "string" && /^\d{1,3}$/.test(value) ? Number(value) : value;
  if (typeof count !== "number" || !Number.isInteger(count) || count < 1 || count > 64)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `copyThreads is ${describe(value)}; it is a whole number from 1 to 64`,
      { option: "copyThreads", value },
    );
  return count;
}
