/** One result code of Mooncake. */
export interface StoreCode {
  /** Mooncake's number: 0 or negative. */
  readonly code: number;
  /** Mooncake's name for it. */
  readonly name: string;
  /** What it means for the caller. */
  readonly meaning: string;
  /** Whether the same call may succeed later without anybody changing it. */
  readonly retry: boolean;
}

/**
 * Mooncake's result codes by name: `CODE.OBJECT_NOT_FOUND` is -704. Mirrors `ErrorCode` in Mooncake's `types.h`; what each
 * means stands in `STORE_CODES`.
 */
export const CODE = {
  OK: 0,
  INTERNAL_ERROR: -1,
  BUFFER_OVERFLOW: -10,
  SHARD_INDEX_OUT_OF_RANGE: -100,
  SEGMENT_NOT_FOUND: -101,
  SEGMENT_ALREADY_EXISTS: -102,
  CLIENT_NOT_FOUND: -103,
  NO_AVAILABLE_HANDLE: -200,
  INVALID_VERSION: -300,
  INVALID_KEY: -400,
  WRITE_FAIL: -500,
  INVALID_PARAMS: -600,
  ILLEGAL_CLIENT: -601,
  INVALID_WRITE: -700,
  INVALID_READ: -701,
  INVALID_REPLICA: -702,
  REPLICA_IS_NOT_READY: -703,
  OBJECT_NOT_FOUND: -704,
  OBJECT_ALREADY_EXISTS: -705,
  OBJECT_HAS_LEASE: -706,
  LEASE_EXPIRED: -707,
  OBJECT_HAS_REPLICATION_TASK: -708,
  OBJECT_NO_REPLICATION_TASK: -709,
  REPLICA_NOT_FOUND: -710,
  REPLICA_ALREADY_EXISTS: -711,
  REPLICA_IS_GONE: -712,
  REPLICA_NOT_IN_LOCAL_MEMORY: -713,
  OBJECT_REPLICA_BUSY: -714,
  TRANSFER_FAIL: -800,
  CHECKSUM_MISMATCH: -801,
  RPC_FAIL: -900,
  RPC_TIMEOUT: -901,
  ETCD_OPERATION_ERROR: -1000,
  ETCD_KEY_NOT_EXIST: -1001,
  ETCD_TRANSACTION_FAIL: -1002,
  ETCD_CTX_CANCELLED: -1003,
  OPLOG_ENTRY_NOT_FOUND: -1004,
  K8S_LEASE_OPERATION_ERROR: -1005,
  K8S_LEASE_NOT_FOUND: -1006,
  INCOMPLETE_OPLOG_CATCH_UP: -1007,
  UNAVAILABLE_IN_CURRENT_STATUS: -1010,
  UNAVAILABLE_IN_CURRENT_MODE: -1011,
  NOT_SUPPORTED: -1012,
  FILE_NOT_FOUND: -1100,
  FILE_OPEN_FAIL: -1101,
  FILE_READ_FAIL: -1102,
  FILE_WRITE_FAIL: -1103,
  FILE_INVALID_BUFFER: -1104,
  FILE_LOCK_FAIL: -1105,
  FILE_INVALID_HANDLE: -1106,
  BUCKET_NOT_FOUND: -1200,
  BUCKET_ALREADY_EXISTS: -1201,
  KEYS_EXCEED_BUCKET_LIMIT: -1202,
  KEYS_ULTRA_LIMIT: -1203,
  UNABLE_OFFLOAD: -1300,
  UNABLE_OFFLOADING: -1301,
  TASK_NOT_FOUND: -1400,
  TASK_PENDING_LIMIT_EXCEEDED: -1401,
  JOB_NOT_FOUND: -1402,
  SERIALIZE_UNSUPPORTED: -1500,
  SERIALIZE_FAIL: -1501,
  DESERIALIZE_FAIL: -1502,
  PERSISTENT_FAIL: -1503,
  DFS_NETWORK_TIMEOUT: -1600,
  DFS_SERVICE_UNAVAILABLE: -1601,
  DFS_QUOTA_EXCEEDED: -1602,
  DFS_PERMISSION_DENIED: -1603,
  DFS_STALE_HANDLE: -1604,
  DFS_PARTIAL_WRITE: -1605,
  TENANT_QUOTA_EXCEEDED: -1700,
  TENANT_NOT_REGISTERED: -1701,
  TENANT_NOT_EMPTY: -1702,
} as const;

/** The name of one of Mooncake's result codes. */
export type CodeName = keyof typeof CODE;

const LATER = true;
const NEVER = false;

type Row = readonly [retry: boolean, meaning: string];

const ROWS: Readonly<Record<CodeName, Row>> = {
  OK: [NEVER, "done"],
  INTERNAL_ERROR: [NEVER, "the store failed inside, or a null argument reached it"],
  BUFFER_OVERFLOW: [NEVER, "a buffer of the store was too small for the data"],
  SHARD_INDEX_OUT_OF_RANGE: [NEVER, "a shard of the master's metadata does not exist"],
  SEGMENT_NOT_FOUND: [NEVER, "no mounted segment has this name or id"],
  SEGMENT_ALREADY_EXISTS: [NEVER, "a segment with this name or id is mounted already"],
  CLIENT_NOT_FOUND: [LATER, "the master does not know this client, or not any more"],
  NO_AVAILABLE_HANDLE: [LATER, "no segment has room for the object; eviction may free some"],
  INVALID_VERSION: [NEVER, "client and master come from releases that do not fit together"],
  INVALID_KEY: [NEVER, "the key is not acceptable"],
  WRITE_FAIL: [LATER, "the bytes could not be written"],
  INVALID_PARAMS: [
    NEVER,
    "an argument is not acceptable: an empty key or value, a size that does not fit, memory outside the registered regions, or a store that is not open",
  ],
  ILLEGAL_CLIENT: [NEVER, "another client started this write"],
  INVALID_WRITE: [NEVER, "the object is not being written, so its write can't end"],
  INVALID_READ: [NEVER, "the object can't be read in its state"],
  INVALID_REPLICA: [LATER, "the replica is not usable"],
  REPLICA_IS_NOT_READY: [LATER, "the object exists, but the write that makes it is not finished"],
  OBJECT_NOT_FOUND: [NEVER, "there is no object with this key"],
  OBJECT_ALREADY_EXISTS: [NEVER, "an object with this key exists already"],
  OBJECT_HAS_LEASE: [LATER, "somebody read or looked up the object a moment ago; its lease still runs"],
  LEASE_EXPIRED: [LATER, "the read took longer than its lease, so the bytes may be of another object"],
  OBJECT_HAS_REPLICATION_TASK: [LATER, "a copy, move or offload of the object is under way"],
  OBJECT_NO_REPLICATION_TASK: [NEVER, "no copy or move of the object is under way"],
  REPLICA_NOT_FOUND: [NEVER, "the object has no such replica"],
  REPLICA_ALREADY_EXISTS: [NEVER, "the object has this replica already"],
  REPLICA_IS_GONE: [NEVER, "the replica was dropped"],
  REPLICA_NOT_IN_LOCAL_MEMORY: [NEVER, "the replica is not in the memory of this client"],
  OBJECT_REPLICA_BUSY: [LATER, "a reader holds the replica"],
  TRANSFER_FAIL: [
    LATER,
    "the bytes were not transferred: the owner is out of reach, the queue is full, memory is bad, or the destination is larger than the object",
  ],
  CHECKSUM_MISMATCH: [LATER, "the bytes that arrived are not those that were sent"],
  RPC_FAIL: [LATER, "the master can't be reached"],
  RPC_TIMEOUT: [LATER, "the master did not answer in time"],
  ETCD_OPERATION_ERROR: [LATER, "etcd refused or failed"],
  ETCD_KEY_NOT_EXIST: [NEVER, "etcd has no such key"],
  ETCD_TRANSACTION_FAIL: [LATER, "a transaction in etcd lost against another one"],
  ETCD_CTX_CANCELLED: [LATER, "the call to etcd was cancelled"],
  OPLOG_ENTRY_NOT_FOUND: [NEVER, "the operation log has no such entry"],
  K8S_LEASE_OPERATION_ERROR: [LATER, "Kubernetes refused or failed a lease"],
  K8S_LEASE_NOT_FOUND: [NEVER, "Kubernetes has no such lease"],
  INCOMPLETE_OPLOG_CATCH_UP: [LATER, "a standby master has not caught up yet"],
  UNAVAILABLE_IN_CURRENT_STATUS: [LATER, "the service can't do this in the state it is in"],
  UNAVAILABLE_IN_CURRENT_MODE: [NEVER, "the service can't do this in the mode it runs in"],
  NOT_SUPPORTED: [NEVER, "the store has no such operation"],
  FILE_NOT_FOUND: [NEVER, "a file is missing"],
  FILE_OPEN_FAIL: [NEVER, "a file can't be opened"],
  FILE_READ_FAIL: [LATER, "a file can't be read"],
  FILE_WRITE_FAIL: [LATER, "a file can't be written"],
  FILE_INVALID_BUFFER: [NEVER, "the buffer for a file operation is not usable"],
  FILE_LOCK_FAIL: [LATER, "a file is locked by somebody else"],
  FILE_INVALID_HANDLE: [NEVER, "the file is not open"],
  BUCKET_NOT_FOUND: [NEVER, "the bucket on disk does not exist"],
  BUCKET_ALREADY_EXISTS: [NEVER, "the bucket on disk exists already"],
  KEYS_EXCEED_BUCKET_LIMIT: [NEVER, "more keys than one bucket takes"],
  KEYS_ULTRA_LIMIT: [NEVER, "more keys than the disk tier takes"],
  UNABLE_OFFLOAD: [NEVER, "the object can't go to disk"],
  UNABLE_OFFLOADING: [LATER, "the object is already on its way to disk"],
  TASK_NOT_FOUND: [NEVER, "there is no such task"],
  TASK_PENDING_LIMIT_EXCEEDED: [LATER, "too many tasks are waiting"],
  JOB_NOT_FOUND: [NEVER, "there is no such job"],
  SERIALIZE_UNSUPPORTED: [NEVER, "this data can't be serialised"],
  SERIALIZE_FAIL: [NEVER, "serialising failed"],
  DESERIALIZE_FAIL: [NEVER, "the serialised data is damaged or of another version"],
  PERSISTENT_FAIL: [LATER, "the data could not be made durable"],
  DFS_NETWORK_TIMEOUT: [LATER, "the distributed file system did not answer in time"],
  DFS_SERVICE_UNAVAILABLE: [LATER, "the distributed file system is off or out of reach"],
  DFS_QUOTA_EXCEEDED: [NEVER, "the quota of the distributed file system is used up"],
  DFS_PERMISSION_DENIED: [NEVER, "the distributed file system denies access"],
  DFS_STALE_HANDLE: [LATER, "a handle of the distributed file system has become invalid"],
  DFS_PARTIAL_WRITE: [LATER, "only a part reached the distributed file system"],
  TENANT_QUOTA_EXCEEDED: [NEVER, "the tenant's quota is used up"],
  TENANT_NOT_REGISTERED: [NEVER, "the master does not know this tenant"],
  TENANT_NOT_EMPTY: [NEVER, "the tenant still has objects"],
};

/** Every result code of Mooncake, by number. Mirrors `ErrorCode` in Mooncake's `types.h`. */
export const STORE_CODES: ReadonlyMap<number, StoreCode> = new Map(
  (Object.entries(ROWS) as [CodeName, Row][]).map(([name, [retry, meaning]]) => [
    CODE[name],
    { code: CODE[name], name, meaning, retry },
  ]),
);

/** The entry of `code`; one that says so for a number that Mooncake does not define. */
export function storeCode(code: number): StoreCode {
  return (
    STORE_CODES.get(code) ?? {
      code,
      name: "UNKNOWN",
      meaning: "a code that is not in Mooncake's table",
      retry: false,
    }
  );
}
