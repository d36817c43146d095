import { describe } from "../../errors.js";
import { STORE_CODES } from "../codes.js";
import { AdminFailure } from "./failure.js";
import type { HttpAnswer } from "./http-client.js";
import { type ExactJson, type ExactJsonObject, parseExactJson } from "./json.js";

/** A replica in memory, as the master describes it. */
export interface MemoryReplica {
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
  readonly reason?: string;
  readonly memory: readonly MemoryReplica[];
  readonly stored: readonly StoredReplica[];
}

/** A mounted segment, as `/get_segments_detail` describes it. */
export interface AdminSegment {
  readonly name: string;
  /** Two decimal 64-bit numbers joined by "-". */
  readonly id: string;
  readonly clientId: string;
  readonly baseAddress: bigint;
  /** Bytes. */
  readonly size: bigint;
  /** Bytes of the objects in it. */
  readonly used: bigint;
  /** Bytes that objects can take. */
  readonly capacity: bigint;
  /** Where its owner answers handshakes: "host:port". */
  readonly endpoint: string;
  readonly protocol: string;
  /** OK, DRAINING, DRAINED, GRACEFULLY_UNMOUNTING, UNMOUNTING or UNDEFINED. */
  readonly status: string;
}

/** The answer of `/health`. */
export interface MasterHealth {
  readonly status: string;
  readonly role: string;
  readonly haState: string;
  readonly ready: boolean;
}

const CODES_BY_NAME: ReadonlyMap<string, number> = new Map(
  [...STORE_CODES.values()].map(({ code, name }) => [name, code]),
);

/** Replicas that `/query_key` gives. @throws AdminFailure with the code that the master answers. */
export function readKeyQuery(answer: HttpAnswer): MemoryReplica[] {
  const body = success("/query_key", answer);
  return list(body, "data").map(memoryReplica);
}

/** What `/batch_query_keys` says, by key. @throws AdminFailure when it answers for none. */
export function readBatchQuery(answer: HttpAnswer): Map<string, KeyAnswer> {
  const body = success("/batch_query_keys", answer);
  const data = object(body.get("data"), "data");
  return new Map([...data].map(([key, value]) => [key, keyAnswer(object(value, "an entry of data"))]));
}

/** The segments of `/get_segments_detail`. */
export function readSegments(answer: HttpAnswer): AdminSegment[] {
  const body = jsonObject("/get_segments_detail", ok("/get_segments_detail", answer));
  return list(body, "segments").map((item) => {
    const segment = object(item, "a segment");
    return {
      name: text(segment, "segment_name"),
      id: text(segment, "segment_id"),
      clientId: text(segment, "client_id"),
      baseAddress: hexadecimal(segment, "base_address"),
      size: count(segment, "size_bytes"),
      used: count(segment, "allocator_used_bytes"),
      capacity: count(segment, "allocator_capacity_bytes"),
      endpoint: text(segment, "te_endpoint"),
      protocol: text(segment, "protocol"),
      status: text(segment, "status"),
    };
  });
}

/** The answer of `/health`. */
export function readHealth(answer: HttpAnswer): MasterHealth {
  const body = jsonObject("/health", ok("/health", answer));
  return {
    status: text(body, "status"),
    role: text(body, "role"),
    haState: text(body, "ha_state"),
    ready: body.get("service_ready") === true,
  };
}

/** The value of an unlabelled metric in `/metrics`; undefined where there is none. */
export function readMetric(answer: HttpAnswer, name: string): bigint | undefined {
  if (answer.status !== 200) return undefined;
  for (const line of answer.body.toString("utf8").split("\n")) {
    const match = /^([A-Za-z_:][\w:]*) (\d{1,20})(?:\.0*)?$/.exec(line.trimEnd());
    if (match?.[1] === name) return BigInt(match[2]!);
  }
  return undefined;
}

/** The body of an answer that has status 200. @throws AdminFailure for any other. */
export function ok(path: string, answer: HttpAnswer): Buffer {
  if (answer.status !== 200) throw refusal(path, answer);
  return answer.body;
}

function success(path: string, answer: HttpAnswer): ExactJsonObject {
  const body = jsonObject(path, ok(path, answer));
  if (body.get("success") !== true) throw refusal(path, answer);
  return body;
}

/** What an answer without success means: its own code where it has one. */
function refusal(path: string, { status, body }: HttpAnswer): AdminFailure {
  let parsed: ExactJson;
  try {
    parsed = parseExactJson(body.toString("utf8"));
  } catch {
    parsed = null;
  }
  if (parsed instanceof Map) {
    const code = parsed.get("error_code");
    const message = parsed.get("error_message") ?? parsed.get("error");
    const known = typeof code === "bigint" && code < 0n && code > -(2n ** 31n);
    if (known || typeof message === "string")
      return new AdminFailure(
        known ? Number(code) : status === 400 ? -600 : -900,
        `${path} answers ${describe(message, 200)}`,
      );
  }
  return new AdminFailure(
    -900,
    `${path} answers with HTTP status ${status}: ${describe(body.toString("utf8"), 200)}`,
  );
}

function keyAnswer(entry: ExactJsonObject): KeyAnswer {
  if (entry.get("ok") !== true) {
    const error = entry.get("error");
    const code = typeof error === "string" ? CODES_BY_NAME.get(error) : undefined;
    if (code !== undefined && code < 0) return { code, memory: [], stored: [] };
    return { code: -1, reason: `the master answers ${describe(error, 200)}`, memory: [], stored: [] };
  }
  const disks = optionalList(entry, "disk_values").map(
    (item): StoredReplica => storedReplica(item, "disk", "object_size", "file_path"),
  );
  const localDisks = optionalList(entry, "local_disk_values").map(
    (item): StoredReplica => storedReplica(item, "local-disk", "object_size", "transport_endpoint"),
  );
  const nof = optionalList(entry, "nof_values").map(
    (item): StoredReplica => storedReplica(item, "nof", "size_", "transport_endpoint_"),
  );
  return {
    code: 0,
    memory: optionalList(entry, "values").map(memoryReplica),
    stored: [...disks, ...localDisks, ...nof],
  };
}

function memoryReplica(item: ExactJson): MemoryReplica {
  const replica = object(item, "a replica");
  return {
    size: count(replica, "size_"),
    address: count(replica, "buffer_address_"),
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
  return { kind, size: count(replica, size), where: text(replica, where) };
}

function jsonObject(path: string, body: Buffer): ExactJsonObject {
  let parsed: ExactJson;
  try {
    parsed = parseExactJson(body.toString("utf8"));
  } catch (error) {
    throw new AdminFailure(
      -900,
      `${path} answers with something that is no JSON: ${(error as Error).message}`,
    );
  }
  return object(parsed, `the answer of ${path}`);
}

function object(value: ExactJson | undefined, what: string): ExactJsonObject {
  if (value instanceof Map) return value as ExactJsonObject;
  throw unexpected(what, value, "an object");
}

function list(from: ExactJsonObject, name: string): readonly ExactJson[] {
  const value = from.get(name);
  if (Array.isArray(value)) return value as readonly ExactJson[];
  throw unexpected(name, value, "a list");
}

/** A list, or nothing where the master has none to tell of. */
function optionalList(from: ExactJsonObject, name: string): readonly ExactJson[] {
  const value = from.get(name);
  return value === null || value === undefined ? [] : list(from, name);
}

function text(from: ExactJsonObject, name: string): string {
  const value = from.get(name);
  if (typeof value === "string") return value;
  throw unexpected(name, value, "text");
}

function count(from: ExactJsonObject, name: string): bigint {
  const value = from.get(name);
  if (typeof value === "bigint" && value >= 0n && value < 1n << 64n) return value;
  throw unexpected(name, value, "a whole number in [0, 2^64)");
}

function hexadecimal(from: ExactJsonObject, name: string): bigint {
  const value = text(from, name);
  if (/^0x[0-9a-f]{1,16}$/i.test(value)) return BigInt(value);
  throw unexpected(name, value, "an address such as 0x7f0000000000");
}

function unexpected(what: string, value: unknown, wanted: string): AdminFailure {
  const shown = value instanceof Map ? "an object" : describe(value);
  return new AdminFailure(-900, `the master's answer has ${shown} where ${what} should be ${wanted}`);
}
