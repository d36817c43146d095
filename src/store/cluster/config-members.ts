import { describe, MooncakeKvError } from "../../errors.js";
import { DEFAULT_TENANT } from "./config-defaults.js";
import type { ConfigMembers } from "./config-file.js";
import { parseMooncakeSize, strip } from "./mooncake-size.js";
import type { MooncakeStoreConfig } from "./mooncake-store-config.js";

type Name = keyof MooncakeStoreConfig;

/** How each member is called in the file, and how it is read. */
const MEMBERS: Readonly<Record<Name, readonly [member: string, read: (value: unknown) => unknown]>> = {
  mode: ["mode", readMode],
  metadataServer: ["metadata_server", asItIs],
  masterServerAddress: ["master_server_address", asItIs],
  protocol: ["protocol", asItIs],
  deviceName: ["device_name", asItIs],
  globalSegmentSize: ["global_segment_size", (value) => parseMooncakeSize(value, "global_segment_size")],
  localBufferSize: ["local_buffer_size", (value) => parseMooncakeSize(value, "local_buffer_size")],
  enableOffload: ["enable_offload", isTrue],
  tenantId: ["tenant_id", normalizeTenantId],
};

/**
 * The one reading of Mooncake's configuration file: for each name of `defaults` what the file has, read as vLLM reads it,
 * or else the default. Members that `defaults` does not name are not looked at.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a size or a tenant that can't be read, and for an unknown mode.
 */
export function readMembers<Defaults extends Partial<MooncakeStoreConfig>>(
  members: ConfigMembers,
  defaults: Defaults,
): Defaults {
  const read = (Object.keys(MEMBERS) as Name[])
    .filter((name) => Object.hasOwn(defaults, name) && Object.hasOwn(members, MEMBERS[name][0]))
    .map((name) => {
      const [member, readMember] = MEMBERS[name];
      return [name, readMember(members[member])];
    });
  return { ...defaults, ...Object.fromEntries(read) };
}

/**
 * The tenant of a config: trimmed text, `"default"` for none. Mirrors `normalize_tenant_id` of vLLM.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for anything that is neither text nor null.
 */
export function normalizeTenantId(value: unknown): string {
  if (value === undefined || value === null) return DEFAULT_TENANT;
  if (typeof value !== "string")
    throw new MooncakeKvError("ERR_CONFIG", `tenant_id is ${describe(value)}; it is text or null`, { value });
  return strip(value) || DEFAULT_TENANT;
}

/** Text members may be of any type here, as in vLLM; whoever uses one checks it. */
function asItIs(value: unknown): unknown {
  return value;
}

function readMode(mode: unknown): MooncakeStoreConfig["mode"] {
  if (mode === "embedded" || mode === "standalone-store") return mode;
  throw new MooncakeKvError(
    "ERR_CONFIG",
    `mode is ${describe(mode)}; it is "embedded" or "standalone-store", in lower case`,
    { mode },
  );
}

/** Python's idea of truth, which vLLM applies to `enable_offload`: the text "false" is true. */
function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
