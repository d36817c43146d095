import { readFileSync } from "node:fs";
import { describe, MooncakeKvError } from "../../errors.js";
import { mooncakeConfig, normalizeStringOverride, normalizeTenantId } from "../mooncake-config.js";
import { parseMooncakeSize } from "../mooncake-size.js";

/** What a configuration says about the cluster; only what it says. */
export interface MooncakeSettings {
  readonly master?: string;
  readonly metadataServer?: string;
  readonly localHostname?: string;
  readonly protocol?: string;
  readonly deviceName?: string;
  readonly globalSegmentSize?: bigint;
  readonly tenantId?: string;
}

/** Names in the environment, as Mooncake's own Python configuration and vLLM read them. The first that is set counts. */
const ENVIRONMENT_NAMES: Readonly<Record<keyof MooncakeSettings, readonly string[]>> = {
  master: ["MOONCAKE_MASTER"],
  metadataServer: ["MOONCAKE_TE_META_DATA_SERVER"],
  localHostname: ["MOONCAKE_REQUESTER_LOCAL_HOSTNAME", "MOONCAKE_LOCAL_HOSTNAME"],
  protocol: ["MOONCAKE_PROTOCOL"],
  deviceName: ["MOONCAKE_DEVICE"],
  globalSegmentSize: ["MOONCAKE_GLOBAL_SEGMENT_SIZE"],
  tenantId: ["MOONCAKE_TENANT_ID"],
};

/**
 * Mooncake's JSON file as vLLM reads it: sizes in its dialect, `rdma` unless the file names another protocol, and no
 * host name out of a file that many hosts share. One difference: a process brings a segment only if the file gives its
 * size; vLLM's default of 4 GiB is for workers.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a file that can't be read or is no JSON object, for a size or tenant that is
 * none, and where `mode` contradicts the segment size.
 */
export function readConfigFile(path: string): MooncakeSettings {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw fileError(path, `can't be read: ${(error as Error).message}`, error);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw fileError(path, `is ${describe(content)}; it is a JSON object`);
  const file = content as Readonly<Record<string, unknown>>;
  try {
    if (file["mode"] !== undefined) mooncakeConfig(file);
    return said({
      master: file["master_server_address"],
      metadataServer: file["metadata_server"],
      protocol: file["protocol"] ?? "rdma",
      deviceName: file["device_name"],
      globalSegmentSize: size(file["global_segment_size"], "global_segment_size"),
      tenantId: normalizeTenantId(file["tenant_id"]),
    });
  } catch (error) {
    throw fileError(path, `can't be used: ${(error as Error).message}`, error);
  }
}

/** The settings that stand in environment variables. @throws MooncakeKvError `ERR_CONFIG` for a size that is none. */
export function settingsFromEnvironment(environment: NodeJS.ProcessEnv): MooncakeSettings {
  const settings = Object.fromEntries(
    Object.entries(ENVIRONMENT_NAMES).map(([name, variables]) => [
      name,
      variables.map((variable) => normalizeStringOverride(environment[variable])).find(Boolean),
    ]),
  );
  const segment = size(settings["globalSegmentSize"], ENVIRONMENT_NAMES.globalSegmentSize[0]!);
  return said({ ...settings, globalSegmentSize: segment });
}

function size(value: unknown, what: string): bigint | undefined {
  return value === undefined || value === null ? undefined : parseMooncakeSize(value, what);
}

/** Without what is not said, or said to be empty. */
function said(settings: Readonly<Record<keyof MooncakeSettings | string, unknown>>): MooncakeSettings {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== ""),
  );
}

function fileError(path: string, problem: string, cause?: unknown): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_CONFIG",
    `Mooncake's configuration ${path} ${problem}`,
    { path },
    cause === undefined ? undefined : { cause },
  );
}
