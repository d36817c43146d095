import { STORE_DEFAULTS, type StoreDefaults, VLLM_WORKER_DEFAULTS } from "./config-defaults.js";
import { CONFIG_PATH_VARIABLE, type ConfigMembers, inConfigFile, readConfigFile } from "./config-file.js";
import { readMembers } from "./config-members.js";
import { mooncakeConfig, normalizeStringOverride } from "./mooncake-config.js";
import { parseMooncakeSize } from "./mooncake-size.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** What file, environment and defaults say to a store, apart from its options. Text is not checked yet. */
export interface StoreConfig extends Omit<StoreDefaults, "localBufferSize"> {
  /** Empty when nobody says it. */
  readonly masterServerAddress: string;
  readonly localHostname: string | undefined;
  /** What the size of the segment is called where it stands, and how it is written there; undefined for the default. */
  readonly segmentSource: { readonly name: string; readonly value: unknown } | undefined;
}

/** Names in the environment, as Mooncake's own `mooncake_config.py` and vLLM read them. The first that is set counts. */
const ENVIRONMENT_NAMES = {
  masterServerAddress: ["MOONCAKE_MASTER"],
  metadataServer: ["MOONCAKE_TE_META_DATA_SERVER"],
  localHostname: ["MOONCAKE_REQUESTER_LOCAL_HOSTNAME", "MOONCAKE_LOCAL_HOSTNAME"],
  protocol: ["MOONCAKE_PROTOCOL"],
  deviceName: ["MOONCAKE_DEVICE"],
  tenantId: ["MOONCAKE_TENANT_ID"],
} as const;

const SEGMENT_VARIABLE = "MOONCAKE_GLOBAL_SEGMENT_SIZE";

/**
 * What the configuration says to a store: Mooncake's file, `path` or the one that `MOONCAKE_CONFIG_PATH` names, if any;
 * then single environment variables; then `STORE_DEFAULTS`.
 *
 * The file is read as vLLM reads it, and describes vLLM's cluster: where it leaves out protocol or tenant, those are
 * `rdma` and `default` as for vLLM, and no host name is taken from a file that many hosts share. One difference: a process
 * brings a segment only if somebody says so.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `readConfigFile` and `readMembers`, and where the `mode` of the file contradicts
 * its sizes.
 */
export async function storeConfig(path: string | undefined, environment: Environment): Promise<StoreConfig> {
  const file = path ?? (environment[CONFIG_PATH_VARIABLE] || undefined);
  const { localBufferSize: _unused, ...defaults } = STORE_DEFAULTS;
  const said = environmentSettings(environment);
  const otherwise = { ...defaults, masterServerAddress: "", localHostname: undefined, ...said };
  if (file === undefined) return otherwise;
  const members = await readConfigFile(file);
  return inConfigFile(file, () => fileSettings(members, otherwise));
}

function fileSettings(members: ConfigMembers, otherwise: StoreConfig): StoreConfig {
  if (members["mode"] !== undefined) mooncakeConfig(members);
  const filled = Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== ""),
  );
  const { protocol, tenantId } = VLLM_WORKER_DEFAULTS;
  const read = readMembers(filled, { ...otherwise, protocol, tenantId });
  const size = filled["global_segment_size"];
  return size === undefined ? read : { ...read, segmentSource: { name: "global_segment_size", value: size } };
}

/** The settings that stand in environment variables; only those. */
function environmentSettings(
  environment: Environment,
): Partial<StoreConfig> & Pick<StoreConfig, "segmentSource"> {
  const settings = Object.entries(ENVIRONMENT_NAMES)
    .map(([name, variables]) => [name, firstSet(environment, variables)] as const)
    .filter(([, value]) => value !== undefined);
  const size = firstSet(environment, [SEGMENT_VARIABLE]);
  if (size === undefined) return { ...Object.fromEntries(settings), segmentSource: undefined };
  return {
    ...Object.fromEntries(settings),
    globalSegmentSize: parseMooncakeSize(size, SEGMENT_VARIABLE),
    segmentSource: { name: SEGMENT_VARIABLE, value: size },
  };
}

function firstSet(environment: Environment, variables: readonly string[]): string | undefined {
  return variables.map((variable) => normalizeStringOverride(environment[variable])).find(Boolean);
}
