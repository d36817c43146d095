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

const LATER = true;
const NEVER = false;

type Row = readonly [code: number, name: string, retry: boolean, meaning: string];

const ROWS: readonly Row[] = [
  [0, "OK", NEVER, "done"],
  [-1, "INTERNAL_ERROR", NEVER, "the store failed inside, or a null argument reached it"],
  [-10, "BUFFER_OVERFLOW", NEVER, "a buffer of the store was too small for the data"],
  [-100, "SHARD_INDEX_OUT_OF_RANGE", NEVER, "a shard of the master's metadata does not exist"],
  [-101, "SEGMENT_NOT_FOUND", NEVER, "no mounted segment has this name or id"],
  [-102, "SEGMENT_ALREADY_EXISTS", NEVER, "a segment with this name or id is mounted already"],
  [-103, "CLIENT_NOT_FOUND", LATER, "the master does not know this client, or not any more"],
  [-200, "NO_AVAILABLE_HANDLE", LATER, "no segment has room for the object; eviction may free some"],
  [-300, "INVALID_VERSION", NEVER, "client and master come from releases that do not fit together"],
  [-400, "INVALID_KEY", NEVER, "the key is not acceptable"],
  [-500, "WRITE_FAIL", LATER, "the bytes could not be written"],
  [
    -600,
    "INVALID_PARAMS",
    NEVER,
    "an argument is not acceptable: an empty key or value, a size that does not fit, memory outside the registered regions, or a store that is not open",
  ],
  [-601, "ILLEGAL_CLIENT", NEVER, "another client started this write"],
  [-700, "INVALID_WRITE", NEVER, "the object is not being written, so its write can't end"],
  [-701, "INVALID_READ", NEVER, "the object can't be read in its state"],
  [-702, "INVALID_REPLICA", LATER, "the replica is not usable"],
  [-703, "REPLICA_IS_NOT_READY", LATER, "the object exists, but the write that makes it is not finished"],
  [-704, "OBJECT_NOT_FOUND", NEVER, "there is no object with this key"],
  [-705, "OBJECT_ALREADY_EXISTS", NEVER, "an object with this key exists already"],
  [
    -706,
    "OBJECT_HAS_LEASE",
    LATER,
    "somebody read or looked up the object a moment ago; its lease still runs",
  ],
  [
    -707,
    "LEASE_EXPIRED",
    LATER,
    "the read took longer than its lease, so the bytes may be of another object",
  ],
  [-708, "OBJECT_HAS_REPLICATION_TASK", LATER, "a copy, move or offload of the object is under way"],
  [-709, "OBJECT_NO_REPLICATION_TASK", NEVER, "no copy or move of the object is under way"],
  [-710, "REPLICA_NOT_FOUND", NEVER, "the object has no such replica"],
  [-711, "REPLICA_ALREADY_EXISTS", NEVER, "the object has this replica already"],
  [-712, "REPLICA_IS_GONE", NEVER, "the replica was dropped"],
  [-713, "REPLICA_NOT_IN_LOCAL_MEMORY", NEVER, "the replica is not in the memory of this client"],
  [-714, "OBJECT_REPLICA_BUSY", LATER, "a reader holds the replica"],
  [
    -800,
    "TRANSFER_FAIL",
    LATER,
    "the bytes were not transferred: the owner is out of reach, the queue is full, memory is bad, or the destination is larger than the object",
  ],
  [-801, "CHECKSUM_MISMATCH", LATER, "the bytes that arrived are not those that were sent"],
  [-900, "RPC_FAIL", LATER, "the master can't be reached"],
  [-901, "RPC_TIMEOUT", LATER, "the master did not answer in time"],
  [-1000, "ETCD_OPERATION_ERROR", LATER, "etcd refused or failed"],
  [-1001, "ETCD_KEY_NOT_EXIST", NEVER, "etcd has no such key"],
  [-1002, "ETCD_TRANSACTION_FAIL", LATER, "a transaction in etcd lost against another one"],
  [-1003, "ETCD_CTX_CANCELLED", LATER, "the call to etcd was cancelled"],
  [-1004, "OPLOG_ENTRY_NOT_FOUND", NEVER, "the operation log has no such entry"],
  [-1005, "K8S_LEASE_OPERATION_ERROR", LATER, "Kubernetes refused or failed a lease"],
  [-1006, "K8S_LEASE_NOT_FOUND", NEVER, "Kubernetes has no such lease"],
  [-1007, "INCOMPLETE_OPLOG_CATCH_UP", LATER, "a standby master has not caught up yet"],
  [-1010, "UNAVAILABLE_IN_CURRENT_STATUS", LATER, "the service can't do this in the state it is in"],
  [-1011, "UNAVAILABLE_IN_CURRENT_MODE", NEVER, "the service can't do this in the mode it runs in"],
  [-1012, "NOT_SUPPORTED", NEVER, "the store has no such operation"],
  [-1100, "FILE_NOT_FOUND", NEVER, "a file is missing"],
  [-1101, "FILE_OPEN_FAIL", NEVER, "a file can't be opened"],
  [-1102, "FILE_READ_FAIL", LATER, "a file can't be read"],
  [-1103, "FILE_WRITE_FAIL", LATER, "a file can't be written"],
  [-1104, "FILE_INVALID_BUFFER", NEVER, "the buffer for a file operation is not usable"],
  [-1105, "FILE_LOCK_FAIL", LATER, "a file is locked by somebody else"],
  [-1106, "FILE_INVALID_HANDLE", NEVER, "the file is not open"],
  [-1200, "BUCKET_NOT_FOUND", NEVER, "the bucket on disk does not exist"],
  [-1201, "BUCKET_ALREADY_EXISTS", NEVER, "the bucket on disk exists already"],
  [-1202, "KEYS_EXCEED_BUCKET_LIMIT", NEVER, "more keys than one bucket takes"],
  [-1203, "KEYS_ULTRA_LIMIT", NEVER, "more keys than the disk tier takes"],
  [-1300, "UNABLE_OFFLOAD", NEVER, "the object can't go to disk"],
  [-1301, "UNABLE_OFFLOADING", LATER, "the object is already on its way to disk"],
  [-1400, "TASK_NOT_FOUND", NEVER, "there is no such task"],
  [-1401, "TASK_PENDING_LIMIT_EXCEEDED", LATER, "too many tasks are waiting"],
  [-1402, "JOB_NOT_FOUND", NEVER, "there is no such job"],
  [-1500, "SERIALIZE_UNSUPPORTED", NEVER, "this data can't be serialised"],
  [-1501, "SERIALIZE_FAIL", NEVER, "serialising failed"],
  [-1502, "DESERIALIZE_FAIL", NEVER, "the serialised data is damaged or of another version"],
  [-1503, "PERSISTENT_FAIL", LATER, "the data could not be made durable"],
  [-1600, "DFS_NETWORK_TIMEOUT", LATER, "the distributed file system did not answer in time"],
  [-1601, "DFS_SERVICE_UNAVAILABLE", LATER, "the distributed file system is off or out of reach"],
  [-1602, "DFS_QUOTA_EXCEEDED", NEVER, "the quota of the distributed file system is used up"],
  [-1603, "DFS_PERMISSION_DENIED", NEVER, "the distributed file system denies access"],
  [-1604, "DFS_STALE_HANDLE", LATER, "a handle of the distributed file system has become invalid"],
  [-1605, "DFS_PARTIAL_WRITE", LATER, "only a part reached the distributed file system"],
  [-1700, "TENANT_QUOTA_EXCEEDED", NEVER, "the tenant's quota is used up"],
  [-1701, "TENANT_NOT_REGISTERED", NEVER, "the master does not know this tenant"],
  [-1702, "TENANT_NOT_EMPTY", NEVER, "the tenant still has objects"],
];

/** Every result code of Mooncake, by number. Mirrors `ErrorCode` in Mooncake's `types.h`. */
export const STORE_CODES: ReadonlyMap<number, StoreCode> = new Map(
  ROWS.map(([code, name, retry, meaning]) => [code, { code, name, meaning, retry }]),
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
