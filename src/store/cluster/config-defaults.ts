import { P2P_HANDSHAKE } from "./metadata-server.js";
import type { MooncakeStoreConfig } from "./mooncake-store-config.js";

/** The tenant of whoever names none. */
export const DEFAULT_TENANT = "default";

/** What vLLM's workers take for what the configuration file leaves out. Mirrors the defaults of vLLM's `MooncakeStoreConfig`. */
export const VLLM_WORKER_DEFAULTS: MooncakeStoreConfig = {
  metadataServer: "",
  masterServerAddress: "",
  protocol: "rdma",
  deviceName: "",
  mode: "embedded",
  globalSegmentSize: 4n << 30n,
  localBufferSize: 4n << 30n,
  enableOffload: false,
  tenantId: DEFAULT_TENANT,
};

/** What our stores take for what neither option nor file nor environment says. */
export interface StoreDefaults {
  readonly metadataServer: string;
  readonly protocol: string;
  readonly deviceName: string;
  /** Nobody gives memory without saying so; vLLM's default is for workers. */
  readonly globalSegmentSize: bigint;
  /** Bytes of a buffer that our backends don't use, as small as Mooncake has it. */
  readonly localBufferSize: bigint;
  readonly tenantId: string;
}

/** What our stores take for what neither option nor file nor environment says. Mirrors the defaults of Mooncake's `setup`. */
export const STORE_DEFAULTS: StoreDefaults = {
  metadataServer: P2P_HANDSHAKE,
  protocol: "tcp",
  deviceName: "",
  globalSegmentSize: 0n,
  localBufferSize: 16n << 20n,
  tenantId: DEFAULT_TENANT,
};
