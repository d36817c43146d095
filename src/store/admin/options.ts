import { describe, MooncakeKvError } from "../../errors.js";
import { type CallOptions, checkedCallOptions } from "../put-options.js";

/** Options of the admin store. Numbers may be text, as in a URI. */
export interface AdminStoreOptions {
  /** The master's HTTP interface (its `metrics_port`, 9003 unless set otherwise): `http://host:9003`. */
  readonly url: string;
  /** Milliseconds that a call may take, unless it says so itself. Default: 30,000. */
  readonly deadlineMs?: number | string;
  /** HTTP requests and object reads that run at a time. Default: 8. */
  readonly concurrency?: number | string;
  /**
   * The lease that the master grants, in milliseconds (its `default_kv_lease_ttl`); a read renews its lease after half
   * of it, and fails with -707 when it ran out. Default: 5,000, the shortest default of any release.
   */
  readonly leaseMs?: number | string;
}

/** The names of the options; a URI writes `url` behind the colon. */
export const ADMIN_OPTIONS: readonly (keyof AdminStoreOptions)[] = [
  "url",
  "deadlineMs",
  "concurrency",
  "leaseMs",
];

/** Options with every default filled in. */
export interface ResolvedAdminOptions {
  readonly url: URL;
  readonly deadlineMs: number;
  readonly concurrency: number;
  readonly leaseMs: number;
}

/** The longest that a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Checks options, whose values may still be the text of a URI.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveAdminOptions(
  options: Readonly<Partial<Record<keyof AdminStoreOptions, unknown>>>,
): ResolvedAdminOptions {
  return {
    url: address(options.url),
    deadlineMs: whole("deadlineMs", options.deadlineMs, 30_000, LONGEST_MS),
    concurrency: whole("concurrency", options.concurrency, 8, 64),
    leaseMs: whole("leaseMs", options.leaseMs, 5_000, LONGEST_MS),
  };
}

/** Milliseconds for one call. @throws MooncakeKvError `ERR_STORE` for options that a call does not have. */
export function callDeadline(operation: string, options: CallOptions | undefined, otherwise: number): number {
  return Math.min(checkedCallOptions(operation, options).deadlineMs ?? otherwise, LONGEST_MS);
}

function address(value: unknown): URL {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (
    url === undefined ||
    !["http:", "https:"].includes(url.protocol) ||
    url.search !== "" ||
    url.hash !== "" ||
    url.username !== "" ||
    url.password !== ""
  )
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `the address of the master's HTTP interface is ${describe(value)}; it is written http://host:9003`,
      { option: "url", value },
    );
  return url;
}

function whole(option: string, value: unknown, otherwise: number, most: number): number {
  if (value === undefined) return otherwise;
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < 1 || number > most)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `${option} is ${describe(value)}; it is a whole number from 1 to ${most}`,
      { option, value },
    );
  return number;
}
