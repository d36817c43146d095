import { describe } from "../../errors.js";
import { CODE } from "../shared/codes.js";
import { adminFailure } from "./failure.js";
import type { HttpAnswer } from "./http-client.js";
import type { ExactJson, ExactJsonObject } from "./json.js";
import { successful } from "./json-answer.js";
import { address, byteCount, list, object, optionalList, text, unexpected } from "./json-fields.js";

/** A replica in memory, as the master describes it. */
export interface MemoryReplica {
  /** At least 1: no object is empty. */
  readonly size: bigint;
  readonly address: bigint;
  /** "tcp", "rdma", ... */
  readonly protocol: string;
  /** Where its owner answers handshakes: "host:port". */
  readonly endpoint: string;
}

/** A replica that is not in memory. */
export interface StoredReplica {
  readonly kind: "disk" | "local-disk" | "nof";
  readonly size: bigint;
  /** Path or endpoint. */
  readonly where: string;
}

/** What `/batch_query_keys` says about one key: a code other than 0 with a reason, or the replicas. */
export interface KeyAnswer {
  readonly code: number;
  readonly reason?: string | undefined;
  readonly memory: readonly MemoryReplica[];
  readonly stored: readonly StoredReplica[];
}

/** Names are the master's words: "constructor" is none. */
const CODES_BY_NAME: ReadonlyMap<string, number> = new Map(Object.entries(CODE));

/** Replicas that `/query_key` gives. @throws AdminFailure with the code that the master answers. */
export function readKeyQuery(answer: HttpAnswer, mostValues: number): MemoryReplica[] {
  return list(successful("/query_key", answer, mostValues), "data").map(memoryReplica);
}

/**
 * What `/batch_query_keys` says about the keys that were asked for; nothing else of it is looked at. An entry that can't
 * be believed fails its key alone.
 *
 * @throws AdminFailure when it answers for none.
 */
export function readBatchQuery(
  answer: HttpAnswer,
  keys: Iterable<string>,
  mostValues: number,
): Map<string, KeyAnswer> {
  const data = object(successful("/batch_query_keys", answer, mostValues).get("data"), "data");
  const answers = new Map<string, KeyAnswer>();
  for (const key of keys) {
    const entry = data.get(key);
    if (entry !== undefined) answers.set(key, keyAnswer(entry));
  }
  return answers;
}

function keyAnswer(entry: ExactJson): KeyAnswer {
  try {
    return readEntry(object(entry, "an entry of data"));
  } catch (error) {
    const { storeCode, message } = adminFailure(error);
    return failed(storeCode, message);
  }
}

function readEntry(entry: ExactJsonObject): KeyAnswer {
  if (entry.get("ok") !== true) {
    const error = entry.get("error");
    const code = typeof error === "string" ? CODES_BY_NAME.get(error) : undefined;
    if (code !== undefined && code < 0) return failed(code);
    return failed(CODE.INTERNAL_ERROR, `the master answers ${describe(error, 200)}`);
  }
  const disks = optionalList(entry, "disk_values").map((item) =>
    storedReplica(item, "disk", "object_size", "file_path"),
  );
  const localDisks = optionalList(entry, "local_disk_values").map((item) =>
    storedReplica(item, "local-disk", "object_size", "transport_endpoint"),
  );
  const nof = optionalList(entry, "nof_values").map((item) =>
    storedReplica(item, "nof", "size_", "transport_endpoint_"),
  );
  return {
    code: CODE.OK,
    memory: optionalList(entry, "values").map(memoryReplica),
    stored: [...disks, ...localDisks, ...nof],
  };
}

function failed(code: number, reason?: string): KeyAnswer {
  return { code, ...(reason !== undefined && { reason }), memory: [], stored: [] };
}

function memoryReplica(item: ExactJson): MemoryReplica {
  const replica = object(item, "a replica");
  const size = byteCount(replica, "size_");
  if (size === 0n) throw unexpected("size_", size, "the size of an object, which is never empty");
  return {
    size,
    address: address(replica, "buffer_address_", size),
    protocol: text(replica, "protocol_"),
    endpoint: text(replica, "transport_endpoint_"),
  };
}

function storedReplica(
  item: ExactJson,
  kind: StoredReplica["kind"],
  size: string,
  where: string,
): StoredReplica {
  const replica = object(item, "a replica");
  return { kind, size: byteCount(replica, size), where: text(replica, where) };
}
