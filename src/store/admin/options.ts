import { MooncakeKvError } from "../../errors.js";
import { LONGEST_MS } from "../shared/deadline.js";
import { optionError, wholeOption } from "../shared/option-values.js";

/** Options of the admin store. Numbers may be text, as in a URI. */
export interface AdminStoreOptions {
  /** The master's HTTP interface (its `metrics_port`, 9003 unless set otherwise): `http://host:9003`. */
  readonly url: string;
  /** Milliseconds that a call may take, unless it says so itself. Default: 30,000. */
  readonly deadlineMs?: number | string | undefined;
  /** HTTP requests and object reads that run at a time. Default: 8. */
  readonly concurrency?: number | string | undefined;
  /**
   * The lease that the master grants, in milliseconds (its `default_kv_lease_ttl`); a read renews its lease after half
   * of it, and fails with -707 when it ran out. Default: 5,000, the shortest default of any release.
   */
  readonly leaseMs?: number | string | undefined;
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

/**
 * Checks options, whose values may still be the text of a URI.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveAdminOptions(
  options: Readonly<Partial<Record<keyof AdminStoreOptions, unknown>>>,
): ResolvedAdminOptions {
  const whole = (option: keyof AdminStoreOptions, otherwise: number, most: number): number =>
    options[option] === undefined ? otherwise : wholeOption(option, options[option], { most });
  return {
    url: address(options.url),
    deadlineMs: whole("deadlineMs", 30_000, LONGEST_MS),
    concurrency: whole("concurrency", 8, 64),
    leaseMs: whole("leaseMs", 5_000, LONGEST_MS),
  };
}

function address(value: unknown): URL {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  // What may be a password is nobody's to show.
  if (url !== undefined && (url.username !== "" || url.password !== ""))
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "url has a user or a password, which no master asks for; it is written http://host:9003",
      { option: "url" },
    );
  if (
    url === undefined ||
    !["http:", "https:"].includes(url.protocol) ||
    url.search !== "" ||
    url.hash !== ""
  )
    throw optionError(
      "url",
      value,
      "the address of the master's HTTP interface, which is written http://host:9003",
    );
  return url;
}
