import { describe, MooncakeKvError } from "../../errors.js";
import { DEFAULT_TENANT, VLLM_WORKER_DEFAULTS } from "./config-defaults.js";
import {
  CONFIG_PATH_VARIABLE,
  type ConfigMembers,
  configMembers,
  inConfigFile,
  parseConfigText,
  readConfigFile,
} from "./config-file.js";
import { readMembers } from "./config-members.js";
import { strip } from "./mooncake-size.js";
import type { MooncakeStoreConfig } from "./mooncake-store-config.js";

export { CONFIG_PATH_VARIABLE } from "./config-file.js";
export { normalizeTenantId } from "./config-members.js";
export type { MooncakeStoreConfig } from "./mooncake-store-config.js";

/** The arguments of Mooncake's `setup` call, in its order. */
export interface MooncakeSetupArguments {
  readonly localHostname: string;
  readonly metadataServer: string;
  readonly globalSegmentSize: bigint;
  readonly localBufferSize: bigint;
  readonly protocol: string;
  readonly rdmaDevices: string;
  readonly masterServerAddress: string;
  /** Given only where it is not the default tenant, as vLLM does: older clients don't know it. */
  readonly tenantId?: string | undefined;
}

/**
 * Reads Mooncake's config file: `path`, or the one that `MOONCAKE_CONFIG_PATH` names.
 *
 * @throws MooncakeKvError `ERR_CONFIG` when neither is given, when the file can't be read, and as `parseMooncakeConfig`.
 */
export async function loadMooncakeConfig(
  path?: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<MooncakeStoreConfig> {
  const chosen = path ?? environment[CONFIG_PATH_VARIABLE];
  if (!chosen)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `no Mooncake config file is named; give its path, or set ${CONFIG_PATH_VARIABLE}`,
      { variable: CONFIG_PATH_VARIABLE },
    );
  const members = await readConfigFile(chosen);
  return inConfigFile(chosen, () => mooncakeConfig(members));
}

/**
 * The text of Mooncake's config file.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for text that is no JSON object (nothing of it is in the error), and as
 * `mooncakeConfig`.
 */
export function parseMooncakeConfig(text: string): MooncakeStoreConfig {
  return mooncakeConfig(parseConfigText(text));
}

/**
 * The members of Mooncake's config file, with vLLM's defaults. Members that vLLM doesn't know are ignored.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a size or a tenant that can't be read, for an unknown mode, and where mode and
 * segment size contradict each other.
 */
export function mooncakeConfig(file: unknown): MooncakeStoreConfig {
  const members = configMembers(file);
  const config = readMembers(members, VLLM_WORKER_DEFAULTS);
  checkSizes(config, members);
  return config;
}

function checkSizes(
  { mode, globalSegmentSize, localBufferSize }: MooncakeStoreConfig,
  members: ConfigMembers,
): void {
  const details = { mode, globalSegmentSize, localBufferSize };
  if (mode === "embedded" && globalSegmentSize === 0n)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      'mode is "embedded" but global_segment_size is 0: a process of this mode brings a segment. Give it a size, or set mode to "standalone-store"',
      details,
    );
  if (mode === "standalone-store" && globalSegmentSize !== 0n)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `mode is "standalone-store" but global_segment_size is ${bytesOf(globalSegmentSize, members["global_segment_size"])}: the memory is that of other processes. Set global_segment_size to 0, or mode to "embedded"`,
      details,
    );
  if (localBufferSize <= 0n)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `local_buffer_size is ${localBufferSize}; it is larger than 0`,
      details,
    );
}

/** A size in bytes, and as the file has it where that is text. */
function bytesOf(bytes: bigint, written: unknown): string {
  return typeof written === "string" ? `${bytes} (${describe(written)})` : String(bytes);
}

/** Text that overrides a setting: trimmed; undefined for blank text and for anything that is no text. */
export function normalizeStringOverride(value: unknown): string | undefined {
  return typeof value === "string" ? strip(value) || undefined : undefined;
}

/** The host name under which a requester signs in: `MOONCAKE_REQUESTER_LOCAL_HOSTNAME`, or its address. */
export function requesterLocalHostname(localIp: string, environmentValue: string | undefined): string {
  return normalizeStringOverride(environmentValue) ?? localIp;
}

/**
 * The segment to prefer for new objects: `preferred_segment` of vLLM's `kv_connector_extra_config`, else
 * `MOONCAKE_PREFERRED_SEGMENT`, else none.
 *
 * @throws MooncakeKvError `ERR_CONFIG` when `extraConfig` has one that is no text or blank.
 */
export function preferredSegment(
  extraConfig: Readonly<Record<string, unknown>>,
  environmentValue: string | undefined,
): string | undefined {
  const given = Object.hasOwn(extraConfig, "preferred_segment")
    ? extraConfig["preferred_segment"]
    : undefined;
  const chosen = normalizeStringOverride(given);
  if (chosen !== undefined) return chosen;
  if (given !== undefined && given !== null)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `preferred_segment is ${describe(given)}; it is the name of a segment, as Mooncake's get_hostname prints it`,
      { value: given },
    );
  return normalizeStringOverride(environmentValue);
}

/** What to hand to Mooncake's `setup` for a config. */
export function mooncakeSetupArguments(
  config: MooncakeStoreConfig,
  localHostname: string,
): MooncakeSetupArguments {
  return {
    localHostname,
    metadataServer: config.metadataServer,
    globalSegmentSize: config.globalSegmentSize,
    localBufferSize: config.localBufferSize,
    protocol: config.protocol,
    rdmaDevices: config.deviceName,
    masterServerAddress: config.masterServerAddress,
    ...(config.tenantId !== DEFAULT_TENANT && { tenantId: config.tenantId }),
  };
}
