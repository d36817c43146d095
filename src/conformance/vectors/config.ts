import { MooncakeKvError } from "../../errors.js";
import {
  loadMooncakeConfig,
  type MooncakeStoreConfig,
  mooncakeConfig,
  mooncakeSetupArguments,
  normalizeStringOverride,
  normalizeTenantId,
  parseMooncakeConfig,
  preferredSegment,
  requesterLocalHostname,
} from "../../store/cluster/mooncake-config.js";
import { parseMooncakeSize } from "../../store/cluster/mooncake-size.js";
import type { JsonObject, VectorHandlers } from "./handler.js";
import { number, object, optionalText, text } from "./json.js";

function configJson(config: MooncakeStoreConfig): JsonObject {
  return {
    metadata_server: config.metadataServer,
    master_server_address: config.masterServerAddress,
    protocol: config.protocol,
    device_name: config.deviceName,
    mode: config.mode,
    global_segment_size: String(config.globalSegmentSize),
    local_buffer_size: String(config.localBufferSize),
    enable_offload: config.enableOffload,
    tenant_id: config.tenantId,
  };
}

/** The ops of `config.jsonl` about Mooncake's config file, its environment and sizes. */
export const configHandlers: VectorHandlers = {
  parse_size: (input) => ({
    size: String(parseMooncakeSize(input["value"])),
    is_bool: typeof input["value"] === "boolean",
  }),
  normalize_tenant_id: (input) => ({ tenant_id: normalizeTenantId(input["value"]) }),
  normalize_string_override: (input) => ({ value: normalizeStringOverride(input["value"]) ?? null }),
  config_from_file: (input) => configJson(mooncakeConfig(input["file"])),
  config_from_raw_file: (input) => configJson(parseMooncakeConfig(text(input, "raw"))),
  load_from_config: async (input) =>
    configJson(await loadMooncakeConfig(undefined, object(input, "env") as Record<string, string>)),
  setup_call: (input) => {
    const setup = mooncakeSetupArguments(mooncakeConfig(input["file"]), text(input, "local_hostname"));
    const code = number(input, "setup_rc");
    if (code !== 0)
      throw new MooncakeKvError("ERR_STORE", `Mooncake's setup failed with ${code}`, { code, setup });
    return {
      setup: {
        args: [
          setup.localHostname,
          setup.metadataServer,
          String(setup.globalSegmentSize),
          String(setup.localBufferSize),
          setup.protocol,
          setup.rdmaDevices,
          setup.masterServerAddress,
        ],
        kwargs: setup.tenantId === undefined ? {} : { tenant_id: setup.tenantId },
      },
    };
  },
  preferred_segment: (input) => ({
    value: preferredSegment(object(input, "extra_config"), optionalText(input, "env")) ?? null,
  }),
  requester_local_hostname: (input) => ({
    value: requesterLocalHostname(text(input, "local_ip"), optionalText(input, "env")),
  }),
};
