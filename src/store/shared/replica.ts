/** One copy of an object. Mirrors Mooncake's `ReplicaDescriptor`. */
export interface ReplicaDescriptor {
  /** Mooncake's name of its state. Only `COMPLETE` ones can be read. */
  readonly status:
    | "UNDEFINED"
    | "INITIALIZED"
    | "PROCESSING"
    | "COMPLETE"
    | "REMOVED"
    | "FAILED"
    | (string & {});
  readonly kind: "memory" | "disk" | "local-disk" | "nof" | "dfs";
  /** Bytes of the object. */
  readonly size: bigint;
  /** Name of the segment that holds it, or where its owner is reached: what the backend knows. */
  readonly segment: string;
  /** Address of the first byte in the owner's memory, where it is known. */
  readonly address?: bigint | undefined;
}
