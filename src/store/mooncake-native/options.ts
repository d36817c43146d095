import { describe, MooncakeKvError } from "../../errors.js";
import { type MooncakeStoreOptions, resolveMooncakeOptions } from "../mooncake/options.js";
import { parseSize } from "../size.js";

/** The environment variable that names Mooncake's C library. */
export const LIBRARY_VARIABLE = "MOONCAKE_STORE_LIBRARY";

/** What opens a cluster is the same as for the sidecar. */
type Shared = Pick<
  MooncakeStoreOptions,
  | "config"
  | "master"
  | "metadataServer"
  | "localHostname"
  | "protocol"
  | "deviceName"
  | "globalSegmentSize"
  | "localBufferSize"
  | "deadlineMs"
  | "openDeadlineMs"
>;

/** Options of the native Mooncake store. Numbers may be text, as in a URI; sizes are as `"64MiB"`. */
export interface MooncakeNativeStoreOptions extends Shared {
  /** Mooncake's C library, `libmooncake_store.so`. Default: the one that `MOONCAKE_STORE_LIBRARY` names. */
  readonly library?: string;
  /** Calls that are inside the library at a time. Default: 4. */
  readonly threads?: number | string;
  /** Bytes of the memory, one piece a thread, in which values lie contiguous for the library. Default: 16 MiB. */
  readonly staging?: number | bigint | string;
}

const SHARED: readonly (keyof Shared)[] = [
  "config",
  "master",
  "metadataServer",
  "localHostname",
  "protocol",
  "deviceName",
  "globalSegmentSize",
  "localBufferSize",
  "deadlineMs",
  "openDeadlineMs",
];

/** The names of the options, as a URI writes them. */
export const MOONCAKE_NATIVE_OPTIONS: readonly (keyof MooncakeNativeStoreOptions)[] = [
  "library",
  ...SHARED,
  "threads",
  "staging",
];

/** Options with every default filled in. */
export interface ResolvedMooncakeNativeOptions {
  readonly library: string;
  readonly masterServerAddress: string;
  readonly metadataServer: string;
  /** undefined: the address that leads to the master. */
  readonly localHostname: string | undefined;
  readonly protocol: string;
  readonly deviceName: string;
  readonly globalSegmentSize: bigint;
  readonly localBufferSize: bigint;
  readonly deadlineMs: number;
  readonly openDeadlineMs: number;
  readonly threads: number;
  readonly staging: bigint;
}

/**
 * Checks options, whose values may still be the text of a URI, and fills in what configuration file and environment say,
 * as for the sidecar. What would make the library end this process is refused.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be.
 */
export function resolveMooncakeNativeOptions(
  options: Readonly<Partial<Record<keyof MooncakeNativeStoreOptions, unknown>>>,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedMooncakeNativeOptions {
  const library = options.library ?? (environment[LIBRARY_VARIABLE] || undefined);
  if (typeof library !== "string" || library === "" || library.includes("\0"))
    throw optionError(
      "library",
      library,
      `the path of Mooncake's C library, as in mooncake-native:/opt/mooncake/libmooncake_store.so, or in ${LIBRARY_VARIABLE}`,
    );
  const shared = resolveMooncakeOptions(
    Object.fromEntries(SHARED.map((name) => [name, options[name]])),
    environment,
  );
  const { masterServerAddress, metadataServer, protocol, tenantId } = shared;
  if (masterServerAddress.includes("://"))
    throw optionError(
      "master",
      masterServerAddress,
      "host:port; a library without that backend would end this process, the mooncake: store can take it",
    );
  if (metadataServer !== "P2PHANDSHAKE" && !metadataServer.startsWith("http://"))
    throw optionError(
      "metadataServer",
      metadataServer,
      "P2PHANDSHAKE or an address that starts with http://; for anything else the library would end this process",
    );
  if (protocol !== "tcp" && protocol !== "rdma") throw optionError("protocol", protocol, "tcp or rdma");
  if (tenantId !== "default")
    throw optionError("tenantId", tenantId, '"default": the C library knows no other tenant');
  return {
    library,
    masterServerAddress,
    metadataServer,
    localHostname: shared.localHostname,
    protocol,
    deviceName: shared.deviceName,
    globalSegmentSize: shared.globalSegmentSize,
    localBufferSize: shared.localBufferSize,
    deadlineMs: shared.deadlineMs,
    openDeadlineMs: shared.openDeadlineMs,
    threads: threads(options.threads),
    staging: parseSize(options.staging ?? 16 << 20, "staging"),
  };
}

function threads(value: unknown): number {
  const number = typeof value === "string" && /^\d{1,2}$/.test(value) ? Number(value) : (value ?? 4);
  if (typeof number !== "number" || !Number.isInteger(number) || number < 1 || number > 64)
    throw optionError("threads", value, "a whole number from 1 to 64");
  return number;
}

function optionError(option: string, value: unknown, expected: string): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", `${option} is ${describe(value)}; it is ${expected}`, {
    option,
    value,
  });
}
