import { describe, MooncakeKvError } from "../../errors.js";
import {
  filledOption,
  JOIN_OPTIONS,
  type JoinOptions,
  type ResolvedJoinOptions,
  resolveJoinOptions,
  sizeOption,
} from "../cluster/join-options.js";
import { LONGEST_MS } from "../shared/deadline.js";
import { optionError, wholeOption, wordOption } from "../shared/option-values.js";

/** Options of the Mooncake store. Numbers may be text, as in a URI; sizes are as `"64MiB"`. */
export interface MooncakeStoreOptions extends JoinOptions {
  /** The Python that has Mooncake's package. Default: `MOONCAKE_KV_PYTHON`, or `python3`. */
  readonly python?: string | undefined;
  /** Bytes of the memory in which scattered values are gathered. Default: 64 MiB. */
  readonly staging?: number | bigint | string | undefined;
  /** Commands that the sidecar works on at a time. Default: 8. */
  readonly threads?: number | string | undefined;
  /**
   * Milliseconds without a sign of life after which the sidecar counts as dead and is replaced. A Python that is held up for
   * less, by a long call or a busy machine, loses nothing. Default: 5,000.
   */
  readonly unresponsiveMs?: number | string | undefined;
  /**
   * What happens to values that lie scattered in memory: `gather` copies them together (fast over TCP), `direct` lets
   * Mooncake fetch the pieces from shared arenas (for RDMA). Default: `gather`.
   */
  readonly scattered?: "gather" | "direct" | undefined;
  /**
   * What the sidecar's environment has besides this process's own. For programs; a URI can't say it. `MC_LOG_LEVEL=ERROR`
   * is what makes Mooncake's client quiet; its C++ does not look at `GLOG_minloglevel`.
   */
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** The names of the options, as a URI writes them. */
export const MOONCAKE_OPTIONS: readonly Exclude<keyof MooncakeStoreOptions, "environment">[] = [
  ...JOIN_OPTIONS,
  "python",
  "staging",
  "threads",
  "unresponsiveMs",
  "scattered",
];

/** Options with every default filled in. */
export interface ResolvedMooncakeOptions extends ResolvedJoinOptions {
  readonly python: string;
  readonly stagingBytes: number;
  readonly threads: number;
  readonly unresponsiveMs: number;
  readonly scattered: "gather" | "direct";
  /** The whole environment of the sidecar. */
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * Checks options, whose values may still be the text of a URI, and fills in what configuration file and environment say.
 * An option wins over the file, the file over single environment variables.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be, or the file and what is wrong with it.
 */
export async function resolveMooncakeOptions(
  options: Readonly<Partial<Record<keyof MooncakeStoreOptions, unknown>>>,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<ResolvedMooncakeOptions> {
  const { python, staging, threads, unresponsiveMs, scattered } = options;
  return {
    ...(await resolveJoinOptions(options, environment)),
    python: filledOption("python", python ?? (environment["MOONCAKE_KV_PYTHON"] || "python3"))!,
    stagingBytes: stagingSize(staging),
    threads: wholeOption("threads", threads ?? 8, { most: 64 }),
    unresponsiveMs: wholeOption("unresponsiveMs", unresponsiveMs ?? 5_000, { least: 100, most: LONGEST_MS }),
    scattered: scattered === undefined ? "gather" : wordOption("scattered", scattered, ["gather", "direct"]),
    environment: { ...environment, ...ownEnvironment(options.environment) },
  };
}

function stagingSize(value: unknown): number {
  const size = sizeOption("staging", value ?? 64 << 20);
  if (size < 1n << 20n || size > 2n ** 32n - 1n)
    throw optionError("staging", value, "a size from 1MiB to below 4GiB");
  return Number(size);
}

/** Variables that a process can have: Node refuses to start one with others. */
function ownEnvironment(given: unknown): NodeJS.ProcessEnv {
  if (given === undefined) return {};
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw optionError("environment", given, "an object of variables, each with text");
  for (const [name, value] of Object.entries(given))
    if (
      name === "" ||
      name.includes("=") ||
      (value !== undefined && typeof value !== "string") ||
      `${name}${value}`.includes("\0")
    )
      // The value may be a secret.
      throw new MooncakeKvError(
        "ERR_CONFIG",
        `environment has ${describe(name)} with a name or a value that no process can have: both are text without NUL, the name without =`,
        { option: "environment", name },
      );
  return given as NodeJS.ProcessEnv;
}
