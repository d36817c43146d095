import { describe, MooncakeKvError } from "../../errors.js";
import { parseSize } from "../size.js";
import { parseMasterAddress } from "./master-address.js";
import { type MooncakeSettings, readConfigFile, settingsFromEnvironment } from "./settings.js";

/** Options of the Mooncake store. Numbers may be text, as in a URI; sizes are as `"64MiB"`. */
export interface MooncakeStoreOptions {
  /** Mooncake's JSON configuration file. Default: the one that `MOONCAKE_CONFIG_PATH` names, if any. */
  readonly config?: string;
  /** host:port of the master. Default: `master_server_address` of the file, or `MOONCAKE_MASTER`. */
  readonly master?: string;
  /** Default: `metadata_server` of the file, `MOONCAKE_TE_META_DATA_SERVER`, or `P2PHANDSHAKE`. */
  readonly metadataServer?: string;
  /** Name or address under which the cluster reaches this machine. Default: the one that leads to the master. */
  readonly localHostname?: string;
  /** `tcp` or `rdma`. */
  readonly protocol?: string;
  /** Devices for RDMA. */
  readonly deviceName?: string;
  /** Bytes that this process gives to the cluster. Default: what the configuration says, else 0. */
  readonly globalSegmentSize?: number | bigint | string;
  /** Bytes of Mooncake's own buffer, which this backend does not use. Default: 16 MiB. */
  readonly localBufferSize?: number | bigint | string;
  /** Tenant of every key. */
  readonly tenantId?: string;
  /** The Python that has Mooncake's package. Default: `MOONCAKE_KV_PYTHON`, or `python3`. */
  readonly python?: string;
  /** Milliseconds that a call may take, unless it says so itself. Default: 20,000. */
  readonly deadlineMs?: number | string;
  /** Milliseconds that opening may take. Default: 5,000. */
  readonly openDeadlineMs?: number | string;
  /** Bytes of the memory in which scattered values are gathered. Default: 64 MiB. */
  readonly staging?: number | bigint | string;
  /** Commands that the sidecar works on at a time. Default: 8. */
  readonly threads?: number | string;
  /**
   * What happens to values that lie scattered in memory: `gather` copies them together (fast over TCP), `direct` lets
   * Mooncake fetch the pieces from shared arenas (for RDMA). Default: `gather`.
   */
  readonly scattered?: "gather" | "direct";
  /** What the sidecar's environment has besides this process's own. For programs; a URI can't say it. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The names of the options, as a URI writes them. */
export const MOONCAKE_OPTIONS: readonly Exclude<keyof MooncakeStoreOptions, "environment">[] = [
  "config",
  "master",
  "metadataServer",
  "localHostname",
  "protocol",
  "deviceName",
  "globalSegmentSize",
  "localBufferSize",
  "tenantId",
  "python",
  "deadlineMs",
  "openDeadlineMs",
  "staging",
  "threads",
  "scattered",
];

/** Options with every default filled in. */
export interface ResolvedMooncakeOptions {
  readonly masterServerAddress: string;
  readonly metadataServer: string;
  readonly localHostname: string | undefined;
  readonly protocol: string;
  readonly deviceName: string;
  readonly globalSegmentSize: bigint;
  readonly localBufferSize: bigint;
  readonly tenantId: string;
  readonly python: string;
  readonly deadlineMs: number;
  readonly openDeadlineMs: number;
  readonly stagingBytes: number;
  readonly threads: number;
  readonly scattered: "gather" | "direct";
  /** The whole environment of the sidecar. */
  readonly environment: NodeJS.ProcessEnv;
}

/** The longest that a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Checks options, whose values may still be the text of a URI, and fills in what configuration file and environment say.
 * An option wins over the file, the file over single environment variables.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveMooncakeOptions(
  options: Readonly<Partial<Record<keyof MooncakeStoreOptions, unknown>>>,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedMooncakeOptions {
  const file = text("config", options.config) ?? environment["MOONCAKE_CONFIG_PATH"];
  const settings: MooncakeSettings = {
    ...settingsFromEnvironment(environment),
    ...(file ? readConfigFile(file) : {}),
  };
  const choose = (option: keyof MooncakeSettings): string | undefined =>
    text(option, options[option] ?? settings[option]);
  const masterServerAddress = choose("master");
  if (!masterServerAddress)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "the mooncake store needs the address of a master: mooncake:./mooncake.json (with master_server_address), mooncake:?master=127.0.0.1:50051, or MOONCAKE_CONFIG_PATH or MOONCAKE_MASTER in the environment",
      { option: "master" },
    );
  parseMasterAddress(masterServerAddress);
  return {
    masterServerAddress,
    metadataServer: metadataServer(choose("metadataServer") ?? "P2PHANDSHAKE"),
    localHostname: choose("localHostname"),
    protocol: choose("protocol") ?? "tcp",
    deviceName: choose("deviceName") ?? "",
    globalSegmentSize: segmentSize(options.globalSegmentSize ?? settings.globalSegmentSize ?? 0),
    localBufferSize: parseSize(options.localBufferSize ?? 16 << 20, "localBufferSize"),
    tenantId: choose("tenantId") ?? "default",
    python: text("python", options.python) ?? (environment["MOONCAKE_KV_PYTHON"] || "python3"),
    deadlineMs: whole("deadlineMs", options.deadlineMs, 20_000, LONGEST_MS),
    openDeadlineMs: whole("openDeadlineMs", options.openDeadlineMs, 5_000, LONGEST_MS),
    stagingBytes: staging(options.staging),
    threads: whole("threads", options.threads, 8, 64),
    scattered: scattered(options.scattered),
    environment: { ...environment, ...(options.environment as NodeJS.ProcessEnv | undefined) },
  };
}

function text(option: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && !value.includes("\0")) return value;
  throw optionError(option, value, "text without NUL");
}

/** Anything else ends the process of Mooncake's client with a fatal log line. */
function metadataServer(value: string): string {
  if (value === "P2PHANDSHAKE" || /^(https?|etcd|redis):\/\/./.test(value)) return value;
  throw optionError(
    "metadataServer",
    value,
    "P2PHANDSHAKE, or an address that starts with http://, etcd:// or redis://",
  );
}

/** 0, or a size: Mooncake takes no segment below 16 MiB. */
function segmentSize(value: unknown): bigint {
  if (value === 0 || value === 0n || (typeof value === "string" && /^\s*0\s*[kmg]?i?b?\s*$/i.test(value)))
    return 0n;
  const size = parseSize(value, "globalSegmentSize");
  if (size < 16n << 20n) throw optionError("globalSegmentSize", value, "0, or at least 16MiB");
  return size;
}

function staging(value: unknown): number {
  const size = parseSize(value ?? 64 << 20, "staging");
  if (size < 1n << 20n || size > 2n ** 32n - 1n)
    throw optionError("staging", value, "a size from 1MiB to below 4GiB");
  return Number(size);
}

function scattered(value: unknown): "gather" | "direct" {
  if (value === undefined) return "gather";
  if (value === "gather" || value === "direct") return value;
  throw optionError("scattered", value, '"gather" or "direct"');
}

function whole(option: string, value: unknown, otherwise: number, most: number): number {
  if (value === undefined) return otherwise;
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < 1 || number > most)
    throw optionError(option, value, `a whole number from 1 to ${most}`);
  return number;
}

function optionError(option: string, value: unknown, expected: string): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", `${option} is ${describe(value)}; it is ${expected}`, {
    option,
    value,
  });
}
