/** How a process takes part in a Mooncake Store. Mirrors vLLM's `MooncakeStoreConfig`. */
export interface MooncakeStoreConfig {
  /** `P2PHANDSHAKE`, or the URL of a metadata server. Kept as the file has it, also where that is no text. */
  readonly metadataServer: string;
  /** `host:port` of the master. */
  readonly masterServerAddress: string;
  /** `rdma` unless the file says otherwise. */
  readonly protocol: string;
  /** RDMA devices, by name; empty for all. */
  readonly deviceName: string;
  /** `embedded`: this process brings a segment. `standalone-store`: other processes do. */
  readonly mode: "embedded" | "standalone-store";
  /** Bytes that each rank brings: 8 ranks of 80 GB make a pool of 640 GB. */
  readonly globalSegmentSize: bigint;
  /** Bytes of the buffer through which `put` and `get` copy. */
  readonly localBufferSize: bigint;
  readonly enableOffload: boolean;
  readonly tenantId: string;
}
