import { MooncakeKvError } from "../../errors.js";
import { LONGEST_MS } from "../shared/deadline.js";
import { optionError, textOption, wholeOption, wordOption } from "../shared/option-values.js";
import { parseSize } from "../shared/size.js";
import { STORE_DEFAULTS } from "./config-defaults.js";
import { normalizeTenantId } from "./config-members.js";
import { parseMasterAddress } from "./master-address.js";
import { parseMetadataServer } from "./metadata-server.js";
import { type StoreConfig, storeConfig } from "./store-config.js";

/**
 * How a process takes part in a cluster. `requester`, as vLLM calls a process without memory: it gives none to the pool,
 * whatever the configuration says. `configured`: as much as the configuration says.
 */
export type JoinRole = "requester" | "configured";

/** What every backend takes that joins a Mooncake cluster. Numbers may be text, as in a URI; sizes are as `"64MiB"`. */
export interface JoinOptions {
  /** Mooncake's JSON configuration file. Default: the one that `MOONCAKE_CONFIG_PATH` names, if any. */
  readonly config?: string | undefined;
  /** host:port of the master. Default: `master_server_address` of the file, or `MOONCAKE_MASTER`. */
  readonly master?: string | undefined;
  /**
   * `P2PHANDSHAKE`, `http://host:port/metadata`, or an etcd: `etcd://host:port;host:port`, also without `etcd://`. Default:
   * `metadata_server` of the file, `MOONCAKE_TE_META_DATA_SERVER`, or `P2PHANDSHAKE`.
   */
  readonly metadataServer?: string | undefined;
  /** Name or address under which the cluster reaches this machine. Default: the one that leads to the master. */
  readonly localHostname?: string | undefined;
  /** `tcp` or `rdma`. */
  readonly protocol?: string | undefined;
  /** Devices for RDMA. */
  readonly deviceName?: string | undefined;
  /** Bytes that this process gives to the cluster. Default: what the configuration says, else 0. */
  readonly globalSegmentSize?: number | bigint | string | undefined;
  /** Bytes of Mooncake's own buffer, which our backends do not use. Default: 16 MiB. */
  readonly localBufferSize?: number | bigint | string | undefined;
  /** Tenant of every key. */
  readonly tenantId?: string | undefined;
  /** `requester` gives no memory to the pool, whatever the configuration says. Default: `configured`. */
  readonly role?: JoinRole | undefined;
  /** Milliseconds that a call may take, unless it says so itself. Default: 20,000. */
  readonly deadlineMs?: number | string | undefined;
  /** Milliseconds that opening may take. Default: 5,000. */
  readonly openDeadlineMs?: number | string | undefined;
}

/** The names of the options, as a URI writes them. */
export const JOIN_OPTIONS: readonly (keyof JoinOptions)[] = [
  "config",
  "master",
  "metadataServer",
  "localHostname",
  "protocol",
  "deviceName",
  "globalSegmentSize",
  "localBufferSize",
  "tenantId",
  "role",
  "deadlineMs",
  "openDeadlineMs",
];

/** Options with everything filled in that file, environment and defaults say. */
export interface ResolvedJoinOptions {
  readonly masterServerAddress: string;
  readonly metadataServer: string;
  /** undefined: the address that leads to the master. */
  readonly localHostname: string | undefined;
  readonly protocol: string;
  readonly deviceName: string;
  /** Bytes that this process gives to the pool: 0, or at least 16 MiB. */
  readonly globalSegmentSize: bigint;
  readonly localBufferSize: bigint;
  readonly tenantId: string;
  readonly role: JoinRole;
  readonly deadlineMs: number;
  readonly openDeadlineMs: number;
}

/** The addresses of a cluster, not checked yet. */
export interface ClusterAddresses {
  readonly masterServerAddress: string;
  readonly metadataServer: string;
}

/** Bytes of the smallest segment that Mooncake takes. */
const SMALLEST_SEGMENT = 16n << 20n;

/**
 * Checks options, whose values may still be the text of a URI, and fills in what configuration file and environment say.
 * An option wins over the file, the file over single environment variables.
 *
 * @param checkAddresses what a backend's client takes; by default what Mooncake's official Python package does.
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be, or the file and what is wrong with it. What
 * would end the process of Mooncake's client is refused.
 */
export async function resolveJoinOptions(
  options: Readonly<Partial<Record<keyof JoinOptions, unknown>>>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  checkAddresses: (addresses: ClusterAddresses) => void = checkClusterAddresses,
): Promise<ResolvedJoinOptions> {
  const config = await storeConfig(filledOption("config", options.config), environment);
  const chosen = (option: keyof JoinOptions, otherwise: string | undefined): string | undefined =>
    filledOption(option, options[option] ?? otherwise);
  const masterServerAddress = options.master === undefined ? config.masterServerAddress : options.master;
  if (masterServerAddress === "")
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "the mooncake store needs the address of a master: mooncake:./mooncake.json (with master_server_address), mooncake:?master=127.0.0.1:50051, or MOONCAKE_CONFIG_PATH or MOONCAKE_MASTER in the environment",
      { option: "master" },
    );
  const addresses = {
    masterServerAddress: filledOption("master", masterServerAddress)!,
    metadataServer: chosen("metadataServer", config.metadataServer)!,
  };
  checkAddresses(addresses);
  const role = options.role === undefined ? "configured" : wordOption("role", options.role, ROLES);
  return {
    ...addresses,
    localHostname: chosen("localHostname", config.localHostname),
    protocol: chosen("protocol", config.protocol)!,
    deviceName: textOption("deviceName", options.deviceName ?? config.deviceName)!,
    globalSegmentSize: segmentSize(options.globalSegmentSize, config, role),
    localBufferSize: sizeOption("localBufferSize", options.localBufferSize ?? STORE_DEFAULTS.localBufferSize),
    tenantId: normalizeTenantId(textOption("tenantId", options.tenantId ?? config.tenantId)),
    role,
    deadlineMs: wholeOption("deadlineMs", options.deadlineMs ?? 20_000, { most: LONGEST_MS }),
    openDeadlineMs: wholeOption("openDeadlineMs", options.openDeadlineMs ?? 5_000, { most: LONGEST_MS }),
  };
}

const ROLES: readonly JoinRole[] = ["requester", "configured"];

/** @throws MooncakeKvError `ERR_CONFIG` for addresses that Mooncake's official package can't take, or ends its process for. */
export function checkClusterAddresses({ masterServerAddress, metadataServer }: ClusterAddresses): void {
  parseMasterAddress(masterServerAddress);
  parseMetadataServer(metadataServer);
}

/** Text that is neither blank nor holds a NUL; undefined stays undefined. @throws MooncakeKvError `ERR_CONFIG` otherwise. */
export function filledOption(option: string, value: unknown): string | undefined {
  const text = textOption(option, value);
  if (text?.trim() === "") throw optionError(option, text, "text that is not blank");
  return text;
}

/** A size in bytes of at least 1. @throws MooncakeKvError `ERR_CONFIG` otherwise. */
export function sizeOption(option: string, value: unknown): bigint {
  return parseSize(plainNumber(value), option);
}

/** 0, or what Mooncake takes for a segment. A requester gives nothing, and nobody looks at what others would give. */
function segmentSize(option: unknown, config: StoreConfig, role: JoinRole): bigint {
  if (option !== undefined) {
    const size = isZero(option) ? 0n : sizeOption("globalSegmentSize", option);
    if (role === "requester" && size !== 0n)
      throw optionError("globalSegmentSize", plainNumber(option), "0 for a requester, or role is configured");
    return checkedSegment(size, "globalSegmentSize", option);
  }
  if (role === "requester") return 0n;
  const { name = "globalSegmentSize", value = config.globalSegmentSize } = config.segmentSource ?? {};
  return checkedSegment(config.globalSegmentSize, name, value);
}

function checkedSegment(size: bigint, name: string, written: unknown): bigint {
  if (size !== 0n && (size < SMALLEST_SEGMENT || size >= 1n << 63n))
    throw optionError(name, plainNumber(written), "0, or at least 16MiB");
  return size;
}

function isZero(value: unknown): boolean {
  return (
    value === 0 || value === 0n || (typeof value === "string" && /^\s*0+\s*(?:[kmgt]?i?b?)\s*$/i.test(value))
  );
}

/** A bigint as people write it, for an error that shows it. */
function plainNumber(value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
